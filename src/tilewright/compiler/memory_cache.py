"""A bounded cache in memory that threads share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class MemoryCache(Generic[Value]):
    """The `limit` values used last. Two threads that miss at once both make a value; the first one stored stays."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """The value, which then counts as the one used last."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: Value) -> Value:
        """Store `value` unless there is one; gives the one that is stored."""
        with self._lock:
            stored = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self.limit:
                self._values.popitem(last=False)
            return stored

    def replace(self, key: Hashable, value: Value) -> None:
        """Store `value` in place of any other."""
        with self._lock:
            self._values.pop(key, None)
        self.put(key, value)

    def remove(self, key: Hashable) -> None:
        """Forget a value."""
        with self._lock:
            self._values.pop(key, None)

    def items(self) -> dict[Hashable, Value]:
        """A copy of all values, by key."""
        with self._lock:
            return dict(self._values)

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)
