"""Jobs whose workers are Python, with the installed wheel: run it with the Python that has it (wheel_test.py does)."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402
from job import processes  # noqa: E402

MISUSE = [
    "TypeError: keys: a list came, an array of uint64 is needed: call numpy.asarray(keys, dtype=numpy.uint64), or keys.detach() for a "
    "tensor with a gradient",
    "TypeError: keys: an array of int64 came, uint64 is needed: call keys.astype(numpy.uint64)",
    "ValueError: keys: the array is not contiguous in C order: call numpy.ascontiguousarray(keys)",
    "ValueError: gradients: shape (5, 1) came, (6, 1) is needed, the shape of keys and the table's dim",
    "TypeError: gradients: an array of float64 came, float32 is needed: call gradients.astype(numpy.float32)",
    "ValueError: gradients: shape (6, 1) came, (2, 3, 1) is needed, the shape of keys and the table's dim",
    "ValueError: gradient: shape (3, 1) came, (3,) is needed, the shape of the tensor",
    "ValueError: scores: shape (2, 2) came, one dimension is needed: call scores.ravel()",
    "ValueError: labels: shape (3,) came, (2,) is needed, one for each of scores",
    "TypeError: labels: an array of int64 came, bool is needed: call labels.astype(numpy.bool)",
    "IndexError: record 1000000: the minibatch has 32",
    "ValueError: dim: 1 to 65536 is allowed, 0 came",
    "ValueError: shape: a number, or several, each at least 1, are needed",
    "ValueError: assignment destination is read-only",
    "FailedPrecondition: this minibatch belongs to the thread that runs its loop: use it there, or run a loop of its own in each thread",
]
WRONG_OUTPUTS = [
    "ValueError: value: shape (2, 2, 2) came, (n,) or (n, columns) is needed: call value.reshape(len(value), -1)",
    "TypeError: value: an array of float64 came, float32 is needed: call value.astype(numpy.float32)",
    "TypeError: value: a str came, an array of float32 is needed: call numpy.asarray(value, dtype=numpy.float32), or value.detach() for a "
    "tensor with a gradient",
]
FORKED = "FailedPrecondition: this process was forked from one that has a session, and cannot use it: start processes with exec"


class JobTest(unittest.TestCase):
    def assert_trained(self, of):
        for dataset in of.summary()["datasets"]:
            records = {"train": of.records, "rows": of.records, "lines": 100}.get(dataset["name"], 64)
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], records, dataset["name"])

    def test_learns_with_two_workers(self):
        run = job.Job(self, "learn", epochs=5, records=3200)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.5, "untrained: about 7")
        batches, changed = 0, 0
        for worker in range(2):
            self.assertTrue(os.path.exists(run.path(f"learned-worker-{worker}")), f"it has failed\n{run.log()}")
            of_worker = [int(number) for number in run.read(f"learned-worker-{worker}").split()]
            self.assertGreater(of_worker[0], 0)
            batches, changed = batches + of_worker[0], changed + of_worker[1]
        self.assertEqual(batches, 5 * (100 + 1))
        self.assertGreater(changed, 100, "the weights that were kept are of many versions")

    def test_each_record_number_counts_once_per_epoch(self):
        run = job.Job(self, "count", epochs=3, records=1000, numbered=True, predict=job.PREDICT)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertEqual(run.summary()["metrics"]["test"]["number"], 31.5)
        run.ask("export", "job.yaml", "--output-dir", "out")
        keys, values = (np.load(run.path(f"out/rows.{part}.npy")) for part in ("keys", "values"))
        np.testing.assert_array_equal(np.sort(keys), np.arange(1000))
        np.testing.assert_array_equal(values, 3)
        rows = [np.load(run.path(f"rows/{name}")) for name in sorted(os.listdir(run.path("rows"))) if name.endswith(".npy")]
        np.testing.assert_array_equal(np.concatenate(rows), np.column_stack([np.arange(1000), np.full(1000, 3)]))
        self.assertEqual(sorted(os.listdir(run.path("lines"))), [*(f"lines-{shard:08}.out" for shard in range(4)), "muster-job"])
        lines = "".join(run.read(f"lines/lines-{shard:08}.out") for shard in range(4))
        self.assertEqual(lines, "".join(f"{number} 3\n" for number in range(100)))
        self.assertEqual(run.read("output").split("\n"), WRONG_OUTPUTS)

    def test_an_exception_fails_the_shard_with_its_text(self):
        run = job.Job(self, "raise")
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertRegex(run.ask("events", "job.yaml"), r"ValueError: planted\n *in two lines \(trainer\.py:\d+\)\n")

    def test_an_exception_in_parse_fails_the_shard_with_its_text(self):
        run = job.Job(self, "parse", failures_max=1)
        self.assertEqual(run.wait(), 1, run.log())
        self.assertRegex(run.ask("shards", "job.yaml"), r"LookupError: planted in parse \(trainer\.py:\d+\)")

    def test_hooks_run_once_and_may_fail_the_shard(self):
        run = job.Job(self, "hooks", workers=1, failures_max=5)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        for way in range(3):
            self.assertRegex(run.ask("events", "job.yaml"), rf"ValueError: planted at commit {way} \(trainer\.py:\d+\)")
        self.assertNotIn("AssertionError", run.log())

    def test_parse_runs_in_processes(self):
        run = job.Job(self, "pool", workers=1)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertTrue(os.path.exists(run.path("killed")))
        processes = [int(name.removeprefix("process-")) for name in os.listdir(run.folder) if name.startswith("process-")]
        self.assertGreaterEqual(len(processes), 2)
        self.assertEqual(job.processes.wait_gone(processes, 30), [], "they go with their parent")
        said = run.read("said").split("\n")
        for text in said[:2]:
            self.assertRegex(text, r"TypeError: parse: <.*> cannot be sent to a process \(.*\): give a function of a module, not a lambda")
        self.assertEqual(said[2:], [
            "ValueError: parse_processes: -1 came, at least 1 is needed, or 0 for no processes",
            "ValueError: parse: None came with parse_processes=2: give a function",
            "ValueError: prepare: it came without parse_processes: let `parse` do what it does",
        ])

    def test_an_exception_in_a_process_of_parse_fails_the_shard_with_its_text(self):
        run = job.Job(self, "pool-raise", workers=1)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertRegex(run.ask("events", "job.yaml"), r"LookupError: planted in parse \(trainer\.py:\d+\)")

    def waiting(self, mode):
        """A job whose worker waits for a server that is stopped, and the pids of both."""
        run = job.Job(self, mode, workers=1)
        worker = int(run.await_file("ready"))
        server, = processes.nodes(run.run.pid, "trainer.py")["ps"]
        os.kill(server, signal.SIGSTOP)
        self.addCleanup(processes.send, server, signal.SIGCONT)
        with open(run.path("go"), "w", encoding="ascii"):
            pass
        run.await_file("waiting")
        return run, worker, server

    def test_a_loop_that_is_closed_in_a_wait_ends_after_it(self):
        run, worker, server = self.waiting("close")
        os.kill(worker, signal.SIGUSR1)
        run.await_file("closed")
        os.kill(server, signal.SIGCONT)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertNotRegex(run.log(), r"signal 11|signal 6|Fatal")

    def test_ctrl_c_ends_a_worker_that_waits(self):
        run, worker, server = self.waiting("wait")
        os.kill(worker, signal.SIGINT)
        self.assertEqual(processes.wait_gone([worker], 30), [], "it waits on")
        os.kill(server, signal.SIGCONT)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertRegex(run.log(), re.compile(r"# WAITS\n.*KeyboardInterrupt", re.S))
        self.assertNotIn("Fatal Python error", run.log())

    def test_a_signal_may_tell_a_worker_that_waits_to_leave(self):
        run = job.Job(self, "leave", records=64)
        holder = run.await_file("holds")
        waiting, = {"worker-0", "worker-1"} - {holder}
        pid = int(run.await_file(f"pid-{waiting}"))
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(run.await_file(f"left-{waiting}"), "0", run.log())
        with open(run.path("go"), "w", encoding="ascii"):
            pass
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)

    def test_wrong_arguments_and_forks_are_errors_that_say_what_to_do(self):
        run = job.Job(self, "misuse", workers=1)
        self.assertEqual(run.wait(), 0, run.log())
        self.assert_trained(run)
        self.assertEqual(run.read("misuse").split("\n"), MISUSE)
        said = run.read("fork").split("\n")
        self.assertEqual([text.startswith(FORKED) for text in said], [True] * 5, said)


class ImportTest(unittest.TestCase):
    def python(self, code):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout

    def test_imports_neither_numpy_nor_torch_nor_pyarrow(self):
        self.assertEqual(self.python("import muster, sys; print([n for n in ('numpy', 'pyarrow', 'torch') if n in sys.modules])"), "[]\n")

    @unittest.skipIf(importlib.util.find_spec("torch"), "torch is installed")
    def test_without_torch_its_part_says_what_to_do(self):
        said = self.python("try: import muster.torch\nexcept ModuleNotFoundError as error: print(error)")
        self.assertEqual(said, "muster.torch needs PyTorch, which is not installed: call pip install torch\n")

    @unittest.skipIf(importlib.util.find_spec("tensorflow"), "tensorflow is installed")
    def test_without_tensorflow_its_part_says_what_to_do(self):
        said = self.python("try: import muster.tensorflow\nexcept ModuleNotFoundError as error: print(error)")
        self.assertEqual(said, "muster.tensorflow needs TensorFlow, which is not installed: call pip install tensorflow\n")

    def test_without_a_job_connect_says_what_to_do(self):
        said = self.python("import muster\ntry: muster.connect()\nexcept muster.InvalidArgument as error: print(error)")
        self.assertIn("start the trainer with `muster run`", said)

    def test_a_master_that_does_not_answer(self):
        said = self.python(
            "import muster\n"
            "try: muster.connect(master_address='127.0.0.1:1', worker_name='worker-0', connect_timeout=0)\n"
            "except muster.Unavailable as error: print('unavailable')"
        )
        self.assertEqual(said, "unavailable\n")

    def test_optimizers_are_values(self):
        self.assertEqual(self.python("import muster; print(muster.Adam().learning_rate, muster.Adagrad(0.5, epsilon=1).epsilon)"), "0.0010000000474974513 1.0\n")

    def test_an_exception_is_described_as_text(self):
        said = self.python("import muster.errors as errors; print(ascii(errors.describe(ValueError('a\\udcff'))))")
        self.assertEqual(said, "'ValueError: a\\\\udcff'\n")

    def test_types_are_shipped(self):
        import muster

        folder = os.path.dirname(muster.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        with open(os.path.join(folder, "_muster.pyi"), encoding="utf-8") as file:
            stubs = file.read()
        for name in muster.__all__:
            kind = getattr(muster, name)
            if getattr(kind, "__module__", "") == "muster._muster":
                self.assertRegex(stubs, rf"class {name}\b")
                for member in vars(kind):
                    if not member.startswith("_"):
                        self.assertRegex(stubs, rf"(def {member}\(|{member}:)", name)


if __name__ == "__main__":
    unittest.main()
