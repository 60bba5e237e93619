"""Functions of stage `tt` as immutable Python objects: nodes, visitors, text, and the way from MLIR and back."""
