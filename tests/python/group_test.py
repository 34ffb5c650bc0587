"""Groups whose members are Python with NumPy, with the installed wheel; see job_test.py."""

import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402
from job import processes  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "group_trainer.py")
EPOCHS, STEPS = 3, 5  # of training, and of each of its epochs
MISUSE = [
    "ValueError: frozen: the array is read-only: call frozen.copy()",
    "TypeError: list: a list came, an array of float32 is needed: call numpy.asarray(list, dtype=numpy.float32), or list.detach() for a "
    "tensor with a gradient",
    "ValueError: order: the array is not contiguous in C order: call numpy.ascontiguousarray(order)",
    "ValueError: elements: at least 1 is allowed, 0 came",
    'ValueError: type: "float8" came, one of "fixed_point", "float32", "bfloat16" is needed',
    "ValueError: fraction_bits: 0 to 40 is allowed, 41 came",
    "FailedPrecondition: this process has a muster::Group already, and may have only one at a time: use it, or destroy it before "
    "Session::Group is called again",
    "ValueError: gradient: 2 elements came, 3 are needed, those of the bucket",
    "TypeError: gradient: an array of float16 came, float32 is needed: call gradient.astype(numpy.float32)",
    "ValueError: gradient: the array is not contiguous in C order: call numpy.ascontiguousarray(gradient)",
    "FailedPrecondition: sum() is only for the function that commit() is given",
    "FailedPrecondition: a step has one loop over its minibatches",
    "FailedPrecondition: this group belongs to the thread that asked for its first step: use it there",
    "FailedPrecondition: commit() inside of another call of the step",
    "FailedPrecondition: the step is over: ask the group for the next one",
    "FailedPrecondition: the group is closed: make another one",
]
FORKED = "FailedPrecondition: this process was forked from one that has a session, and cannot use it: start processes with exec"


class GroupTest(unittest.TestCase):
    def group(self, mode, workers=2):
        return job.Job(self, mode, trainer=TRAINER, members=workers, workers=workers, epochs=EPOCHS)

    def weights(self, run):
        """Of the members, which must have the same."""
        self.assertEqual(run.wait(), 0, run.log())
        for dataset in run.summary()["datasets"]:
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], run.records if dataset["name"] == "train" else 64)
        names = [name for name in os.listdir(run.folder) if name.startswith("weights-")]
        weights = {run.read(name) for name in names}
        self.assertEqual((len(names), len(weights)), (2, 1), run.log())
        return weights.pop()

    def test_weights_do_not_depend_on_a_kill_or_on_an_exception(self):
        undisturbed = self.group("learn")
        weights = self.weights(undisturbed)
        steps = int.from_bytes(bytes.fromhex(weights.split()[2]), "little")
        self.assertEqual(steps, EPOCHS * STEPS)
        self.assertLess(undisturbed.summary()["metrics"]["test"]["loss"], 0.3, "untrained: 1.27")
        for mode, happened in (("kill", "killed"), ("raise", "raised"), ("apply", "raised")):
            with self.subTest(mode):
                run = self.group(mode)
                self.assertEqual(self.weights(run), weights)
                self.assertTrue(os.path.exists(run.path(happened)), run.log())
                if mode == "raise":
                    self.assertRegex(run.ask("events", "job.yaml"), r"ValueError: planted in the loop \(group_trainer\.py:\d+\)")
                if mode == "apply":
                    self.assertEqual(run.read("raised"), "planted in apply 3")
                    self.assertEqual(run.read("copied-worker-1"), "1")

    def test_an_exception_that_ends_a_member_is_among_the_events(self):
        run = self.group("end")
        self.weights(run)
        # Besides, it is the reason of the step's failure if the master has heard of that before the process left.
        self.assertRegex(run.ask("events", "job.yaml"), re.compile(r"exit worker-1 .*\n    ValueError: planted in the loop\n", re.S))

    def test_local_steps_bring_the_weights_together(self):
        run = self.group("local")
        self.weights(run)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.3, "untrained: 1.27")

    def test_ctrl_c_ends_a_member_that_waits_for_another(self):
        run = self.group("wait")
        member = int(run.await_file("waiting"))
        run.await_file("holds")
        os.kill(member, signal.SIGINT)
        self.assertEqual(processes.wait_gone([member], 30), [], "it waits on")
        with open(run.path("go"), "w", encoding="ascii"):
            pass
        self.weights(run)
        self.assertRegex(run.log(), re.compile(r"# WAITS\n.*KeyboardInterrupt", re.S))
        self.assertNotIn("Fatal Python error", run.log())

    def test_wrong_arguments_are_errors_that_say_what_to_do(self):
        run = self.group("misuse", workers=1)
        self.assertEqual(run.wait(), 0, run.log())
        self.assertEqual(run.read("misuse").split("\n"), MISUSE)
        said = run.read("fork").split("\n")
        self.assertEqual([text.startswith(FORKED) for text in said], [True] * 5, said)


if __name__ == "__main__":
    unittest.main()
