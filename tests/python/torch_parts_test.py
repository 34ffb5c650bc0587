"""Parts of muster.torch without a job, with the installed wheel and PyTorch: run it with the Python that has both (wheel_test.py --torch does).

No GPU is needed: what is decided for one is decided here for the CPU, whose copies "through pinned memory" happen when they are waited for.
"""

import contextlib
import math
import types
import unittest
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

import muster
import muster.torch
from muster.torch import _device, _tables
from muster.torch._loss_scale import LossScale, after_step
from muster.torch._optimizer_state import OptimizerState


class Pinned(torch.Tensor):
    """Memory to which a copy that need not be waited for comes when somebody waits."""

    pending = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    def copy_(self, values, non_blocking=False):
        if non_blocking:
            Pinned.pending.append((self, values.clone()))
            return self
        return super().copy_(values)


class Device:
    """In `with`, the CPU is treated as a GPU. `waits` has the copies that had begun at each wait."""

    def __init__(self):
        self.waits = []

    def wait(self, _device):
        self.waits.append(len(Pinned.pending))
        for memory, values in Pinned.pending:
            torch.Tensor.copy_(memory, values)
        Pinned.pending.clear()

    def __enter__(self):
        self._patches = contextlib.ExitStack()
        for name, fake in (
            ("pins", lambda device: True),
            ("_pinned", lambda shape, dtype: torch.zeros(shape, dtype=dtype).as_subclass(Pinned)),
            ("_wait", self.wait),
        ):
            self._patches.enter_context(mock.patch.object(_device, name, fake))
        return self

    def __exit__(self, *_):
        Pinned.pending.clear()
        self._patches.close()


class DeviceTest(unittest.TestCase):
    def test_copies_of_a_gpu_alone_go_through_pinned_memory(self):
        self.assertEqual([_device.pins(torch.device(name)) for name in ("cpu", "cuda", "cuda:1", "meta")], [False, True, True, False])

    def test_on_the_cpu_nothing_is_copied(self):
        value = torch.arange(6.0)
        self.assertIs(_device.upload(value, torch.device("cpu")), value)
        self.assertEqual(_device.download([value.requires_grad_()])[0].data_ptr(), value.data_ptr())
        mirror = _device.Mirror({"value": value})
        self.assertEqual(mirror.memory["value"].data_ptr(), value.data_ptr())

    def test_all_downloads_begin_before_the_one_wait(self):
        values = [torch.arange(6.0).reshape(2, 3).T, torch.tensor(2.5), torch.ones(0)]
        with Device() as device:
            copies = _device.download(values)
            self.assertEqual(device.waits, [3])
            for value, copy in zip(values, copies):
                self.assertTrue(torch.equal(value, copy) and copy.is_contiguous())
            self.assertEqual(_device.download([]), [])
            self.assertEqual(device.waits, [3], "there is nothing to wait for")

    def test_an_upload_does_not_need_its_memory_any_more(self):
        with Device():
            source = torch.arange(4.0)
            there, other = _device.upload(source, torch.device("cpu")), torch.zeros(4, dtype=torch.bfloat16)
            _device.upload_into(other, source)
            source.fill_(9)
            self.assertEqual((there.tolist(), other.tolist()), ([0, 1, 2, 3], [0, 1, 2, 3]))

    def test_a_mirror_has_what_the_device_has_when_it_returns(self):
        with Device() as device:
            value = torch.arange(4.0)
            mirror = _device.Mirror({"value": value})
            self.assertEqual(mirror.memory["value"].tolist(), [0] * 4)
            mirror.store()
            self.assertEqual((mirror.memory["value"].tolist(), device.waits), ([0, 1, 2, 3], [1]))
            torch.Tensor.copy_(mirror.memory["value"], torch.full((4,), 7.0))
            mirror.load()
            self.assertEqual(value.tolist(), [7] * 4)
            self.assertEqual(len(device.waits), 2, "others may write to the memory then")

    def test_state_of_an_optimizer_is_copied(self):
        with Device():
            torch.manual_seed(1)
            modules = [nn.Linear(3, 2), nn.Linear(3, 2)]
            optimizers = [torch.optim.Adam(module.parameters()) for module in modules]
            states = [
                OptimizerState(optimizer, {parameter: name for name, parameter in module.named_parameters()})
                for module, optimizer in zip(modules, optimizers)
            ]
            modules[0](torch.ones(1, 3)).sum().backward()
            optimizers[0].step()
            moment = optimizers[0].state[modules[0].weight]["exp_avg"]
            states[0].store()
            self.assertIs(optimizers[0].state[modules[0].weight]["exp_avg"], moment, "it stays on the device")
            for name, memory in states[1].memory.items():
                torch.Tensor.copy_(memory, states[0].memory[name])
            states[1].load()
            copied = optimizers[1].state[modules[1].weight]["exp_avg"]
            self.assertTrue(torch.equal(copied, moment) and bool((moment != 0).all()))
            self.assertNotEqual(copied.data_ptr(), states[1].memory["optimizer weight exp_avg"].data_ptr())


