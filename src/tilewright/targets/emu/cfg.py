"""Basic blocks, their order, and the order in which divergent threads meet again.

A block ends at a branch, call, return or exit; an instruction that synchronises threads (`bar`, `shfl`, ...)
begins a block of its own, so that threads can gather in front of it. `order` numbers the blocks so that every
loop body precedes what follows the loop; running the threads at the lowest number first makes them reconverge
at the earliest common block, for any control flow (thread frontiers: Diamos et al., MICRO 2011).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.targets.emu.faults import located
from tilewright.targets.emu.ptx import Function, Instruction, Neg, Operand, Reg, Sym

WARP_SYNC = {"shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix", "movmatrix", "wmma", "wgmma",
             "setmaxnreg"}  # fmt: skip
"""First words of instructions that the threads of a warp execute together."""

_ENDS = {"bra", "brx", "exit", "ret", "call"}


@dataclass(slots=True)
class Block:
    """A run of instructions. `kind` says how it ends:

    jump (to `targets[0]`), cond (predicate `pred`, negated or not: taken `targets[0]`, else `targets[1]`),
    exit, ret, call (`ending`, then `targets[0]`), brx (`ending`; index register selects among `targets`).
    """

    index: int
    body: list[Instruction] = field(default_factory=list)
    kind: str = "jump"
    targets: list[int] = field(default_factory=list)
    pred: Reg | None = None
    negated: bool = False
    ending: Instruction | None = None
    gate: Instruction | None = None
    order: int = 0


def gathers(instruction: Instruction) -> bool:
    """Whether threads must gather in front of an instruction."""
    if instruction.op in ("bar", "barrier"):
        return "arrive" not in instruction.mods
    return instruction.op in WARP_SYNC


class _Builder:
    """Cuts a function body into blocks."""

    def __init__(self, function: Function, kernel: str) -> None:
        self.function = function
        self.kernel = kernel
        self.blocks: list[Block] = []
        self.starts: dict[str, int] = {}
        self.fixups: list[tuple[Block, list[str], Instruction]] = []

    def build(self) -> list[Block]:
        at: dict[int, list[str]] = {}
        for label, index in self.function.labels.items():
            at.setdefault(index, []).append(label)
        block = self._new()
        for index, instruction in enumerate(self.function.body):
            if index in at:
                block = self._begin(block, at[index])
            block = self._add(block, instruction)
        block = self._begin(block, at.get(len(self.function.body), []))
        block.kind = "ret"
        for waiting, names, instruction in self.fixups:
            waiting.targets[: len(names)] = [self._target(name, instruction) for name in names]
        return self.blocks

    def _new(self) -> Block:
        block = Block(len(self.blocks))
        self.blocks.append(block)
        return block

    def _begin(self, block: Block, labels: list[str]) -> Block:
        """A new block after `block`, unless `block` is still empty."""
        if block.body or block.index != len(self.blocks) - 1:
            following = self._new()
            block.kind, block.targets = "jump", [following.index]
            block = following
        for label in labels:
            self.starts[label] = block.index
        return block

    def _add(self, block: Block, instruction: Instruction) -> Block:
        if instruction.op in _ENDS:
            return self._end(block, instruction)
        if not gathers(instruction):
            block.body.append(instruction)
            return block
        # Threads gather in front of a block, so the instruction is the first of one; a guarded one has a block that
        # only its threads enter, since the others must not be waited for.
        if instruction.guard is not None:
            block = self._guard(block, instruction)
            gate = self.blocks[block.targets[0]]
            after = self.blocks[block.targets[1]]
            gate.gate = instruction
            gate.body.append(instruction)
            gate.targets = [after.index]
            return after
        if block.body or block.gate is not None:
            following = self._new()
            block.kind, block.targets = "jump", [following.index]
            block = following
        block.gate = instruction
        block.body.append(instruction)
        return block

    def _guard(self, block: Block, instruction: Instruction) -> Block:
        """End `block` by a branch around one guarded instruction, which gets a block of its own."""
        inside, after = self._new(), self._new()
        block.kind, block.targets = "cond", [inside.index, after.index]
        block.pred, block.negated = instruction.guard, instruction.guard_negated
        inside.kind, inside.targets = "jump", [after.index]
        return block

    def _end(self, block: Block, instruction: Instruction) -> Block:
        if instruction.op == "bra":
            return self._branch(block, instruction)
        if instruction.guard is not None:
            block = self._guard(block, instruction)
            after = self.blocks[block.targets[1]]
            self._finish(self.blocks[block.targets[0]], instruction, after.index)
            return after
        following = self._new()
        self._finish(block, instruction, following.index)
        return following

    def _finish(self, block: Block, instruction: Instruction, following: int) -> None:
        block.kind = instruction.op
        block.ending = instruction
        block.targets = [following] if instruction.op == "call" else []
        if instruction.op == "brx":
            names = self._table(instruction)
            block.targets = [0] * len(names)
            self.fixups.append((block, names, instruction))

    def _branch(self, block: Block, instruction: Instruction) -> Block:
        following = self._new()
        block.ending = instruction
        names = [op.name for op in instruction.ops if isinstance(op, Sym)]
        if len(names) != 1:
            raise located("a branch needs one label", instruction, self.kernel)
        if instruction.guard is None:
            block.kind, block.targets = "jump", [0]
        else:
            block.kind, block.targets = "cond", [0, following.index]
            block.pred, block.negated = instruction.guard, instruction.guard_negated
        self.fixups.append((block, names, instruction))
        return following

    def _table(self, instruction: Instruction) -> list[str]:
        if len(instruction.ops) == 2 and isinstance(instruction.ops[1], Sym):
            table = self.function.tables.get(instruction.ops[1].name)
            if table:
                return table
        raise located("brx.idx needs a .branchtargets table", instruction, self.kernel)

    def _target(self, name: str, instruction: Instruction) -> int:
        if name not in self.starts:
            raise located(f"label {name.split('@')[0]} is not defined", instruction, self.kernel)
        return self.starts[name]


def build_blocks(function: Function, kernel: str) -> list[Block]:
    """The blocks of a function, in text order with `order` set; block 0 is the entry.

    Raises:
        EmulationError: a branch names no label of the function.
    """
    blocks = _Builder(function, kernel).build()
    for position, index in enumerate(weak_order([block.targets for block in blocks])):
        blocks[index].order = position
    return blocks


def weak_order(successors: list[list[int]]) -> list[int]:
    """Nodes reachable from node 0, loop bodies contiguous and before what follows (Bourdoncle 1993).

    Unreachable nodes come last.
    """
    return Nest(successors).order


class Nest:
    """The loops of a graph whose node 0 is the entry, one in another.

    `order` is that of `weak_order`. `loop` has for each node in a loop the head of the innermost one, where a head is
    in its own loop; `around` for each head that of the loop around it, None where there is none.
    """

    def __init__(self, successors: list[list[int]]) -> None:
        self.order: list[int] = []
        self.loop: dict[int, int] = {}
        self.around: dict[int, int | None] = {}
        self._walk(successors)
        seen = set(self.order)
        self.order += [node for node in range(len(successors)) if node not in seen]

    def _walk(self, successors: list[list[int]]) -> None:
        everything = set(range(len(successors)))
        # Bourdoncle's recursion: a component of several nodes is a loop; its head is the node reached first, and what
        # is left without the edges back to the head is ordered in the same way. The stack is our own, since nests may
        # be deeper than Python's.
        stack: list[tuple[list[list[int]], int | None]] = [(_components(successors, everything, 0, None)[::-1], None)]
        while stack:
            components, head = stack[-1]
            if not components:
                stack.pop()
                continue
            component = components.pop()
            first = component[-1]
            if len(component) > 1:
                self.around[first] = head
                stack.append((_components(successors, set(component), first, first)[::-1], first))
                continue
            self.order.append(first)
            if first != head and first in successors[first]:  # a loop of one block
                self.around[first], self.loop[first] = head, first
            elif head is not None:
                self.loop[first] = head

    def loops_at(self, node: int) -> list[int]:
        """The heads of the loops that a node is in, innermost first."""
        found: list[int] = []
        head = self.loop.get(node)
        while head is not None:
            found.append(head)
            head = self.around[head]
        return found


def _components(successors: list[list[int]], nodes: set[int], entry: int, cut: int | None) -> list[list[int]]:
    """Strongly connected components of what `entry` reaches, in topological order (Tarjan, without recursion).

    Only `nodes` count, and no edge to the node `cut`. The first node reached of each component comes last in its list.
    """
    index: dict[int, int] = {entry: 0}
    low: dict[int, int] = {entry: 0}
    open_nodes: list[int] = [entry]
    is_open: set[int] = {entry}
    found: list[list[int]] = []
    path = [(entry, iter(successors[entry]))]
    while path:
        node, following = path[-1]
        for target in following:  # the iterator stays in `path`, so that a node goes on where it was left
            if target == cut or target not in nodes:
                continue
            if target not in index:
                index[target] = low[target] = len(index)
                open_nodes.append(target)
                is_open.add(target)
                path.append((target, iter(successors[target])))
                break
            if target in is_open:
                low[node] = min(low[node], index[target])
        else:
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            if low[node] == index[node]:
                found.append(_taken(open_nodes, is_open, node))
    return found[::-1]


def _taken(open_nodes: list[int], is_open: set[int], last: int) -> list[int]:
    """The component whose first node is `last`: it and what was reached since, taken off the open nodes."""
    component: list[int] = []
    while not component or component[-1] != last:
        member = open_nodes.pop()
        is_open.discard(member)
        component.append(member)
    return component


def predicate_of(operand: Operand) -> tuple[Reg, bool] | None:
    """The register of a predicate operand and whether it is negated."""
    if isinstance(operand, Neg):
        return operand.reg, True
    return (operand, False) if isinstance(operand, Reg) else None
