"""The words of collectives: what they fold with, and over whom."""

from __future__ import annotations

OPS = ("add", "mul", "min", "max", "and", "or", "xor")
LOGIC = ("and", "or", "xor")
SPELLINGS = {"sum": "add", "prod": "mul", "product": "mul", "minimum": "min", "maximum": "max"}
SCOPES = ("auto", "warp", "block", "cluster", "grid")  # that a program may ask for
CHOSEN_SCOPES = (*SCOPES, "thread")
TYPES = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64")
"""Short names of the number types that collectives take, see `base.dtypes`."""
