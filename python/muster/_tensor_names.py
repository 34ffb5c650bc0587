"""The names of the tensors on the servers that belong to one model."""

from __future__ import annotations

import re

NAME_MAX = 64  # bytes of a table's name


class TensorNames:
    """Gives each parameter "prefix-parameter", and refuses what would be no name, or two of one name."""

    def __init__(self, prefix: str) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", prefix):
            raise ValueError(f"name: {prefix!r} came, small letters, digits, - and _ are allowed, and the first is a letter")
        self._prefix = prefix
        self._used: dict[str, str] = {}

    def __call__(self, key: str) -> str:
        """The name of the tensor for what the model calls `key`."""
        name = f"{self._prefix}-{re.sub('[^a-z0-9_]', '-', key.lower())}"
        if len(name) > NAME_MAX:
            raise ValueError(f"{key}: its tensor would be called {name!r}, and {NAME_MAX} letters are allowed: shorten `name`, or the model's names")
        if name in self._used:
            raise ValueError(f"{key}: its tensor would be called {name!r}, and so would that of {self._used[name]}: rename one of the two")
        self._used[name] = key
        return name
