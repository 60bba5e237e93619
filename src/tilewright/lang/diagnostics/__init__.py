"""What errors say: hints, checks of arguments, tracebacks of the user's code."""
