"""A NumPy interpreter of stage `cute`, apart from the lowering: thread by thread, views by `tilewright.layout`.

`run(text, arrays, scalars)` runs the host function of a module with launches on copies of `arrays` and gives them back.
It raises `Fault` for what the emulator must find as well, and `Undefined` where the program has no meaning: a read of
what nobody wrote, a race, a shift beyond the width.
"""

from tests.passes.cute_interpreter.launch import run
from tests.passes.cute_interpreter.memory import Fault, Undefined

__all__ = ["Fault", "Undefined", "run"]
