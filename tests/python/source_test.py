"""Records of Parquet and CSV files, with the installed wheel and pyarrow: run it with the Python that has both (wheel_test.py does)."""

import gzip
import os
import pickle
import shutil
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import muster
from muster import _source_formats

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "source_trainer.py")


NO_PARQUET = "it is no Parquet file: it does not end with a footer and PAR1"
NO_MAPPING = 'a mapping from names to types is needed, such as {"price": "float32"}'


class Files(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-sources-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, first, count, group=10, **columns):
        """Records whose `number` is theirs, in row groups."""
        numbers = np.arange(first, first + count)
        text = pa.array([f"text {number}" for number in numbers], pa.string())
        table = pa.table({"number": numbers, "half": (numbers / 2).astype(np.float32), "text": text, **columns})
        pyarrow.parquet.write_table(table, self.path(name), row_group_size=group)

    def three_files(self):
        """60 records in row groups of 10, 10, 5; 0; 10, 10, 10, 5."""
        self.write("a.parquet", 0, 25)
        self.write("b.parquet", 25, 0)
        self.write("c.parquet", 25, 35)
        return self.path("*.parquet")

    def said(self, kind, call):
        with self.assertRaises(kind) as caught:
            call()
        return str(caught.exception).replace(self.folder + os.sep, "")


