#!/usr/bin/env python3
"""Unit test of closed_form.py: it accepts the right export and sees every kind of wrong one."""

import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import closed_form  # noqa: E402

NUMBERS = [0, 1, 2, 257, 318, 318, 61]
EPOCHS = 2


def write_npy(path, descr, code, shape, values):
    header = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack(f"<{len(values)}{code}", *values))


class ClosedFormTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.input = os.path.join(self.temp.name, "numbers.txt")
        with open(self.input, "w", encoding="ascii") as file:
            file.write("\n".join(map(str, NUMBERS)))
        self.rows, self.totals = closed_form.expected_tables(closed_form.read_ids([self.input]), EPOCHS)

    def write(self, folder=None):
        folder = folder or self.temp.name
        for table, rows in self.rows.items():
            keys = sorted(rows)
            write_npy(os.path.join(folder, f"{table}.keys.npy"), "<u8", "Q", (len(keys),), keys)
            values = [value for key in keys for value in rows[key]]
            shape = (len(keys), closed_form.SPARSE[table])
            write_npy(os.path.join(folder, f"{table}.values.npy"), "<f4", "f", shape, values)
        write_npy(os.path.join(folder, "totals.npy"), "<f4", "f", closed_form.TOTALS_SHAPE, self.totals)

    def differences(self):
        self.write()
        return closed_form.compare([self.input], EPOCHS, self.temp.name)[0]

    def test_rows_by_hand(self):
        self.assertEqual(self.rows["ids"][318], [18.0])  # twice in the input, in epochs 0 and 1: 2 (1 + 8)
        self.assertEqual(self.rows["buckets"][1], [2 + 2 * 1, 2 + 2 * -1, 2 + 0, 2 + 2 * 1])
        self.assertEqual(set(self.rows["buckets"]), {0, 1, 2, 13})
        self.assertIn(61 * 0x9E3779B97F4A7C15 % 2**64, self.rows["wide"])
        self.assertEqual(self.totals[0], 2 * len(NUMBERS))
        self.assertEqual(self.totals[4], 2 * sum((n + 12) % 9 - 4 for n in NUMBERS))

    def test_right_export_is_accepted(self):
        self.assertEqual(self.differences(), [])

    def test_warm_start(self):
        """Two epochs on top of two are four epochs, but for the initial values, which count once, and for the numbers of epochs."""
        self.write()
        first = self.rows["ids"]
        self.rows, self.totals = closed_form.expected_tables(closed_form.read_ids([self.input]), 2 * EPOCHS)
        self.rows["ids"] = {key: [2 * row[0]] for key, row in first.items()}
        export = os.path.join(self.temp.name, "second")
        os.mkdir(export)
        self.write(export)
        self.assertEqual(closed_form.compare([self.input], EPOCHS, export, self.temp.name)[0], [])
        self.rows["buckets"][1][0] += closed_form.INITIAL["buckets"]
        self.write(export)
        self.assertEqual(len(closed_form.compare([self.input], EPOCHS, export, self.temp.name)[0]), 1)

    def test_lost_update(self):
        self.rows["ids"][257][0] -= 1
        self.assertEqual(len(self.differences()), 1)

    def test_missing_row(self):
        del self.rows["wide"][0]
        self.assertEqual(len(self.differences()), 1)

    def test_made_up_row(self):
        self.rows["buckets"][7] = [2.0] * 4
        self.assertEqual(len(self.differences()), 1)

    def test_dense_tensor(self):
        self.totals[14] += 1
        self.assertEqual(len(self.differences()), 1)

    def test_truncated_file(self):
        self.write()
        path = os.path.join(self.temp.name, "totals.npy")
        with open(path, "rb+") as file:
            file.truncate(os.path.getsize(path) - 4)
        with self.assertRaisesRegex(ValueError, "bytes of values"):
            closed_form.compare([self.input], EPOCHS, self.temp.name)


if __name__ == "__main__":
    unittest.main()
