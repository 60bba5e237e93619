"""Compiling and running: decorators, arguments, the stage loop, executors."""
