"""The debugger: it steps through kernels on the emulator, forwards and backwards."""
