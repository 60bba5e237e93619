"""The passes over collectives, in order; the compiler runs those that a pass list leaves out where there are any."""

from __future__ import annotations

from tilewright.passes.communication_analysis import CommunicationAnalysis
from tilewright.passes.communication_optimization import CommunicationOptimization
from tilewright.passes.expand_communication import ExpandCommunication
from tilewright.passes.pipeline import Pass, PassManager

PASSES = (CommunicationAnalysis, CommunicationOptimization, ExpandCommunication)


def told_chip(item: Pass, arch: str) -> Pass:
    """A pass over collectives with the chip that is compiled for; others as they are."""
    return type(item)(**{**item.given, "chip": arch}) if isinstance(item, PASSES) else item


def left_out(manager: PassManager, arch: str) -> list[Pass]:
    """The passes over collectives that a list lacks."""
    names = [item.name for item in manager]
    return [cls(chip=arch) for cls in PASSES if cls.name not in names]
