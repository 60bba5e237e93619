; Called in each turn of a loop: now and then, INTERRUPTED if a signal handler of Python has raised an exception.
define i32 @__tw_poll(ptr %table, ptr %turns, i32 %mask) alwaysinline {
  %before = load i32, ptr %turns
  %now = add i32 %before, 1
  store i32 %now, ptr %turns
  %low = and i32 %now, %mask
  %due = icmp eq i32 %low, 0
  br i1 %due, label %look, label %go
look:
  %slot = getelementptr i64, ptr %table, i64 $signals
  %check = load ptr, ptr %slot
  %none = icmp eq ptr %check, null
  br i1 %none, label %go, label %ask
ask:
  %raised = call i32 %check()
  %fine = icmp eq i32 %raised, 0
  br i1 %fine, label %go, label %stop
go:
  ret i32 0
stop:
  ret i32 $interrupted
}
