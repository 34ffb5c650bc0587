"""Jobs whose workers use PyTorch, with the installed wheel: run it with the Python that has both (wheel_test.py --torch does)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_trainer.py")
FLIGHTS = os.path.join(job.ROOT, "examples", "python", "flights")

MISUSE_IN_PARSE = [
    "TypeError: keys: a list came, an array or a tensor of uint64 or int64 is needed: call numpy.asarray(keys)",
    "TypeError: keys: an array of float32 came, uint64 or int64 is needed: call keys.astype(numpy.uint64)",
    "TypeError: keys: a tensor of torch.float32 came, torch.uint64 or torch.int64 is needed: call keys.to(torch.int64)",
    "TypeError: keys: a tensor of torch.bfloat16 came, torch.uint64 or torch.int64 is needed: call keys.to(torch.int64)",
    "ValueError: keys: -3 came at position 2, 0 to 18446744073709551615 is allowed: if they are hashes, call keys.view(numpy.uint64), or "
    "keys.view(torch.uint64) for a tensor",
    "TypeError: keys: the tensor is on meta: call keys.cpu()",
    "ValueError: features['item']: -1 came at position 1, 0 to 18446744073709551615 is allowed: if they are hashes, call "
    "features['item'].view(numpy.uint64), or features['item'].view(torch.uint64) for a tensor",
    "TypeError: features: an empty dict came, a mapping from at least one name to keys is needed",
    "ValueError: keys: it has weights, which only an EmbeddingBag can use",
    "ValueError: offsets: keys of one dimension need them: give offsets, or keys of shape [bags, n]",
    "TypeError: offsets: a list came, an array or a tensor of uint64 or int64 is needed: call numpy.asarray(offsets)",
    "TypeError: offsets: an array of float64 came, uint64 or int64 is needed: call offsets.astype(numpy.uint64)",
    "ValueError: offsets: 4 at position 1 is followed by 2: they must not decrease",
    "ValueError: offsets: 7 came at position 2, at most the number of keys, 6, is allowed",
    "ValueError: offsets: the first one is 1, and must be 0",
    "ValueError: offsets: none came for 6 keys, at least one is needed",
    "ValueError: offsets: shape (1, 2) came, one dimension is needed",
    "ValueError: keys: shape (2, 3) came, with offsets one dimension is needed",
    "ValueError: weights: shape (6,) came, (2, 3) is needed, the shape of the keys",
    "TypeError: weights: torch.float64 came, float32 is needed: call weights.astype(numpy.float32), or weights.float() for a tensor",
    'ValueError: weights: they came with mode \'mean\', and only bags of mode "sum" have weights',
    'ValueError: mode: \'max\' came, "sum" or "mean" is allowed',
    "TypeError: table: a str came, what session.table() returns is needed",
    "TypeError: module: a str came, a torch.nn.Module is needed",
    "ValueError: module: ReLU has no parameters to train: use it without dense()",
    "TypeError: weight: torch.float64 came, torch.float32, torch.float16, torch.bfloat16 is allowed: call module.float()",
    "TypeError: weight: it is on the device meta with layout torch.strided: a strided tensor with memory is needed",
    "ValueError: name: 'Big' came, small letters, digits, - and _ are allowed, and the first is a letter",
    "ValueError: initializers: no parameter or buffer is called 'wieght', only bias, weight",
    "ValueError: weight: servers make the first values of a parameter, and do not know how to make those of Linear.weight here: give "
    "initializers={'weight': muster.Uniform(low=..., high=...)}, or muster.Normal or muster.Constant",
    "ValueError: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.weight: its tensor would be called "
    "'deep-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-weight', and 64 letters are allowed: shorten `name`, or the "
    "model's names",
]
MISUSE_IN_LOOP = [
    'TypeError: lookup: a ndarray came, and table "rows" takes what need() returned: call need(batch, keys) in `parse`, and give its '
    "result here",
    'ValueError: lookup: it is of table "rows", and this is table "other": call need() of this one in `parse` as well',
    'FailedPrecondition: dense part "part": a gradient came outside of a minibatch that has asked for it: call need(batch) in `parse`, '
    "and backward() before the minibatch ends",
    'FailedPrecondition: the minibatch of this lookup in table "rows" is over: use it before `with batch:` ends, and call need() again '
    "for another minibatch",
    'FailedPrecondition: dense part "dense": a gradient came outside of a minibatch that has asked for it: call need(batch) in `parse`, '
    "and backward() before the minibatch ends",
]


class TorchTest(unittest.TestCase):
    maxDiff = None

    def train(self, mode, **options):
        run = job.Job(self, mode, trainer=TRAINER, **options)
        self.assertEqual(run.wait(timeout=300), 0, run.log())  # PyTorch takes long to begin
        for dataset in run.summary()["datasets"]:
            records = run.records if dataset["name"] == "train" else 64
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], records, dataset["name"])
        return run

    def test_learns_with_two_workers(self):
        run = self.train("learn", epochs=5, records=1600)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.5, "untrained: about 7")
        self.assertEqual(run.read("batches"), str(5 * 50), "a buffer counts each minibatch once")

    def test_learns_from_a_dataset_of_pytorch(self):
        run = self.train("dataset", workers=1, records=1600)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 3, "untrained: about 7")
        self.assertEqual(run.read("batches"), str(50))

    def test_import_does_not_bring_the_compiler(self):
        code = "import muster.torch, sys; print('torch._dynamo' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout, "False\n")

    def test_bags_and_gradients_are_those_of_pytorch(self):
        run = self.train("check", workers=1)
        self.assertEqual(run.read("checked"), "20")

    def test_gradients_that_are_no_numbers_fail_the_shard(self):
        run = self.train("nan", workers=1)
        self.assertRegex(run.ask("events", "job.yaml"), r'table \\?"(network-|rows)')
        self.assertEqual(run.read("batches"), "20")

    def test_wrong_uses_are_errors_that_say_what_to_do(self):
        run = self.train("misuse", workers=1, failures_max=5)
        self.assertEqual(run.read("misuse").split("\n"), MISUSE_IN_PARSE)
        self.assertEqual(run.read("misuse-in-loop").split("\n"), MISUSE_IN_LOOP)
        self.assertEqual(run.read("misuse-later"), MISUSE_IN_LOOP[3])
        events = run.ask("events", "job.yaml")
        self.assertIn('weight has shape (1, 3) now, and had (1, 2) when it was registered: a shape cannot change', events)
        self.assertIn('dense part "part": weight has changed, but it is not on the servers', events)


class FlightsTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-flights-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_keys_are_those_of_the_cpp_example(self):
        sys.path.insert(0, FLIGHTS)
        from flight_records import FlightParser

        header = b"year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
        good = b"2013,1,1,517,515,2,830,819,%s,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z"
        lines = [good % b"11", b"1,2", good % b"16", good % b"NA", good % b"-3", (good % b"1").replace(b"2013,1,", b"2013,13,"), good % b"soon",
                 (good % b"1").replace(b"N14228", b"")]
        rejected = []
        keys, labels = FlightParser(header).parse(lines, lambda *reason: rejected.append(reason))
        values = [b"1", b"1-1", b"UA", b"UA-1545", b"N14228", b"EWR", b"IAH", b"5", b"15"]
        self.assertEqual(keys.tolist(), [[key_of(field, value) for field, value in enumerate(values)]] * 4)
        self.assertEqual(labels.tolist(), [0, 1, 1, 0])
        self.assertEqual(rejected, [(1, "2 columns where the header has 19"), (5, "month is '13', not 1 to 12"),
                                    (6, "arr_delay is 'soon', not minutes or NA"), (7, "tailnum is '', not a name")])
        with self.assertRaisesRegex(ValueError, "no column 'arr_delay'"):
            FlightParser(header.replace(b"arr_delay", b"late"))

    def test_document_shows_the_trainer(self):
        with open(os.path.join(FLIGHTS, "flights_trainer.py"), encoding="utf-8") as file:
            trainer = file.read()
        with open(os.path.join(job.ROOT, "docs", "python.md"), encoding="utf-8") as file:
            section = file.read().split("\n## PyTorch: embeddings", 1)[1].split("\n## ", 1)[0]
        blocks = re.findall(r"^```py\n(.*?)^```$", section, re.M | re.S)
        self.assertEqual([block in trainer for block in blocks], [True] * 3)

    def test_job(self):
        subprocess.run([os.path.join(job.ROOT, "examples", "flights", "prepare_data"), self.folder], check=True)
        with open(os.path.join(self.folder, "train.csv"), encoding="ascii") as file:
            lines = [line for _, line in zip(range(40_001), file)]
        with open(os.path.join(self.folder, "train.csv"), "w", encoding="ascii") as file:
            file.writelines(lines)
        for name in ("deepfm.py", "flight_records.py", "flights_trainer.py", "job.yaml"):
            shutil.copy(os.path.join(FLIGHTS, name), self.folder)
        environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
        run = subprocess.run([job.MUSTER, "run", "job.yaml"], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        with open(os.path.join(self.folder, "state", "summary.json"), encoding="utf-8") as file:
            auc = float(re.search(r'"auc": *([0-9.]+)', file.read())[1])
        self.assertGreater(auc, FLIGHTS_AUC_MIN)


# Of 40,000 records; the embeddings without training reach 0.5.
FLIGHTS_AUC_MIN = 0.73


def key_of(field, value):
    """FieldKey of examples/flights/flight_record.cc."""
    state = 0xCBF29CE484222325
    for byte in bytes([field]) + value:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 31


if __name__ == "__main__":
    unittest.main()
