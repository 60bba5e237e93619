"""Running stage `tt`: three kernels a core, circular buffers with bounds, data that lands at barriers.

`core` holds the rules of the protocol and moves no data, which is what the static checker wants; `data` adds the
numbers.
"""