class Servers:
    """What session.dense() and tables are to the modules, without servers."""

    def __init__(self):
        self.values, self.pushed = {}, []

    def dense(self, name, shape, **_):
        self.values[name] = np.zeros(shape, np.float32)
        return types.SimpleNamespace(name=name)

    def batch(self, **options):
        return Batch(self, **options)


class Table:
    def __init__(self, name, dim):
        self.name, self.dim = name, dim


class Batch:
    """A minibatch. A push is in `pushed` of its servers."""

    def __init__(self, servers, data=None, evaluate=False, length=4):
        self._servers, self._calls, self.data, self.evaluate, self._length = servers, [], data, evaluate, length
        self.records, self.seed = [b"record"] * length, 1

    def __len__(self):
        return self._length

    def need(self, *_):
        pass

    def on_begin(self, call):
        call()

    def on_commit(self, call):
        self._calls.append(call)

    def pull(self, table, keys=None):
        return self._servers.values[table.name] if keys is None else np.stack([np.full(table.dim, key, np.float32) for key in keys])

    def push(self, table, *arguments):
        self._servers.pushed.append((table.name, *(argument.tolist() for argument in arguments)))

    def commit(self):
        calls, self._calls = self._calls, []
        for call in calls:
            call()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.commit()
        else:
            self._calls.clear()


class PushesTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(_tables._muster, "Table", Table)
        patch.start()
        self.addCleanup(patch.stop)
        self.servers = Servers()
        self.table = muster.torch.EmbeddingTable(Table("rows", 2))
        self.network = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1, momentum=0.5))
        torch.manual_seed(1)
        self.dense = muster.torch.dense(self.servers, self.network)
        self.names = {name: tensor.name for name, tensor in self.dense.tensors().items()}

    def compute(self, batch, scale=1.0):
        """A loss whose gradients are known: of row 3, twice [1, 1] * scale, and of the bias, 2 * scale."""
        lookup = self.table.need(batch, np.array([3, 5, 3]))
        self.dense.need(batch)
        rows = self.table(lookup)
        self.network(rows)
        (rows.sum() + self.network[0].bias.sum() * 2).mul(scale).backward()
        return lookup

    def test_a_commit_pushes_all_once_and_waits_once(self):
        with Device() as device:
            batch = self.servers.batch()
            self.dense.need(batch)
            self.compute(batch)  # which asks again
            device.waits.clear()
            batch.commit()
            batch.commit()
            self.assertEqual(len(device.waits), 1)
        pushed = {name: values for name, *values in self.servers.pushed}
        self.assertEqual(pushed["rows"], [[3, 5], [[2, 2], [1, 1]]])
        self.assertEqual(pushed["dense-0-bias"], [[2]])
        self.assertEqual(pushed["dense-1-num_batches_tracked"], [[1]])
        self.assertEqual(len(pushed), len(self.servers.pushed), "nothing is pushed twice")
        self.assertIsNone(self.network[0].bias.grad)

    def test_a_scaler_has_its_scale_out_of_what_is_pushed(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=8, growth_interval=100)
        batch = self.servers.batch()
        lookup = self.compute(batch, scale=scaler.scale(torch.tensor(1.0)))
        pushes = muster.torch.push_step(batch)
        self.assertEqual(lookup.rows.grad.tolist(), [[16, 16], [8, 8]])
        scaler.unscale_(pushes)
        norm = torch.nn.utils.clip_grad_norm_(pushes.parameters(), 1e9)
        self.assertAlmostEqual(norm.item(), math.sqrt(2 * 4 + 2 * 1 + 4), places=5)
        scaler.step(pushes)
        scaler.update()
        batch.commit()
        pushed = {name: values for name, *values in self.servers.pushed}
        self.assertEqual(pushed["rows"], [[3, 5], [[2, 2], [1, 1]]])
        self.assertEqual(pushed["dense-0-bias"], [[2]])

    def test_an_overflow_pushes_nothing_but_buffers_and_the_next_minibatch_pushes(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=8)
        for factor, names in ((float("inf"), []), (1.0, ["dense-0-bias", "rows"])):
            batch = self.servers.batch()
            self.compute(batch, scale=scaler.scale(torch.tensor(factor)))
            pushes = muster.torch.push_step(batch)
            scaler.step(pushes)
            scaler.update()
            batch.commit()
            pushed = [name for name, *_ in self.servers.pushed]
            self.assertIn("dense-1-num_batches_tracked", pushed)
            self.assertEqual(sorted(name for name in pushed if name in ("rows", "dense-0-bias")), names)
            self.servers.pushed.clear()
        self.assertEqual(scaler.get_scale(), 4)

    def test_once_it_was_asked_for_nothing_is_pushed_without_its_step(self):
        batch = self.servers.batch()
        self.compute(batch)
        self.assertIs(muster.torch.push_step(batch), muster.torch.push_step(batch))
        batch.commit()
        self.assertNotIn("rows", [name for name, *_ in self.servers.pushed])

    def test_an_evaluation_pushes_nothing(self):
        batch = self.servers.batch(evaluate=True)
        lookup = self.table.need(batch, np.array([3]))
        self.dense.need(batch)
        self.network(torch.cat([self.table(lookup)] * 2))
        batch.commit()
        self.assertEqual(self.servers.pushed, [])

    def test_without_a_module_there_is_no_step(self):
        with self.assertRaises(muster.FailedPrecondition) as caught:
            muster.torch.push_step(self.servers.batch())
        self.assertEqual(
            str(caught.exception),
            "push_step: no module of muster.torch has a part in this minibatch yet: call them, and backward(), before",
        )


class Step:
    """A step of a group, with sums that its members share."""

    evaluate = False
    epoch = 0

    def __init__(self, number, records, sums, minibatches, copied=None):
        """`copied`: memory of another member, which is copied before the step."""
        self.step, self.records, self._sums, self._minibatches, self.copied = number, records, sums, minibatches, copied
        self.state_copied = copied is not None

    def batches(self, parse):
        yield from self._minibatches

    def add(self, bucket, gradient):
        values = np.asarray(gradient, np.float32).ravel()
        assert np.isfinite(values).all() and values.shape == (bucket[1],), bucket
        self._sums[bucket] = self._sums.get(bucket, 0) + values

    def sum(self, bucket, out=None):
        values = self._sums.get(bucket, np.zeros(bucket[1], np.float32)).copy()
        return values if out is None else out.copy_(torch.from_numpy(values).reshape(out.shape))

    def commit(self, apply):
        apply()
        return True


class Group:
    """What a member has of its group."""

    def __init__(self):
        self.memory, self.next = {}, []

    def add_bucket(self, name, elements, **_):
        return name, elements

    def add_state(self, name, values):
        self.memory[name] = values

    def steps(self):
        while True:
            step = self.next.pop(0)
            for name, values in (step.copied or {}).items():
                torch.Tensor.copy_(self.memory[name], values)
            yield step

    def has_final_state(self):
        return False


