"""Where the values of a model's parameters begin on the servers: as the user says, or as the model has them.

Servers make first values themselves, from the job's seed. So a distribution is needed that gives values like those of the model.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterable, Mapping

from . import _muster
from ._arrays import Floats
from ._session import Initializer


class Given:
    """The initializers of the user, by name or pattern ("*.bias"): the exact name before patterns, and those in their order."""

    def __init__(self, initializers: Mapping[str, Initializer] | None, names: Iterable[str]) -> None:
        """`names` are those of the model. Raises ValueError if none of them is meant."""
        self._initializers = dict(initializers or {})
        known = sorted(names)
        for pattern in self._initializers:
            if not any(_matches(pattern, name) for name in known):
                raise ValueError(f"initializers: no parameter or buffer is called {pattern!r}, only {', '.join(known)}")

    def get(self, name: str) -> Initializer | None:
        """That of the parameter, if the user gave one."""
        if name in self._initializers:
            return self._initializers[name]
        return next((initializer for pattern, initializer in self._initializers.items() if _matches(pattern, name)), None)


def _matches(pattern: str, name: str) -> bool:
    return pattern == name or fnmatch.fnmatchcase(name, pattern)


def constant_of(values: Floats) -> Initializer | None:
    """The one value that all have. None if they differ, or there is none."""
    first = float(values.flat[0]) if values.size > 0 else 0.0
    if values.size == 0 or not bool((values == first).all()):
        return None
    return _muster.Zero() if first == 0 else _muster.Constant(first)


def first_values(
    name: str, given: Given, values_of: Callable[[], Floats], distributions: Callable[[], Iterable[Initializer]], owner: str
) -> Initializer:
    """How servers make the first values of a parameter: as the user says, or like the values that the model has.

    `distributions` may have made them; the first that fits is taken. `owner` is what has the parameter, for the error: ValueError
    if it is not known how the values were made.
    """
    chosen = given.get(name)
    if chosen is not None:
        return chosen
    values = values_of()
    constant = constant_of(values)
    # One value is always equal to itself, and yet it may be a random one, such as the bias of a single output.
    if constant is not None and (values.size > 1 or isinstance(constant, _muster.Zero)):
        return constant
    for initializer in distributions():
        if _fits(values, initializer):
            return initializer
    if constant is not None:
        return constant
    raise ValueError(
        f"{name}: servers make the first values of a parameter, and do not know how to make those of {owner} here: "
        f"give initializers={{{name!r}: muster.Uniform(low=..., high=...)}}, or muster.Normal or muster.Constant"
    )


def uniform(bound: float) -> Initializer:
    """Uniform in [-bound, bound]."""
    return _muster.Uniform(low=-bound, high=bound)


def _fits(values: Floats, initializer: Initializer) -> bool:
    """False: the values were made in another way. A few values may be like any."""
    if isinstance(initializer, _muster.Uniform):
        mean, stddev = (initializer.low + initializer.high) / 2, (initializer.high - initializer.low) / math.sqrt(12)
        if float(abs(values - mean).max()) > stddev * math.sqrt(3) * 1.01:
            return False
    elif isinstance(initializer, _muster.Normal):
        mean, stddev = initializer.mean, initializer.stddev
    else:
        return False
    # Five standard errors of the variance, for a normal distribution.
    margin = 5 * math.sqrt(2 / max(1, values.size))
    return bool(abs(float(((values - mean) ** 2).mean()) / stddev**2 - 1) <= margin)