class ParquetTest(Files):
    def test_reads_the_columns_that_are_asked_for_in_the_order_of_the_numbers(self):
        source = muster.parquet(self.three_files(), columns=["text", "number"])
        self.assertEqual(len(source), 60)
        self.assertEqual([os.path.basename(file) for file in source.files], ["a.parquet", "b.parquet", "c.parquet"])
        for numbers in ([59, 0, 24, 25, 25, 7], [3], list(range(60))[::-1], np.array([44, 9], np.uint64)):
            table = source.read(np.asarray(numbers))
            self.assertEqual(table.column_names, ["text", "number"])
            self.assertEqual(table["number"].to_pylist(), list(numbers))
            self.assertEqual(table["text"].to_pylist(), [f"text {number}" for number in numbers])
            self.assertEqual([column.num_chunks for column in table.columns], [1, 1])

    def test_without_columns_it_reads_all(self):
        self.assertEqual(muster.parquet(self.three_files()).read(np.array([5]))["half"].to_pylist(), [2.5])

    def test_a_part_is_decoded_once_if_all_fit_into_the_cache(self):
        source = muster.parquet(self.three_files(), columns=["number"])
        for seed in range(5):
            source.read(np.random.default_rng(seed).permutation(60))
        self.assertEqual(source.reads, 7)

    def test_the_last_part_stays_in_a_cache_that_is_too_small(self):
        source = muster.parquet(self.three_files(), columns=["number"], cache_bytes=0)
        reads = []
        for numbers in ([1, 2], [3, 4], [5, 15], [16, 6], [30], [1]):
            self.assertEqual(source.read(np.array(numbers))["number"].to_pylist(), numbers)
            reads.append(source.reads)
        # The fourth begins with the part of 16, which is there.
        self.assertEqual(reads, [1, 1, 2, 3, 4, 5])

    def test_the_cache_has_the_parts_that_were_used_last(self):
        one = muster.parquet(self.three_files(), columns=["number"]).read(np.arange(10)).nbytes
        source = muster.parquet(self.path("*.parquet"), columns=["number"], cache_bytes=one * 5 // 2)
        for number, reads in ((0, 1), (10, 2), (1, 2), (30, 3), (2, 3), (11, 4)):
            source.read(np.array([number]))
            self.assertEqual(source.reads, reads, number)

    def test_another_process_gets_it_with_a_cache_of_its_own(self):
        source = muster.parquet(self.three_files(), columns=["number"])
        source.read(np.arange(60))
        os.utime(self.path("c.parquet"), ns=(1, 1))
        sent = pickle.loads(pickle.dumps(source))
        self.assertEqual((sent.reads, len(sent), sent.digest), (0, 60, source.digest))
        self.assertEqual(sent.read(np.array([33, 2]))["number"].to_pylist(), [33, 2])
        self.write("c.parquet", 26, 35)
        self.assertIn("c.parquet has changed since it was opened", self.said(muster.FailedPrecondition, lambda: sent.read(np.array([59]))))

    def test_the_digest_is_of_content_and_order(self):
        digest = muster.parquet(self.three_files()).digest
        self.assertEqual(len(digest), 32)
        os.rename(self.path("a.parquet"), self.path("0.parquet"))
        self.assertEqual(muster.parquet(self.path("*.parquet"), columns=["number"]).digest, digest)
        turned = muster.parquet([self.path("c.parquet"), self.path("0.parquet"), self.path("b.parquet")])
        self.assertNotEqual(turned.digest, digest)
        self.write("0.parquet", 1, 25)
        self.assertNotEqual(muster.parquet(self.path("*.parquet")).digest, digest)

    def test_a_file_that_was_changed_is_an_error_that_says_what_has_changed(self):
        self.write("same.parquet", 0, 25, kind=["a"] * 25)
        source = muster.parquet(self.path("same.parquet"))
        size = os.path.getsize(self.path("same.parquet"))
        os.utime(self.path("same.parquet"), ns=(1, 1))
        self.assertEqual(source.read(np.array([0]))["kind"].to_pylist(), ["a"])
        self.write("same.parquet", 0, 25, kind=["b"] * 25)
        self.assertEqual(os.path.getsize(self.path("same.parquet")), size, "the test needs a file of the same size")
        self.assertEqual(source.read(np.array([0]))["kind"].to_pylist(), ["a"], "it is in the cache")
        end = ". A job needs the files that it began with"
        self.assertEqual(
            self.said(muster.FailedPrecondition, lambda: source.read(np.array([20]))),
            "same.parquet has changed since it was opened: its size is the same, and its content is another one" + end,
        )
        with open(self.path("same.parquet"), "w", encoding="ascii") as file:
            file.write("short")
        self.assertEqual(
            self.said(muster.FailedPrecondition, lambda: source.read(np.array([20]))),
            f"same.parquet has changed since it was opened: its size was {size} bytes, and is 5" + end,
        )
        os.remove(self.path("same.parquet"))
        self.assertIn("same.parquet", self.said(FileNotFoundError, lambda: source.read(np.array([20]))))

    def test_wrong_arguments_are_errors_that_say_what_is_allowed(self):
        glob = self.three_files()
        self.write("other.parq", 0, 5, number=pa.array(range(5), pa.int32()))
        for name, text in (("empty.parq", ""), ("text.parq", "number\n1\n2\n3\n4\n")):
            with open(self.path(name), "w", encoding="ascii") as file:
                file.write(text)
        a, b, other = (self.path(name) for name in ("a.parquet", "b.parquet", "other.parq"))
        source = muster.parquet(glob)
        for kind, call, text in (
            (TypeError, lambda: muster.parquet(a, columns="number"), "columns: the text 'number' came, a list of names is needed"),
            (ValueError, lambda: muster.parquet(a, columns=[]), "columns: an empty list came, at least one name is needed, or None for all columns"),
            (ValueError, lambda: muster.parquet(a, columns=["text", "text"]), "columns: 'text' came twice"),
            (ValueError, lambda: muster.parquet(a, columns=["x"]), "columns: a.parquet has no column 'x', only number, half, text"),
            (ValueError, lambda: muster.parquet([]), "paths: an empty list came, at least one file or glob pattern is needed"),
            (FileNotFoundError, lambda: muster.parquet("none-*.parquet"), f"paths: 'none-*.parquet' matches no file in {os.getcwd()}"),
            (ValueError, lambda: muster.parquet([a, glob]), "paths: a.parquet came 2 times, and each of its records would count as often"),
            (ValueError, lambda: muster.parquet(b), "paths: there are no records in b.parquet"),
            (ValueError, lambda: muster.parquet(a, cache_bytes=-1), "cache_bytes: -1 came, a number of bytes of at least 0 is needed"),
            (
                ValueError,
                lambda: muster.parquet([a, other], columns=["number"]),
                "other.parq: the column 'number' is of int32, and of int64 in a.parquet: the types must be the same",
            ),
            (ValueError, lambda: muster.parquet(self.path("empty.parq")), f"empty.parq: {NO_PARQUET}"),
            (ValueError, lambda: muster.parquet(self.path("text.parq")), f"text.parq: {NO_PARQUET}"),
            (
                ValueError,
                lambda: source.read(np.array([], np.int64)),
                "numbers: none came, at least one is needed: a batch has record_numbers if its dataset has `records: N`, and no files",
            ),
            (
                TypeError,
                lambda: source.read(np.zeros((2, 1))),
                "numbers: an array of float64 of shape (2, 1) came, whole numbers of one dimension are needed",
            ),
        ):
            self.assertEqual(self.said(kind, call), text)
        for number in (60, -1):
            self.assertEqual(
                self.said(IndexError, lambda: source.read(np.array([3, number]))),
                f"record {number}: the source has 60, 0 to 59: its dataset needs `records: 60` in the job file, or data_records=60 in muster.launch",
            )

    def test_without_pyarrow_it_says_what_to_do(self):
        path = self.three_files()
        with mock.patch.dict(sys.modules, {"pyarrow": None, "pyarrow.parquet": None}):
            said = self.said(ModuleNotFoundError, lambda: muster.parquet(path))
        self.assertEqual(said, "muster.parquet and muster.csv need pyarrow, which is not installed: call pip install pyarrow")


COLUMNS = {"text": "string", "price": "float32"}


class CsvTest(Files):
    def compressed(self, name, first, count, header="price,text,more\n"):
        """Records with a line end in quotes."""
        with gzip.open(self.path(name), "wt", encoding="utf-8") as file:
            file.write(header)
            for number in range(first, first + count):
                file.write(f'{number / 2},"line one, {number}\nline two",x\n')

    def test_reads_compressed_files_with_line_ends_in_quotes(self):
        self.compressed("a.csv.gz", 0, 30)
        self.compressed("b.csv.gz", 30, 12)
        source = muster.csv(self.path("*.gz"), COLUMNS)
        self.assertEqual(len(source), 42)
        table = source.read(np.array([41, 0, 29, 30]))
        self.assertEqual(table.column_names, ["text", "price"])
        self.assertEqual(str(table.schema.field("price").type), "float")
        self.assertEqual(table["price"].to_pylist(), [20.5, 0, 14.5, 15])
        self.assertEqual(table["text"].to_pylist(), [f"line one, {number}\nline two" for number in (41, 0, 29, 30)])
        self.assertEqual(source.reads, 2)

    def test_files_that_the_index_knows_are_not_read_to_open_them(self):
        self.compressed("a.csv.gz", 0, 30)
        index = self.path("index.json")
        self.assertEqual(len(muster.csv(self.path("*.gz"), COLUMNS, index=index)), 30)
        counted = []
        count = _source_formats.Csv._count
        with mock.patch.object(_source_formats.Csv, "_count", lambda self, path: (counted.append(os.path.basename(path)), count(self, path))[1]):
            self.assertEqual(len(muster.csv(self.path("*.gz"), COLUMNS, index=index)), 30)
            self.assertEqual(counted, [])
            self.compressed("b.csv.gz", 30, 12)
            self.assertEqual(len(muster.csv(self.path("*.gz"), COLUMNS, index=index)), 42)
            self.assertEqual(counted, ["b.csv.gz"])
            # Without a header, the first line is a record.
            names = ["price", "text", "more"]
            self.assertEqual(len(muster.csv(self.path("b.csv.gz"), {"price": "string"}, names=names, index=index)), 13)
            self.compressed("b.csv.gz", 30, 13)
            self.assertEqual(len(muster.csv(self.path("*.gz"), COLUMNS, index=index)), 43)
            self.assertEqual(counted, ["b.csv.gz"] * 3)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".part")], [])

    def test_a_delimiter_and_names(self):
        with open(self.path("plain.txt"), "w", encoding="ascii") as file:
            file.write("1;a,b\n2;c\n")
        source = muster.csv(self.path("plain.txt"), {"text": pa.string()}, names=["number", "text"], delimiter=";")
        self.assertEqual(source.read(np.array([1, 0]))["text"].to_pylist(), ["c", "a,b"])

    def test_a_file_that_was_changed_is_an_error(self):
        self.compressed("a.csv.gz", 0, 30)
        source = muster.csv(self.path("a.csv.gz"), COLUMNS)
        self.compressed("a.csv.gz", 0, 31)
        self.assertIn("a.csv.gz has changed since it was opened: its", self.said(muster.FailedPrecondition, lambda: source.read(np.array([0]))))

    def test_a_change_in_a_large_file_is_seen_in_its_first_and_last_blocks(self):
        with open(self.path("large.csv"), "w", encoding="ascii") as file:
            file.write("price\n" + "1.5\n" * 300_000)
        pins = [_source_formats.Csv({"price": "float32"}, None, ",", None).pin(self.path("large.csv"))]
        for place in (6, os.path.getsize(self.path("large.csv")) - 4):
            with open(self.path("large.csv"), "r+b") as file:
                file.seek(place)
                file.write(b"2")
            pins.append(_source_formats.Csv({"price": "float32"}, None, ",", None).pin(self.path("large.csv")))
        self.assertEqual(len(set(pins)), 3)

    def test_wrong_arguments_and_data_are_errors_that_say_what_is_allowed(self):
        with open(self.path("bad.csv"), "w", encoding="ascii") as file:
            file.write("price,text\n1.5,a\nsoon,b\n")
        with open(self.path("no.index"), "w", encoding="ascii") as file:
            file.write("[1]")
        path = self.path("bad.csv")
        for kind, call, text in (
            (TypeError, lambda: muster.csv(path, ["price"]), f"columns: ['price'] came, {NO_MAPPING}"),
            (TypeError, lambda: muster.csv(path, {}), f"columns: {{}} came, {NO_MAPPING}"),
            (
                ValueError,
                lambda: muster.csv(path, {"price": "real"}),
                "columns: 'price' came with 'real', a type of pyarrow or its name is needed, such as \"float32\" or \"string\"",
            ),
            (ValueError, lambda: muster.csv(path, COLUMNS, delimiter="::"), "delimiter: '::' came, one ASCII character is needed"),
            (TypeError, lambda: muster.csv(path, COLUMNS, names="price"), "names: the text 'price' came, a list of names is needed"),
            (ValueError, lambda: muster.csv(path, COLUMNS, names=["text", "x"]), "columns: 'price' is none of the names that came, text, x"),
            (
                ValueError,
                lambda: muster.csv(path, COLUMNS, index=self.path("no.index")),
                "index: no.index is not an index that muster.csv has written: remove it, or give another name",
            ),
        ):
            self.assertEqual(self.said(kind, call), text)
        self.assertRegex(self.said(ValueError, lambda: muster.csv(path, COLUMNS)), r"^bad\.csv: .*soon")
        self.assertRegex(self.said(ValueError, lambda: muster.csv(path, {"none": "string"})), r"^bad\.csv: .*none")


