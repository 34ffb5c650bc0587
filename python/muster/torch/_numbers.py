"""The numbers in a tree of dicts, lists and tuples, such as the state of a scheduler of learning rates."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, torch.Tensor) and value.numel() == 1)


def _walk(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """A tree of the same form, with what `leaf` makes of each number. What is no number stays."""
    if _is_number(tree):
        return leaf(tree)
    if isinstance(tree, dict):
        made = copy.copy(tree)
        for key, value in tree.items():
            made[key] = _walk(value, leaf)
        return made
    if type(tree) in (list, tuple):
        return type(tree)(_walk(value, leaf) for value in tree)
    return tree


def read(tree: Any) -> list[float]:
    """The numbers, in the order of the tree. Whole numbers are exact up to 2**53."""
    values: list[float] = []

    def leaf(value: Any) -> Any:
        values.append(float(value))
        return value

    _walk(tree, leaf)
    return values


def write(tree: Any, values: list[float]) -> Any:
    """The tree with these numbers, each of the type of that in its place. A tensor is changed in place."""
    left = iter(values)

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.fill_(next(left))
        number = next(left)
        # A rate that began as a whole number, such as SGD(lr=1), need not stay one.
        return number if isinstance(value, int) and not number.is_integer() else type(value)(number)

    return _walk(tree, leaf)
