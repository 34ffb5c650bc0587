"""ElasticDDP, with the installed wheel and PyTorch: run it with the Python that has both (wheel_test.py --torch does)."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import numpy
import torch
from torch import nn

import muster.torch
from muster.torch import _dense
from muster.torch._buffers import _Followed
from muster.torch._optimizer_state import OptimizerState, Rates

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp_trainer.py")
EXAMPLE = os.path.join(job.ROOT, "examples", "python", "group")
EPOCHS, STEPS = 3, 5  # of training, and of each of its epochs
MISUSE = [
    [
        "RuntimeError: backward() a second time in one minibatch: put all but the last into `with ddp.no_sync():`",
        "RuntimeError: no_sync() after a backward() outside of it, whose gradients are handed over: the last backward() must be outside",
        "RuntimeError: optimizer.step() is called by step.commit(), with the gradients of all members: leave it out",
        "RuntimeError: load_state_dict: the group has begun, and its members have its state: load before the first step",
        "RuntimeError: parameter '0.weight' has the shape (4, 4), and was registered with (8, 2): the shapes of a group cannot change",
        "RuntimeError: parameter '0.weight' has other memory than when ElasticDDP was made: move or convert the module before, and "
        "change values in place, for example by copy_()",
        "RuntimeError: parameter '0.more' is not registered with the group: make ElasticDDP when the module is complete",
        "RuntimeError: buffer '0.more' is not registered with the group: make ElasticDDP when the module is complete",
        "RuntimeError: buffer '1.running_mean' was replaced by another tensor: change it in place, for example by copy_()",
        "RuntimeError: parameter '0.weight': its requires_grad was changed after ElasticDDP was made: change it before",
        "RuntimeError: optimizer: its parameters are not those that it had when ElasticDDP was made: add groups before",
        "RuntimeError: buffer '1.flag' of torch.bool was changed, which would be this member's alone: register it with "
        "persistent=False, or keep real numbers in it",
    ],
    [
        "RuntimeError: parameter '0.weight' was changed outside of step.commit(), which would be this member's alone: change it before "
        "the first step, or in before_step",
    ],
    ["RuntimeError: backward() in an evaluation, which has no gradients: check step.evaluate before"],
]


class ElasticDDPTest(unittest.TestCase):
    maxDiff = None

    def group(self, mode, members=2, **options):
        return job.Job(self, mode, trainer=TRAINER, members=members, epochs=EPOCHS, **options)

    def finish(self, run):
        self.assertEqual(run.wait(), 0, run.log())
        for dataset in run.summary()["datasets"]:
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], run.records if dataset["name"] == "train" else 64)

    def weights(self, run):
        """Of the members, which must have the same."""
        self.finish(run)
        names = [name for name in os.listdir(run.folder) if name.startswith("weights-")]
        weights = {run.read(name) for name in names}
        self.assertEqual((len(names), len(weights)), (2, 1), run.log())
        return weights.pop()

    def test_weights_do_not_depend_on_a_kill_an_exception_nan_or_a_scale(self):
        undisturbed = self.group("learn")
        weights = self.weights(undisturbed)
        self.assertLess(undisturbed.summary()["metrics"]["test"]["loss"], 0.9, "untrained: 1.27")
        for mode, happened in (("kill", "killed"), ("apply", "raised"), ("nan", "nan"), ("scale", "scaled")):
            with self.subTest(mode):
                run = self.group(mode)
                self.assertEqual(self.weights(run), weights)
                self.assertTrue(os.path.exists(run.path(happened)), run.log())
                if mode == "nan":
                    self.assertRegex(run.ask("events", "job.yaml"), r"gradient of \d\.(weight|bias)")
        loads = next(name for name in os.listdir(undisturbed.folder) if name.startswith("state-"))
        state = torch.load(undisturbed.path(loads), weights_only=True)
        module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
        module.load_state_dict(state["module"])
        self.assertEqual(module[1].num_batches_tracked, EPOCHS * STEPS, "a step counts once")
        torch.optim.AdamW(module.parameters()).load_state_dict(state["optimizer"])

    def test_a_step_is_one_of_plain_pytorch_on_all_its_records(self):
        run = self.group("same", members=1, workers=1)
        self.finish(run)
        self.assertEqual(run.read("same"), str(EPOCHS * STEPS))

    def test_a_module_of_bfloat16(self):
        run = self.group("bfloat16")
        self.weights(run)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.9, "untrained: 1.27")

    def test_local_steps_bring_the_weights_together(self):
        run = self.group("local")
        self.weights(run)
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 0.9, "untrained: 1.27")

    def test_members_with_other_modules_are_refused(self):
        run = self.group("mismatch", members=1)
        self.finish(run)  # the other one goes on alone
        self.assertRegex(run.log(), r"muster\.errors\.\w+: its model is not that of the group: it has bucket 'gradient of 4\.weight' of")

    def test_wrong_use_is_an_error_that_says_what_to_do(self):
        run = self.group("misuse", members=1, workers=1, failures_max=20)
        self.finish(run)
        for start, said in enumerate(MISUSE, 1):
            self.assertEqual(run.read(f"misuse-{start}").split("\n"), said)


class ExampleTest(unittest.TestCase):
    def test_document_shows_the_example(self):
        with open(os.path.join(job.ROOT, "docs", "python.md"), encoding="utf-8") as file:
            shown = re.findall(r"^```py\n(    with muster.*?)^```$", file.read(), re.M | re.S)
        with open(os.path.join(EXAMPLE, "orders.py"), encoding="utf-8") as file:
            self.assertIn(shown[0], file.read())

    def test_job(self):
        folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-python-group-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run([os.path.join(job.ROOT, "examples", "tutorial", "make_data"), "--records", "30000"], cwd=folder, check=True)
        for name in ("orders.py", "job.yaml"):
            shutil.copy(os.path.join(EXAMPLE, name), folder)
        environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
        run = subprocess.run([job.MUSTER, "run", "job.yaml"], cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
            self.assertGreater(json.load(file)["metrics"]["test"]["auc"], 0.7, "untrained: 0.5")
        models = [name for name in os.listdir(folder) if name.startswith("model-")]
        self.assertIn("output.weight", torch.load(os.path.join(folder, models[0]), weights_only=True))


class ArgumentsTest(unittest.TestCase):
    def refused(self, kind, text, module, optimizer=None, **options):
        with self.assertRaises(kind) as caught:
            muster.torch.ElasticDDP(module, optimizer or torch.optim.SGD(nn.Linear(1, 1).parameters()), None, **options)
        self.assertIn(text, str(caught.exception))

    def test_modules(self):
        self.refused(ValueError, "module: ReLU has no parameter that requires a gradient: there is nothing to train", nn.ReLU())
        self.refused(ValueError, "module: 'weight' has no shape yet: call the module once before", nn.LazyLinear(2))
        meta = nn.Linear(1, 1, device="meta")
        self.refused(ValueError, "'weight' is on meta: call module.cpu() or module.cuda(), and make the optimizer after that", meta)
        with self.assertRaises(ValueError) as caught:
            muster.torch.DiLoCo(meta, None)
        self.assertEqual(str(caught.exception), "module: 'weight' is on meta: call module.cpu(), and make the optimizer after that")
        turned = nn.Conv2d(2, 2, 3).to(memory_format=torch.channels_last)
        self.refused(ValueError, "call module.to(memory_format=torch.contiguous_format)", turned)
        self.refused(TypeError, "'weight' is of torch.complex64", nn.Linear(1, 1, dtype=torch.complex64))

    def test_optimizers(self):
        module, other = nn.Linear(2, 1), nn.Linear(2, 1)
        self.refused(ValueError, "it has a parameter of shape (1, 2) that the module does not have", module, torch.optim.SGD(other.parameters()))
        self.refused(ValueError, "it does not have the parameter 'bias': make the optimizer after", module, torch.optim.SGD([module.weight]))
        self.refused(TypeError, "LBFGS cannot make a step without arguments", module, torch.optim.LBFGS(module.parameters()))
        moved = torch.optim.SGD(module.parameters(), momentum=0.9)
        moved.state[module.weight]["momentum_buffer"] = torch.zeros(1, 2, device="meta")
        self.refused(ValueError, "its state 'momentum_buffer' of the parameter 'weight' is on meta, and the parameter on cpu: make", module, moved)
        optimizer = torch.optim.SGD(module.parameters())
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        self.refused(TypeError, "ReduceLROnPlateau needs a metric", module, optimizer, schedulers=[scheduler])
        self.refused(TypeError, "scaler: a float came, a torch.amp.GradScaler is needed", module, optimizer, scaler=1024.0)
        self.refused(ValueError, 'reduction: \'none\' came, "mean" or "sum" is needed', module, optimizer, reduction="none")


OPTIMIZERS = {
    "Adadelta": {}, "Adafactor": {}, "Adagrad": {"initial_accumulator_value": 0.5}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {},
    "ASGD": {"t0": 1}, "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {},
    "SGD": {"momentum": 0.9, "dampening": 0.5, "nesterov": False},
}
SCHEDULERS = {
    "CosineAnnealingWarmRestarts": {"T_0": 3}, "ExponentialLR": {"gamma": 0.9}, "MultiStepLR": {"milestones": [2, 7]},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 20}, "StepLR": {"step_size": 2}, "LinearLR": {"total_iters": 20},
}


class DenseTest(unittest.TestCase):
    """First values of parameters, and changes of buffers, on the servers."""

    def first(self, module, name, **given):
        return _dense._initializer(module, name, dict(module.named_parameters())[name], given)

    def test_one_random_value_is_no_constant(self):
        first = self.first(nn.Linear(16, 1), "bias")
        self.assertIsInstance(first, muster.Uniform)
        self.assertAlmostEqual(first.high, 0.25)

    def test_one_value_that_the_layer_would_not_make_is_a_constant(self):
        module = nn.Linear(16, 1)
        nn.init.constant_(module.bias, -2)
        self.assertEqual(self.first(module, "bias").value, -2)
        self.assertEqual(self.first(nn.PReLU(), "weight").value, 0.25)

    def test_a_row_of_padding_is_refused(self):
        self.assertIsInstance(self.first(nn.Embedding(100, 16), "weight"), muster.Normal)
        with self.assertRaisesRegex(ValueError, "weight: servers make the first values"):
            self.first(nn.Embedding(100, 16, padding_idx=0), "weight")

    def test_statistics_that_are_written_without_a_version_are_pushed(self):
        buffer, pushed = torch.zeros(2), []
        part = _dense._Part("mean", None, (2,), False, {"mean": buffer}, "mean", buffer._version)
        part.keep(numpy.zeros(2, numpy.float32))
        batch = types.SimpleNamespace(push=lambda _, change: pushed.append(change.tolist()))
        part.push_change(batch, part.outgoing().values.numpy())
        self.assertEqual(pushed, [])
        buffer.numpy()[:] = 5
        part.push_change(batch, part.outgoing().values.numpy())
        self.assertEqual(pushed, [[5, 5]])
        kept = _dense._Kept("mean", buffer, buffer._version, buffer.clone())
        self.assertFalse(kept.changed())
        buffer.numpy()[:] = 6
        self.assertTrue(kept.changed())


class StateTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.first = nn.Linear(3, 2)
        self.gradients = [[torch.randn(2, 3), torch.randn(2)] for _ in range(8)]

    def step(self, module, optimizer, gradients):
        for parameter, gradient in zip(module.parameters(), gradients):
            parameter.grad = gradient.clone()
        optimizer.step()

    def assert_same(self, one, other):
        for mine, theirs in zip(one.parameters(), other.parameters()):
            self.assertTrue(torch.equal(mine, theirs))

    def test_optimizers_go_on_as_if_alone_and_newcomers_copy_them(self):
        for name, options in OPTIMIZERS.items():
            with self.subTest(name):
                module, alone, newcomer = (copy.deepcopy(self.first) for _ in range(3))
                own, plain, late = (getattr(torch.optim, name)(one.parameters(), **options) for one in (module, alone, newcomer))
                state = OptimizerState(own, {parameter: name for name, parameter in module.named_parameters()})
                copied = OptimizerState(late, {parameter: name for name, parameter in newcomer.named_parameters()})
                self.assertEqual(list(state.memory), list(copied.memory))
                for index, gradients in enumerate(self.gradients):
                    self.step(module, own, gradients)
                    state.store()
                    self.step(alone, plain, gradients)
                    if index >= 5:
                        self.step(newcomer, late, gradients)
                        copied.store()
                    if index == 4:
                        for to, of in zip(copied.memory.values(), state.memory.values()):
                            to.copy_(of)
                        newcomer.load_state_dict(module.state_dict())
                        copied.load()
                    self.assert_same(module, alone)
                self.assert_same(newcomer, module)
                for to, of in zip(copied.memory.values(), state.memory.values()):
                    self.assertTrue(torch.equal(to, of))

    def test_a_rate_that_began_as_a_whole_number_is_copied(self):
        optimizers = [torch.optim.SGD(self.first.parameters(), lr=1) for _ in range(2)]
        schedulers = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for optimizer in optimizers]
        rates, copied = (Rates(optimizer, [scheduler]) for optimizer, scheduler in zip(optimizers, schedulers))
        optimizers[0].step()
        schedulers[0].step()
        rates.store()
        copied.memory.copy_(rates.memory)
        copied.load()
        self.assertEqual(optimizers[1].param_groups[0]["lr"], 0.5)

    def test_statistics_that_are_written_without_a_version_have_changed(self):
        buffer = torch.zeros(2)
        followed, version = _Followed("mean", buffer, buffer.clone(), None), buffer._version
        self.assertFalse(followed.changed())
        buffer.numpy()[:] = 5  # as some kernels of PyTorch write
        self.assertEqual(buffer._version, version)
        self.assertTrue(followed.changed())

    def test_schedulers_are_copied(self):
        for name, options in SCHEDULERS.items():
            with self.subTest(name):
                kind = getattr(torch.optim.lr_scheduler, name)
                optimizers = [torch.optim.SGD(self.first.parameters(), lr=0.1, momentum=0.9) for _ in range(2)]
                own, late = (kind(optimizer, **options) for optimizer in optimizers)
                rates, copied = (Rates(optimizer, [one]) for optimizer, one in zip(optimizers, (own, late)))
                for _ in range(5):
                    optimizers[0].step()
                    own.step()
                rates.store()
                copied.memory.copy_(rates.memory)
                copied.load()
                seen = set()
                for _ in range(4):
                    for optimizer, scheduler in zip(optimizers, (own, late)):
                        optimizer.step()
                        scheduler.step()
                    self.assertEqual(optimizers[0].param_groups[0]["lr"], optimizers[1].param_groups[0]["lr"])
                    seen.add(own.get_last_lr()[0])
                self.assertGreater(len(seen), 1)


if __name__ == "__main__":
    unittest.main()
