"""Pass lists as all back ends have them: a user's passes put in, the passes of stage `cute` told from later ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.passes.expand_views import ExpandViews
from tilewright.passes.pipeline import OTHER_STAGES, TEXT_STAGES, PassManager, Placed, as_pass, check_stage


def place(manager: PassManager, passes: Any) -> PassManager:
    """The list with the user's passes in it: where they say, else at the end of their stages. Passes over text come
    last, in the order of their stages."""
    for item in passes if isinstance(passes, (list, tuple)) else (passes,):
        if isinstance(item, Placed):
            manager.insert(item.item, before=item.before, after=item.after)
            continue
        made = as_pass(item)
        if made.stage in ("", "cute"):
            manager.passes.insert(_end_of_cute(manager), made)
        else:
            manager.passes.append(made)
    for item in manager:
        check_stage(item)
    over_module = [item for item in manager if item.stage not in TEXT_STAGES]
    manager.passes = over_module + [item for stage in TEXT_STAGES for item in manager.over_text(stage)]
    return manager


def split(pipeline: PassManager) -> tuple[PassManager, PassManager]:
    """The passes of stage `cute`, and those from `expand-views` on."""
    position = _end_of_cute(pipeline)
    parts = pipeline.passes[:position], pipeline.passes[position:]
    return replace(pipeline, passes=parts[0], runs=[]), replace(pipeline, passes=parts[1], runs=[])


def _end_of_cute(manager: PassManager) -> int:
    """Where the passes of stage `cute` end: at `expand-views`, or at the first of a stage of the back end's own."""
    ends = (item.name == ExpandViews.name or item.stage in OTHER_STAGES for item in manager)
    return next((place for place, end in enumerate(ends) if end), len(manager.passes))
