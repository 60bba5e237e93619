"""The gate to MLIR and LLVM, and the `cute` dialect."""
