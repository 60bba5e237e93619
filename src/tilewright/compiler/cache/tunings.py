"""Which of several configurations was the fastest, kept on disk for a device and what the programs depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from tilewright.base import settings
from tilewright.compiler.cache import keys, toolkit
from tilewright.compiler.cache.entry import DamagedError, sealed, unsealed
from tilewright.compiler.cache.store import current_store
from tilewright.compiler.cache.unprovable import UnprovableError
from tilewright.compiler.plan import Plan
from tilewright.targets.target import device_of


def tuning_key(plans: Sequence[Plan], facts: object) -> str:
    """The key of a choice among plans; `facts` says by its `repr` how they are timed and on what.

    "" where the cache is off, or only tracing can tell what a program depends on.
    """
    store = None if settings.get("no_cache") else current_store()
    compiler = toolkit.digest(store.folder) if store is not None else None
    if compiler is None:
        return ""
    try:
        digests = [keys.plan_reach(plan, compiler).digest() for plan in plans]
    except UnprovableError:
        return ""
    known = (digests, [(device_of(plan.target).model(), keys.tools_key(plan)) for plan in plans], facts)
    return hashlib.blake2b(repr(known).encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def kept_choice(key: str, count: int) -> int | None:
    """The number of the fastest of `count` plans, if it is known."""
    store = current_store()
    data = store.read("tunings", key) if store is not None else None
    if store is None or data is None:
        return None
    try:
        found = json.loads(unsealed(data))
        if found["key"] != key or type(found["best"]) is not int or not 0 <= found["best"] < count:
            raise DamagedError("it is the choice of another key")
    except (DamagedError, ValueError, KeyError, TypeError) as error:
        store.warn(store.path("tunings", key), str(error))
        store.remove("tunings", key)
        return None
    return int(found["best"])


def keep_choice(key: str, best: int) -> None:
    """Keep which plan was the fastest."""
    store = current_store()
    if store is not None:
        store.write("tunings", key, sealed(json.dumps({"key": key, "best": best}).encode()))
