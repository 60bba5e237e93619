"""Lowering rules that give LLVM operations and know no target."""