def group_of(registered, numbered):
    """A group that notes down what is registered, of a job with these datasets."""
    return muster.Group(mock.Mock(add_state=lambda name, values: registered.append((name, values.tolist()))), numbered)


class CheckTest(Files):
    def test_a_group_registers_the_digest(self):
        source = muster.parquet(self.three_files())
        registered = []
        source.check(group_of(registered, {"train": len(source), "test": 3}))
        self.assertEqual(registered, [(f"source {source.digest}", [0])])

    def test_a_job_that_does_not_read_all_records_is_an_error(self):
        source, registered = muster.parquet(self.three_files()), []
        for numbered, has in (({"train": 59, "test": 61}, '"train" has 59, "test" has 61'), ({}, "none has numbers as records")):
            self.assertEqual(
                self.said(muster.FailedPrecondition, lambda: source.check(group_of(registered, numbered))),
                f"source: the source has 60 records, and no dataset of the job has as many ({has}): give `records: 60` in the job file, or "
                "data_records=60 in muster.launch",
            )
        self.assertEqual(registered, [])

    def test_a_job_reads_each_record_once_and_refuses_a_worker_with_other_files(self):
        self.write("train-0.parquet", 0, 300, group=100)
        self.write("train-1.parquet", 300, 340, group=100)
        self.write("test.parquet", 0, 64)
        run = job.Job(self, self.folder, trainer=TRAINER, epochs=2, numbered=True)
        self.assertEqual(run.wait(), 0, run.log())
        self.assertEqual(run.summary()["metrics"]["test"]["number"], 31.5)
        run.ask("export", "job.yaml", "--output-dir", "out")
        keys, values = (np.load(run.path(f"out/rows.{part}.npy")) for part in ("keys", "values"))
        np.testing.assert_array_equal(np.sort(keys), np.arange(640))
        np.testing.assert_array_equal(values, 2)
        self.assertIn('some: the source has 300 records, and no dataset of the job has as many ("test" has 64, "train" has 640): ', run.read("other-count"))
        self.assertRegex(
            run.read("refused"),
            r"^source: this worker has opened other files than the worker that came first, or in another order, or they have changed since the job "
            r"began\. Here are 640 records in 2 files, from .*train-1\.parquet to .*train-0\.parquet$",
        )


if __name__ == "__main__":
    unittest.main()
