"""The language: what a kernel is written in, and the tracing that turns it into the `cute` dialect.

`trace` holds the program being traced, `leaves` turns Python values into machine values and back, `locations` knows the
user's lines. By folder: `numbers`, `tensors`, `atoms`, `structs`, `printing`, `calls` (launches and parameters),
`rewrite` (the AST) and `control` (what rewritten code calls), `diagnostics`, `nvgpu` (NVIDIA's own operations).
"""
