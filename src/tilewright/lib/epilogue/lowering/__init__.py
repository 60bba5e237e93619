"""How an epilogue runs in a kernel: each load, store and reduction is one object, which owns its tensor's life."""
