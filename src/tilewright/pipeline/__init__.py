"""`cutlass.pipeline`: synchronisation of the threads of a block."""

from tilewright.pipeline.named_barrier import NamedBarrier
