#!/usr/bin/env python3
"""Checks an export of the counter job against values computed from its input. Python's standard library only.

Shares no code with verify/: the rules are written down a second time, from the table in verify/workload/contributions.h.
"""

import argparse
import ast
import collections
import glob
import os
import struct
import sys

MASK = (1 << 64) - 1
SPREAD = 0x9E3779B97F4A7C15
SPARSE = {"ids": 1, "buckets": 4, "wide": 33}
INITIAL = {"ids": 0.0, "buckets": 2.0, "wide": 0.0}
TOTALS_SHAPE = (3, 5)


class Npy:
    """One array of a .npy file: dtype ('<f4' or '<u8'), shape, and its values in row-major order."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if data[:6] != b"\x93NUMPY":
            raise ValueError(f"{path}: not a .npy file")
        if data[6] == 1:
            (length,), begin = struct.unpack("<H", data[8:10]), 10
        else:
            (length,), begin = struct.unpack("<I", data[8:12]), 12
        header = ast.literal_eval(data[begin : begin + length].decode("latin-1").strip())
        self.dtype, self.shape = header["descr"], tuple(header["shape"])
        if header["fortran_order"] and len(self.shape) > 1:
            raise ValueError(f"{path}: column-major arrays are not expected")
        code = {"<f4": "f", "<u8": "Q", "<i8": "q"}.get(self.dtype)
        if code is None:
            raise ValueError(f"{path}: dtype {self.dtype} is not expected")
        count = 1
        for extent in self.shape:
            count *= extent
        body = data[begin + length :]
        if len(body) != count * struct.calcsize("<" + code):
            raise ValueError(f"{path}: {len(body)} bytes of values where {self.shape} {self.dtype} was announced")
        self.values = struct.unpack(f"<{count}{code}", body)


def read_ids(paths):
    """How often each number occurs in the input."""
    ids = collections.Counter()
    for path in paths:
        with open(path, encoding="ascii") as file:
            ids.update(int(line) for line in file.read().split())
    return ids


def read_tables(export):
    """An export as expected_tables() returns one: what a job that is warm-started from it begins with."""
    rows = {}
    for table, dim in SPARSE.items():
        keys = Npy(os.path.join(export, f"{table}.keys.npy")).values
        values = Npy(os.path.join(export, f"{table}.values.npy")).values
        rows[table] = {key: list(values[i * dim : (i + 1) * dim]) for i, key in enumerate(keys)}
    return rows, list(Npy(os.path.join(export, "totals.npy")).values)


def expected_tables(ids, epochs, start=None):
    """{table: {key: row}} of the sparse tables, and the dense tensor as a flat list. `start`: both, at the job's begin."""
    rows, totals = start or ({table: {} for table in SPARSE}, [0.0] * (TOTALS_SHAPE[0] * TOTALS_SHAPE[1]))
    for number, occurrences in ids.items():
        times = occurrences * epochs
        added = {
            "buckets": (number % 61, [(number + j) % 7 - 3 if j else 1 for j in range(SPARSE["buckets"])]),
            "wide": ((number % 257) * SPREAD & MASK, [(number * (j + 1)) % 5 - 2 if j else 1 for j in range(SPARSE["wide"])]),
        }
        rows["ids"].setdefault(number, [INITIAL["ids"]])[0] += occurrences * sum(8 ** (epoch % 8) for epoch in range(epochs))
        for table, (key, values) in added.items():
            row = rows[table].setdefault(key, [INITIAL[table]] * SPARSE[table])
            for j, value in enumerate(values):
                row[j] += times * value
        for j in range(len(totals)):
            totals[j] += times * ((number + 3 * j) % 9 - 4 if j else 1)
    return rows, totals


def compare_sparse(table, expected, export):
    """Differences as lines of text."""
    keys = Npy(os.path.join(export, f"{table}.keys.npy"))
    values = Npy(os.path.join(export, f"{table}.values.npy"))
    dim = SPARSE[table]
    if keys.dtype != "<u8" or values.dtype != "<f4" or values.shape != (len(keys.values), dim):
        return [f"{table}: keys {keys.dtype} {keys.shape} and values {values.dtype} {values.shape}, expected <u8 [n] and <f4 [n, {dim}]"]
    if len(set(keys.values)) != len(keys.values):
        return [f"{table}: a key occurs twice"]
    differences = []
    seen = dict(zip(keys.values, range(len(keys.values))))
    for key in expected.keys() - seen.keys():
        differences.append(f"{table}: no row of key {key}, expected {expected[key]}")
    for key in seen.keys() - expected.keys():
        differences.append(f"{table}: row of key {key}, which is not in the input")
    for key in expected.keys() & seen.keys():
        row = list(values.values[seen[key] * dim : (seen[key] + 1) * dim])
        if row != expected[key]:
            differences.append(f"{table}: key {key}: {row}, expected {expected[key]}")
    return differences


def compare(paths, epochs, export, start=None):
    """Differences between the export and the closed form, as lines of text; and the number of rows compared. `start`: the
    export that the job was warm-started from."""
    rows, totals = expected_tables(read_ids(paths), epochs, read_tables(start) if start else None)
    differences = []
    for table in SPARSE:
        differences += compare_sparse(table, rows[table], export)
    tensor = Npy(os.path.join(export, "totals.npy"))
    if tensor.shape != TOTALS_SHAPE or list(tensor.values) != totals:
        differences.append(f"totals: {tensor.shape} {list(tensor.values)}, expected {TOTALS_SHAPE} {totals}")
    return differences, sum(len(table) for table in rows.values()) + TOTALS_SHAPE[0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: closed_form.py --input 'numbers-*.txt' --epochs 3 --export out",
    )
    parser.add_argument("--input", required=True, action="append", help="file or glob; may be repeated")
    parser.add_argument("--epochs", required=True, type=int)
    parser.add_argument("--export", required=True, help="folder that `muster export` wrote")
    parser.add_argument("--start", help="the export that the job was warm-started from")
    options = parser.parse_args()
    paths = sorted(path for pattern in options.input for path in glob.glob(pattern))
    if not paths:
        parser.error(f"no file matches {' '.join(options.input)}")
    differences, compared = compare(paths, options.epochs, options.export, options.start)
    for line in differences[:20]:
        print(line)
    print(f"{compared} rows compared, {len(differences)} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
