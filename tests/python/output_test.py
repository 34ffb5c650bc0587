"""Outputs of predictions as Parquet, with the installed wheel and pyarrow: run it with the Python that has both (wheel_test.py does)."""

import glob
import json
import os
import sys
import unittest
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from muster import _outputs

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "output_trainer.py")
DATASETS = """    - {{name: dict, records: {records}, mode: predict, output: dict, minibatchSize: 32, minibatchesPerShard: 4}}
    - {{name: table, records: 200, mode: predict, output: table, minibatchSize: 32, minibatchesPerShard: 4}}"""
NOT_INSTALLED = "columns in batch.output need pyarrow, which is not installed: call pip install pyarrow"


def file_of(*values):
    """What a shard becomes whose minibatches give these out."""
    return pyarrow.parquet.ParquetFile(pa.BufferReader(_outputs.to_parquet([memoryview(_outputs.to_piece(value)) for value in values])))


class PiecesTest(unittest.TestCase):
    def test_each_minibatch_is_a_row_group(self):
        numbers = [np.arange(3), np.arange(0), np.arange(70_000)]
        file = file_of(*({"number": part, "text": [f"<{number}>" for number in part]} for part in numbers[::2]))
        self.assertEqual([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)], [3, 70_000])
        self.assertEqual(file.read()["number"].to_pylist(), [*range(3), *range(70_000)])
        self.assertEqual(file.read()["text"].to_pylist()[-1], "<69999>")
        self.assertEqual(file_of(*({"number": part} for part in numbers)).num_row_groups, 2)
        self.assertEqual(file_of({"number": numbers[1]}).read().schema, pa.schema([("number", pa.int64())]))

    def test_what_has_columns(self):
        expected = pa.table({"a": [1, 2], "b": pa.array([0.5, 1], pa.float32())})
        b = np.array([0.5, 1], np.float32)

        class Frame:
            def __arrow_c_stream__(self, requested_schema=None):
                return expected.__arrow_c_stream__(requested_schema)

        class Tensor:
            def __array__(self, dtype=None, copy=None):
                return b

        for value in (expected, expected.to_batches()[0], Frame(), {"a": [1, 2], "b": b}, {"a": pa.array([1, 2]), "b": Tensor()}):
            self.assertEqual(file_of(value).read(), expected, type(value))

    def test_what_are_no_columns(self):
        for value, text in (
            ({"a": [1, 2], "b": [1]}, "expected length 2 but got length 1"),
            ({"a": np.zeros((2, 2))}, "only handle 1-dimensional arrays"),
            (pa.array([1]), "non-struct type"),
        ):
            with self.assertRaisesRegex(ValueError, f"^value: columns of one length are needed, each a list or an array of one dimension: .*{text}"):
                _outputs.to_piece(value)

    def test_columns_of_other_types_are_named(self):
        with self.assertRaises(ValueError) as caught:
            file_of({"a": [1], "b": ["x"]}, {"a": [0.5], "b": ["x"]})
        self.assertEqual(
            str(caught.exception),
            "a minibatch has the columns (a: double, b: string), and the first one of the shard has (a: int64, b: string): give each column the "
            "same type in all minibatches",
        )

    def test_without_pyarrow_it_says_what_to_do(self):
        with mock.patch.dict(sys.modules, {"pyarrow": None}), self.assertRaises(ModuleNotFoundError) as caught:
            _outputs.to_piece({"a": [1]})
        self.assertEqual(str(caught.exception), NOT_INSTALLED)


class JobTest(unittest.TestCase):
    def predict(self, mode):
        """{path below the folder: bytes} of the outputs of a job whose worker does something in this mode, and the job."""
        run = job.Job(self, mode, trainer=TRAINER, workers=1, records=1000, numbered=True, predict=DATASETS)
        self.assertEqual(run.wait(), 0, run.log())
        files = {}
        for name in ("dict", "table"):
            self.assertEqual({os.path.splitext(file)[1] for file in os.listdir(run.path(name)) if file != "muster-job"}, {".parquet"})
            for path in sorted(glob.glob(run.path(f"{name}/*.parquet"))):
                with open(path, "rb") as file:
                    files[os.path.relpath(path, run.folder)] = file.read()
        return files, run

    def test_each_shard_is_a_file_and_the_same_one_after_kills(self):
        files, run = self.predict("undisturbed")
        for name, records in (("dict", 1000), ("table", 200)):
            of_dataset = [pyarrow.parquet.ParquetFile(pa.BufferReader(data)) for path, data in files.items() if path.startswith(name)]
            self.assertEqual(len(of_dataset), -(-records // 128))
            self.assertEqual(sum(file.num_row_groups for file in of_dataset), -(-records // 32), "one for each minibatch")
            table = pa.concat_tables([file.read() for file in of_dataset])
            self.assertEqual(table["number"].to_pylist(), list(range(records)))
            self.assertEqual(table["trained"].to_pylist(), [1] * records)
            self.assertEqual(table["text"].to_pylist(), [f"of {number}" for number in range(records)])
        for mode in ("killed", "interrupted", "wrong"):
            again, run = self.predict(mode)
            self.assertTrue(os.path.exists(run.path("disturbed")), mode)
            self.assertEqual(again.keys(), files.keys(), mode)
            self.assertEqual([path for path in files if again[path] != files[path]], [], mode)
            events = [json.loads(line) for line in run.ask("events", "job.yaml", "--output", "json").splitlines()]
            failures = [event["text"] for event in events if event["kind"] in ("shard-failure", "shard-failed")]
            self.assertEqual(len(failures), 1 if mode == "wrong" else 0, failures)
            self.assertTrue(all("ValueError: a minibatch has the columns (number: float, " in text for text in failures), failures)


if __name__ == "__main__":
    unittest.main()
