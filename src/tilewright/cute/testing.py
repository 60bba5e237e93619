"""`cute.testing`: assertions of the running program."""

from tilewright.lang.printing import assert_
