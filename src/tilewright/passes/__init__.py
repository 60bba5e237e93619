"""Passes: what they can ask of a program."""

from tilewright.passes.origin import Coordinates, Origin, Root, origin

__all__ = ["Coordinates", "Origin", "Root", "origin"]