class Member:
    def __init__(self, scaler=None):
        torch.manual_seed(1)
        self.module = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
        self.module.register_buffer("flag", torch.ones(1, dtype=torch.bool))
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        self.group = Group()
        self.scaler = scaler
        self.ddp = muster.torch.ElasticDDP(self.module, optimizer, self.group, schedulers=[self.scheduler], scaler=scaler)
        self.steps = self.ddp.steps()

    def run(self, step, factor=1.0):
        """The member's minibatches of the step; then its commit."""
        self.group.next.append(step)
        own = next(self.steps)
        for batch in own.batches():
            inputs = torch.linspace(-1, 1, 2 * len(batch)).reshape(-1, 2) * factor
            loss = (self.module(inputs) ** 2).mean()
            (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        return own.commit

    def weights(self):
        return {name: value.clone() for name, value in self.module.state_dict().items()}


def train(members, steps=3, factors=None):
    """Steps of all members, each with two minibatches. `factors` are those of the members in the second step."""
    for number in range(1, steps + 1):
        sums, commits = {}, []
        for member, factor in zip(members, factors if factors and number == 2 else [1.0] * len(members)):
            commits.append(member.run(Step(number, 8 * len(members), sums, [Batch(None), Batch(None)]), factor))
        for commit in commits:
            commit()


class ElasticTest(unittest.TestCase):
    def assert_same(self, one, other):
        for name, value in one.items():
            self.assertTrue(torch.equal(value, other[name]), name)

    def test_a_module_on_a_device_trains_as_on_the_cpu_and_newcomers_copy_it(self):
        plain = Member()
        train([plain])
        with Device():
            member = Member()
            train([member])
            self.assert_same(member.weights(), plain.weights())
            newcomer = Member()
            self.assertEqual(list(newcomer.group.memory), list(member.group.memory))
            newcomer.run(Step(4, 8, {}, [Batch(None)], copied=member.group.memory))()
            member.run(Step(4, 8, {}, [Batch(None)]))()
            self.assert_same(newcomer.weights(), member.weights())
            self.assertEqual(newcomer.scheduler.get_last_lr(), member.scheduler.get_last_lr())
        plain.run(Step(4, 8, {}, [Batch(None)]))()
        self.assert_same(plain.weights(), newcomer.weights())

    def test_a_scale_that_does_not_overflow_changes_no_bits(self):
        plain, scaled = Member(), Member(torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=2))
        train([plain])
        train([scaled])
        self.assert_same(plain.weights(), scaled.weights())
        self.assertEqual(scaled.scaler.get_scale(), 2048)

    def test_all_members_skip_a_step_in_which_one_has_overflowed(self):
        members = [Member(torch.amp.GradScaler("cpu", init_scale=1024)) for _ in range(2)]
        train(members, steps=1)
        before, rates = members[0].weights(), members[0].scheduler.get_last_lr()
        train(members, steps=2, factors=[1.0, float("inf")])
        alone = [Member(torch.amp.GradScaler("cpu", init_scale=1024)) for _ in range(2)]
        train(alone, steps=2)
        for member in members:
            self.assert_same(member.weights(), alone[0].weights())
            self.assertEqual(member.scaler.get_scale(), 512)
            self.assertEqual(member.scheduler.get_last_lr(), alone[0].scheduler.get_last_lr())
        self.assertNotEqual(members[0].scheduler.get_last_lr(), rates)
        self.assertFalse(torch.equal(members[0].weights()["0.weight"], before["0.weight"]), "the other step has trained")

    def test_the_next_scale_is_that_of_pytorch(self):
        many = ({"init_scale": 2.0**10, "growth_interval": 3}, {"init_scale": 3e38, "growth_interval": 1}, {"init_scale": 7.0, "growth_factor": 1.7})
        for options in many:
            scaler = torch.amp.GradScaler("cpu", **{"backoff_factor": 0.3, "growth_interval": 2, **options})
            parameter = nn.Parameter(torch.ones(1))
            optimizer = torch.optim.SGD([parameter], lr=0.0)
            scaler.scale(torch.ones(1))
            for overflowed in (False, False, True, False, False, False, False, True, True, False):
                expected = after_step(scaler.state_dict(), overflowed)
                parameter.grad = torch.full((1,), float("inf") if overflowed else 1.0)
                scaler.step(optimizer)
                scaler.update()
                self.assertEqual(scaler.state_dict(), expected, options)

    def test_somebody_else_must_not_change_the_scale(self):
        scaler = torch.amp.GradScaler("cpu", init_scale=1024)
        scale = LossScale(scaler, Group())
        scale.check()
        scaler.load_state_dict({**scaler.state_dict(), "scale": 2.0})
        with self.assertRaises(RuntimeError) as caught:
            scale.check()
        self.assertEqual(
            str(caught.exception),
            "scaler: its scale was 1024.0, and is 2.0, which would be this member's alone: leave update() out, step.commit() calls it",
        )


