"""The devices that run its artifacts: the GPU by the driver, and the PTX emulator."""
