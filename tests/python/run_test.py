"""Jobs that Python starts, with the installed wheel: run it with the Python that has it (wheel_test.py does)."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import muster

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launched  # noqa: E402
from job import MUSTER, processes  # noqa: E402

SCRIPT = os.path.abspath(launched.__file__)
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: slow}}
spec:
  datasets: [{{name: train, records: 1000, epochs: 1000, minibatchSize: 16}}]
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs: {{ps: {{replicas: 1}}, worker: {{replicas: 1, minReplicas: 1, maxReplicas: 3, command: {command}}}}}
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-python-run-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        launched.FOLDER = self.folder
        # All processes of a job work in the folder where it was launched.
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)

    def launch(self, function, **more):
        before = os.getcwd()
        os.chdir(self.work)
        try:
            return launched.launch(function, **more)
        finally:
            os.chdir(before)

    def assert_nothing_left(self):
        self.assertEqual([processes.command_line(pid) for pid in processes.wait_none_under(self.work, 20)], [])

    def script(self, mode):
        run = subprocess.Popen([sys.executable, SCRIPT, mode, self.folder], cwd=self.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def slow_job(self):
        """A job file whose job goes on until somebody ends it."""
        path = os.path.join(self.work, "job.yaml")
        worker = "import launched, muster; launched.count_slowly(muster.connect())"
        with open(path, "w", encoding="ascii") as file:
            command = json.dumps(["env", f"PYTHONPATH={os.path.dirname(SCRIPT)}", sys.executable, "-c", worker])
            file.write(JOB.format(command=command))
        return path

    def test_a_function_of_a_module(self):
        with self.launch(launched.count, epochs=3, test_records=64) as job:
            self.assertTrue(processes.working_under(self.work), "the check for what is left sees the job")
        self.assertFalse(job.running)
        self.assertEqual(job.status()["state"], "succeeded")
        table = job.metrics()
        self.assertEqual(table["dataset"], ["train"] * 3 + ["test"] * 3)
        self.assertEqual(table["mode"], ["train"] * 3 + ["evaluate"] * 3)
        self.assertEqual(table["epoch"], [0, 1, 2] * 2)
        self.assertEqual(table["records_committed"], [1000] * 3 + [64] * 3)
        self.assertEqual(table["number"], [499.5] * 3 + [31.5] * 3)
        self.assertIn("epoch-committed", {event["kind"] for event in job.events()})
        self.assertEqual(len(job.events(last=2)), 2)
        self.assertIn("succeeded", job._repr_html_())
        with self.assertRaisesRegex(muster.Unavailable, "no job runs"):
            job.scale(workers=3)
        self.assert_nothing_left()

    def test_a_function_of_a_script(self):
        run = self.script("train")
        said, _ = run.communicate(timeout=100)
        self.assertEqual(run.returncode, 0, said)
        told = json.loads(said)
        self.assertEqual((told["status"], told["summary"]), ("succeeded", "succeeded"))
        self.assertEqual(told["metrics"]["records_committed"], [1000, 1000, 64, 64])

    def test_a_function_that_workers_cannot_import(self):
        def inner(session):
            pass

        try:
            import cloudpickle  # noqa: F401
        except ModuleNotFoundError:
            for function in (inner, lambda session: None):
                with self.assertRaisesRegex(muster.InvalidArgument, "workers cannot import .*install cloudpickle"):
                    self.launch(function)
        with self.assertRaisesRegex(muster.InvalidArgument, "function: 3 cannot be called"):
            self.launch(3)

    def test_what_is_refused_starts_nothing(self):
        for more, what in (
            ({"epochs": 0}, r"spec\.datasets\[0\]\.epochs: 0 is out of bounds"),
            ({"name": "No"}, 'metadata.name: the text "No" is not a name'),
            ({"data": "x"}, "--data and --data-records are both given"),
            ({"shuffle": "maybe"}, "shuffle"),
        ):
            with self.assertRaisesRegex(muster.InvalidArgument, what):
                self.launch(launched.count, **more)
        with self.assertRaisesRegex(muster.InvalidArgument, "nothing to train on"):
            muster.launch(launched.count, state_directory=os.path.join(self.folder, "state"))
        with self.assertRaisesRegex(muster.InvalidArgument, "none.yaml"):
            muster.run(os.path.join(self.folder, "none.yaml"))
        os.environ["MUSTER_NODE"] = "worker-0"
        self.addCleanup(os.environ.pop, "MUSTER_NODE")
        with self.assertRaisesRegex(muster.FailedPrecondition, "is a worker of a job"):
            self.launch(launched.count)
        self.assert_nothing_left()

    def test_a_failed_job_raises_its_reason(self):
        job = self.launch(launched.fail)
        with self.assertRaises(muster.JobFailed) as raised:
            job.wait()
        self.assertEqual(raised.exception.exit_code, 1)
        self.assertIn("FAILED", str(raised.exception))
        self.assertEqual(str(raised.exception), raised.exception.summary["reason"])
        self.assertEqual(raised.exception.summary["state"], "failed")

    def test_a_running_job_answers_and_takes_orders(self):
        job = muster.run(self.slow_job())
        self.addCleanup(job.stop, now=True)
        with self.assertRaises(TimeoutError):
            job.wait(0)
        self.assertIn(job.status()["state"], ("running",))
        self.assertRegex(job.dashboard_url, r"^http://127\.0\.0\.1:\d+/")
        self.assertGreater(job.scale(workers=2), 0)
        self.assertEqual({node["role"] for node in job.nodes()} - {"master", "scaler", "ps", "worker"}, set())
        self.assertTrue(all(math.isfinite(records) for records in job.metrics()["records_committed"]))
        self.assertIn("running", repr(job))
        # The same call resumes it.
        self.assertEqual(job.stop()["state"], "drained")
        with self.assertRaisesRegex(RuntimeError, "of the block"), muster.run(self.slow_job()) as again:
            launched.await_worker(again)  # a run that has not started its workers yet is stopped instead
            raise RuntimeError("of the block")
        self.assertEqual(again.wait()["state"], "drained")
        self.assertEqual(again.stop(now=True)["state"], "drained")
        self.assert_nothing_left()

    def test_stop_now(self):
        job = muster.run(self.slow_job())
        self.assertEqual(job.stop(now=True)["state"], "stopped")
        self.assert_nothing_left()

    def test_nothing_outlives_a_script_that_is_killed(self):
        run = self.script("orphan")
        pid = json.loads(run.stdout.readline())["pid"]
        self.assertIn("--end-with", processes.command_line(pid))
        run.kill()
        self.assert_nothing_left()

    def test_ctrl_c_drains_the_job_of_a_with_block(self):
        run = self.script("interrupted")
        json.loads(run.stdout.readline())
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=100)
        self.assertEqual(run.returncode, -signal.SIGINT)
        self.assert_nothing_left()
        state = json.loads(
            subprocess.run([MUSTER, "status", "--state-dir", os.path.join(self.folder, "state"), "--output", "json"], capture_output=True, check=True).stdout
        )
        self.assertEqual(state["state"], "drained")


if __name__ == "__main__":
    unittest.main()
