"""Classes as memory: shared memory of a block, and values of several numbers."""
