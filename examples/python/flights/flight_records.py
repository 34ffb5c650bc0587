"""Lines of flights.csv -> keys and labels. What they mean: ../../flights/flight_record.h.

The keys are those of the C++ example. Values come again and again, so each is checked and hashed only when it is new. A minibatch
of 256 takes less than a millisecond of one core.
"""

from __future__ import annotations

import array
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

FIELDS = 9
COLUMNS = ("month", "day", "carrier", "flight", "tailnum", "origin", "dest", "hour", "minute", "arr_delay")
LATE_MINUTES = 15
VALUES_MAX = 1_000_000  # of a field, in memory
T = TypeVar("T")
Arrays = tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]


class Known(dict[bytes, T]):
    """What is known of each value of a column. Raises ValueError if a value is wrong."""

    def __init__(self, of_value: Callable[[bytes], T]) -> None:
        super().__init__()
        self.of_value = of_value

    def __missing__(self, value: bytes) -> T:
        if len(self) >= VALUES_MAX:
            self.clear()
        self[value] = known = self.of_value(value)
        return known


def field_key(field: int, value: bytes) -> int:
    """FNV-1a of the field's number and its value, with the finaliser of SplitMix64."""
    state = 0xCBF29CE484222325
    for byte in bytes([field]) + value:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 31


def wrong(column: str, value: bytes, expected: str) -> ValueError:
    return ValueError(f"{column} is '{value.decode(errors='replace')[:40]}', not {expected}")


def number(column: str, value: bytes, low: int, high: int) -> bytes:
    if not value.isdigit() or len(value) > 9 or not low <= int(value) <= high:
        raise wrong(column, value, f"{low} to {high}")
    return value


def name(column: str, value: bytes) -> bytes:
    if not value:
        raise wrong(column, value, "a name")
    return value


def label_of(delay: bytes) -> float:
    if delay == b"NA":
        return 1.0
    try:
        return float(float(delay) > LATE_MINUTES)
    except ValueError:
        raise wrong("arr_delay", delay, "minutes or NA") from None


class FlightParser:
    """Finds its columns by the names in the header, so their order does not matter."""

    def __init__(self, header: bytes) -> None:
        names = header.decode().split(",")
        missing = [column for column in COLUMNS if column not in names]
        if missing:
            raise ValueError(f"the header has no column {missing[0]!r}: {header!r}")
        self.width = len(names)
        self.cells_of = operator.itemgetter(*(names.index(column) for column in COLUMNS))
        self.month = Known(lambda value: field_key(0, number("month", value, 1, 12)))
        self.day = Known(lambda value: number("day", value, 1, 31))
        self.date = Known(lambda value: field_key(1, value))
        self.carrier = Known(lambda value: field_key(2, name("carrier", value)))
        self.flight = Known(lambda value: name("flight", value))
        self.carrier_flight = Known(lambda value: field_key(3, value))
        self.tailnum = Known(lambda value: field_key(4, name("tailnum", value)))
        self.origin = Known(lambda value: field_key(5, name("origin", value)))
        self.dest = Known(lambda value: field_key(6, name("dest", value)))
        self.hour = Known(lambda value: field_key(7, number("hour", value, 0, 24)))
        self.minute = Known(lambda value: field_key(8, number("minute", value, 0, 59)))
        self.label = Known(label_of)

    def parse(self, lines: Sequence[bytes], reject: Callable[[int, str], object]) -> Arrays:
        """(keys [n, 9] uint64, labels [n] float32) of the good lines; calls reject(number, reason) for each of the others."""
        rows = [line.split(b",") for line in lines]
        try:
            return self.columns(rows)
        except ValueError:  # of some; one by one, they are slower
            good = []
            for i, row in enumerate(rows):
                try:
                    self.columns([row])
                    good.append(row)
                except ValueError as error:
                    reject(i, str(error))
            return self.columns(good)

    def columns(self, rows: list[list[bytes]]) -> Arrays:
        for row in rows:
            if len(row) != self.width:
                raise ValueError(f"{len(row)} columns where the header has {self.width}")
        if not rows:
            return np.empty((0, FIELDS), np.uint64), np.empty(0, np.float32)
        month, day, carrier, flight, tailnum, origin, dest, hour, minute, delay = self.cells_of(list(zip(*rows)))
        keys = array.array("Q", map(self.month.__getitem__, month))
        date = [m + b"-" + self.day[d] for m, d in zip(month, day)]
        keys.extend(map(self.date.__getitem__, date))
        keys.extend(map(self.carrier.__getitem__, carrier))
        carrier_flight = [c + b"-" + self.flight[f] for c, f in zip(carrier, flight)]
        keys.extend(map(self.carrier_flight.__getitem__, carrier_flight))
        for known, column in ((self.tailnum, tailnum), (self.origin, origin), (self.dest, dest), (self.hour, hour), (self.minute, minute)):
            keys.extend(map(known.__getitem__, column))
        labels = np.array(list(map(self.label.__getitem__, delay)), np.float32)
        return np.frombuffer(keys, np.uint64).reshape(FIELDS, -1).T.copy(), labels