class Session:
    """Its batches() are those of two shards. `events` says what has happened."""

    def __init__(self, count=4):
        self.events, self._count = [], count

    def batches(self, parse, *, parse_processes=0, prepare=None):
        assert (parse_processes, prepare) == (0, None)
        try:
            for number in range(self._count):
                batch = Batch(None)
                if parse is not None:
                    batch.data = parse(number)
                batch.on_commit(lambda number=number: self.events.append(f"commit {number}"))
                self.events.append(f"begin {number}")
                yield batch
            self.events.append("end")
        finally:
            self.events.append("closed")


AHEAD = (
    "ShardDataset: another item was asked for before the minibatch of the last one was done: call done() at the end of the loop's body, and give "
    "DataLoader batch_size=None, so that it does not run ahead"
)


class DatasetTest(unittest.TestCase):
    def test_a_minibatch_is_committed_when_the_loop_says_so(self):
        session = Session(3)
        dataset = muster.torch.ShardDataset(session, lambda number: (np.array([number, 7]), f"text {number}"))
        seen = []
        for numbers, text in DataLoader(dataset, batch_size=None):
            session.events.append("loop")
            self.assertIsInstance(numbers, torch.Tensor)
            seen.append((numbers.tolist(), text))
            if numbers[0] == 1:
                with dataset.batch:
                    pass
            else:
                dataset.done()
        self.assertEqual(seen, [([number, 7], f"text {number}") for number in range(3)])
        each = [[f"begin {number}", "loop", f"commit {number}"] for number in range(3)]
        self.assertEqual(session.events, [*each[0], *each[1], *each[2], "end", "closed"])

    def test_a_loader_that_runs_ahead_is_an_error(self):
        for options in ({"batch_size": None}, {"batch_size": 2}):
            session = Session()
            with self.assertRaises(muster.FailedPrecondition) as caught:
                for _ in DataLoader(muster.torch.ShardDataset(session, lambda number: number), **options):
                    pass
            self.assertEqual(str(caught.exception), AHEAD)
            self.assertEqual(session.events, ["begin 0", "closed"], "the shard goes back, and nothing is committed")

    def test_a_process_of_a_loader_is_an_error(self):
        dataset = muster.torch.ShardDataset(Session(), lambda number: number)
        for context in ("fork", "spawn"):
            with self.assertRaises(muster.FailedPrecondition) as caught:
                next(iter(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context=context)))
            self.assertIn(
                "ShardDataset: it was sent to a process of a DataLoader, and a session belongs to one process: give num_workers=0, and for a slow "
                "parser ShardDataset(session, parse, parse_processes=4)",
                str(caught.exception),
            )

    def test_a_loop_may_go_on_after_an_exception(self):
        session = Session(2)
        dataset = muster.torch.ShardDataset(session, lambda number: number)
        for item in dataset:
            with contextlib.suppress(ValueError), dataset.batch:
                if item == 0:
                    raise ValueError("planted")
            if item == 0:
                dataset.done()
        self.assertEqual(session.events, ["begin 0", "begin 1", "commit 1", "end", "closed"])

    def test_a_loop_that_is_left_early_gives_its_shard_back(self):
        session = Session()
        dataset = muster.torch.ShardDataset(session)
        for item in DataLoader(dataset, batch_size=None):
            self.assertEqual(item, [b"record"] * 4)
            dataset.done()
            break
        self.assertEqual(session.events, ["begin 0", "commit 0", "closed"])
        first = iter(dataset)
        next(first)
        second = iter(dataset)
        self.assertEqual(session.events[3:], ["begin 0", "closed"], "a later pass ends the one before")
        self.assertRaises(StopIteration, next, first)
        next(second)

    def test_without_an_item_there_is_no_minibatch(self):
        dataset = muster.torch.ShardDataset(Session(), lambda number: number)
        items = iter(dataset)
        next(items)
        dataset.done()
        for call in (dataset.done, lambda: dataset.batch):
            with self.assertRaises(muster.FailedPrecondition) as caught:
                call()
            self.assertEqual(str(caught.exception), "ShardDataset: there is no minibatch: take an item, and use its minibatch before done()")


if __name__ == "__main__":
    unittest.main()
