"""The worker of torch_test.py. torch_trainer.py MODE FOLDER"""

import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import muster
import muster.torch

MODE, FOLDER = sys.argv[1:]
KEYS, DIM = 12, 4


def write(name, text):
    """Others see all of the text or nothing."""
    path = os.path.join(FOLDER, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def values_of(batch):
    return np.array([line.split(b",") for line in batch.records]).astype(np.float32)


def said_by(call, kind=Exception):
    try:
        call()
    except kind as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


class Learner:
    """y = network(a, b) + rows[c], with everything that PyTorch has on top: a compiler, autocast, clipping."""

    def __init__(self, session):
        self.rows = muster.torch.EmbeddingTable(session.table("rows", dim=1, optimizer=muster.Adagrad(0.5)))
        self.network = nn.Sequential(nn.BatchNorm1d(2, momentum=0.01), nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        self.dense = muster.torch.dense(session, self.network, optimizer=muster.Adagrad(0.1), name="network")
        # The graph breaks at the table, and the dense part is compiled.
        self.compiled = torch.compile(self.outputs, backend="aot_eager", dynamic=True) if MODE == "learn" else self.outputs

    def outputs(self, numbers, lookup):
        return self.network(numbers) + self.rows(lookup)

    def parse(self, batch):
        values = values_of(batch)
        self.dense.need(batch)
        return torch.from_numpy(values[:, :2].copy()), self.rows.need(batch, values[:, 2].astype(np.int64)), torch.from_numpy(values[:, 3].copy())

    def run(self, batch):
        numbers, lookup, labels = batch.data
        self.network.train(not batch.evaluate)
        with torch.autocast("cpu", torch.bfloat16):
            outputs = self.compiled(numbers, lookup)
        loss = functional.mse_loss(outputs.float().squeeze(1), labels)
        batch.metric("loss", loss.item(), len(labels))
        if not batch.evaluate:
            (loss * factor_of(batch)).backward()
            leaves = [lookup.rows, *self.network.parameters()]
            assert all(leaf.is_leaf and leaf.grad is not None for leaf in leaves)
            torch.nn.utils.clip_grad_norm_(leaves, 10.0)
        else:
            assert not lookup.rows.requires_grad
            self.check(batch)

    def check(self, batch):
        """The module is what the servers have."""
        own = self.network.state_dict()
        for name, tensor in self.dense.tensors().items():
            assert np.array_equal(batch.pull(tensor).reshape(own[name].shape), own[name].numpy()), name
        write("batches", str(int(own["0.num_batches_tracked"])))


def learn_from_dataset(dataset, learner):
    """MODE dataset: the loop of a DataLoader."""
    for numbers, lookup, labels in torch.utils.data.DataLoader(dataset, batch_size=None):
        assert lookup is dataset.batch.data[1] and len(numbers) == len(labels) == len(dataset.batch)
        learner.run(dataset.batch)
        dataset.done()


def once(name):
    """True in one minibatch of the job."""
    if os.path.exists(os.path.join(FOLDER, name)):
        return False
    write(name, "")
    return True


def factor_of(batch):
    """MODE nan: the gradients of one minibatch are no numbers, once."""
    return float("nan") if MODE == "nan" and batch.step == 0 and once("planted") else 1.0


class Jagged:
    """What of TorchRec's KeyedJaggedTensor is used."""

    def __init__(self, names, values, offsets, weights):
        self._all = names, values, offsets, weights

    def keys(self):
        return self._all[0]

    def values(self):
        return self._all[1]

    def offsets(self):
        return self._all[2]

    def weights_or_none(self):
        return self._all[3]


class Checker:
    """MODE check: gradients that do not depend on the rows, beside those of PyTorch for the same keys. All numbers are exact."""

    def __init__(self, session):
        self.table = session.table("rows", dim=DIM, optimizer=muster.Sum(), initializer=muster.Constant(3))
        self.half = session.table("half", dim=DIM, optimizer=muster.Sum())
        self.rows = muster.torch.EmbeddingTable(self.table)
        self.sum = muster.torch.EmbeddingBag(self.table)
        self.mean = muster.torch.EmbeddingBag(self.table, mode="mean", include_last_offset=True)
        self.weight = torch.full((KEYS, DIM), 3.0, requires_grad=True)
        self.halves = 0

    def parse(self, batch):
        random = np.random.default_rng(batch.seed)
        keys = random.integers(0, KEYS, 24)
        factors = torch.from_numpy(random.integers(1, 5, 24).astype(np.float32))
        starts, ends = np.array([0, 4, 4, 20]), np.array([0, 2, 6, 6, 10, 18, 24])  # the third bag is empty, and so are others
        jagged = Jagged(["a", "b"], torch.from_numpy(keys), torch.from_numpy(ends), factors)
        nested = torch.nested.nested_tensor_from_jagged(torch.from_numpy(keys), torch.tensor([0, 8, 16, 24]))
        fixed = keys.reshape(2, 3, 4).astype(np.uint64)
        needed = {
            "table": (self.rows, self.rows.need(batch, keys.reshape(4, 6))),
            "starts": (self.sum, self.sum.need(batch, torch.from_numpy(keys), starts)),
            "weighted": (self.sum, self.sum.need(batch, keys, torch.from_numpy(starts), factors)),
            "fixed": (self.sum, self.sum.need(batch, fixed, weights=factors.reshape(2, 3, 4))),
            "mean": (self.mean, self.mean.need(batch, keys.astype(np.int32), np.append(starts, 24))),
            "jagged": (self.sum, self.sum.need(batch, jagged)),
            "nested": (self.sum, self.sum.need(batch, nested)),
            "values": (self.rows, self.rows.need(batch, nested)),
            "none": (self.sum, self.sum.need(batch, keys[:0].reshape(5, 0))),
        }
        features = self.sum.need_features(batch, {"x": fixed, "y": muster.torch.Feature(keys, starts, factors)})
        assert features["x"].rows is features["y"].rows, "they share their rows"
        needed |= {name: (self.sum, lookup) for name, lookup in features.items()}
        needed["again"] = (self.rows, self.rows.need(batch, needed["table"][1]))
        whole, begins, last = torch.from_numpy(keys), torch.from_numpy(starts), torch.from_numpy(ends)
        bag = functional.embedding_bag
        wanted = {
            "table": lambda w: functional.embedding(whole.reshape(4, 6), w),
            "starts": lambda w: bag(whole, w, begins, mode="sum"),
            "weighted": lambda w: bag(whole, w, begins, mode="sum", per_sample_weights=factors),
            "fixed": lambda w: bag(whole.reshape(6, 4), w, mode="sum", per_sample_weights=factors.reshape(6, 4)).reshape(2, 3, DIM),
            "mean": lambda w: bag(whole, w, begins, mode="mean"),
            "jagged": lambda w: bag(whole, w, last, mode="sum", per_sample_weights=factors, include_last_offset=True).reshape(2, 3, DIM).transpose(0, 1),
            "nested": lambda w: bag(whole.reshape(3, 8), w, mode="sum"),
            "values": lambda w: functional.embedding(whole, w),
            "none": lambda w: torch.zeros(5, DIM),
            "x": lambda w: bag(whole.reshape(6, 4), w, mode="sum").reshape(2, 3, DIM),
            "y": lambda w: bag(whole, w, begins, mode="sum", per_sample_weights=factors),
            "again": lambda w: functional.embedding(whole.reshape(4, 6), w),
        }
        return needed, wanted

    def run(self, batch):
        needed, wanted = batch.data
        assert needed.keys() == wanted.keys()
        if batch.evaluate:
            self.check(batch, needed, wanted)
            return
        for name, (module, lookup) in needed.items():
            for result, accumulates in ((module(lookup), True), (wanted[name](self.weight), False)):
                # 48 is divisible by the sizes of all bags that are not empty, so that means are exact.
                loss = (result * torch.arange(1.0, DIM + 1) * 48).sum()
                if loss.requires_grad:
                    loss.backward()
        # Learned weights, which have a gradient of their own.
        learned = torch.ones(24, requires_grad=True)
        lookup = needed["starts"][1]
        self.sum(lookup, learned).sum().backward()
        functional.embedding_bag(lookup.positions, self.weight[lookup.keys.astype(np.int64)], lookup.offsets[:-1], mode="sum").sum().backward()
        assert torch.equal(learned.grad, lookup.rows.detach()[lookup.positions].sum(1))
        keys, gradient = np.arange(2, dtype=np.uint64), torch.full((2, DIM), 1.5)
        batch.push(self.half, keys, gradient.to(torch.bfloat16))
        batch.push(self.half, keys, np.array([0.25, -2**-24, -65504, 2**-14], np.float16) * np.ones((2, 1), np.float16))
        self.halves += 1

    def check(self, batch, needed, wanted):
        keys = np.arange(KEYS, dtype=np.uint64)
        rows = torch.tensor(batch.pull(self.table, keys))
        assert torch.equal(rows, (self.weight + self.weight.grad).detach()), "the gradients that were pushed are those of PyTorch"
        for name, (module, lookup) in needed.items():
            assert torch.equal(module(lookup), wanted[name](rows)), name
        half = batch.pull(self.half, keys[:2])
        assert np.array_equal(half[0][[0, 3]], np.float32([1.75, 1.5 + 2**-14]) * self.halves) and half[0][2] == (1.5 - 65504) * self.halves, half
        write("checked", str(self.halves))


class Misuser:
    """MODE misuse: every wrong use; the texts go into a file."""

    def __init__(self, session):
        self.session = session
        self.rows = muster.torch.EmbeddingTable(session.table("rows", dim=DIM))
        self.other = muster.torch.EmbeddingTable(session.table("other", dim=DIM))
        self.bag = muster.torch.EmbeddingBag(session.table("bags", dim=DIM))
        self.network = nn.Linear(2, 1)
        self.frozen = nn.Linear(2, 1)
        self.frozen.weight.requires_grad = False
        self.dense = muster.torch.dense(session, self.network)
        self.part = muster.torch.dense(session, self.frozen, name="part")
        self.first = None

    def parse(self, batch):
        if batch.step == 0 and not batch.evaluate and not os.path.exists(os.path.join(FOLDER, "misuse")):
            write("misuse", "\n".join(self.in_parse(batch)))
        self.dense.need(batch)
        return self.rows.need(batch, np.arange(3))

    def in_parse(self, batch):
        keys, bags = np.arange(6), self.bag.need
        mean = muster.torch.EmbeddingBag(self.bag.table, mode="mean")
        strange = nn.Linear(8, 8)
        nn.init.orthogonal_(strange.weight)
        deep = nn.ModuleDict({"x" * 60: nn.Linear(1, 1)})
        dense = muster.torch.dense
        return [
            said_by(call)
            for call in (
                lambda: self.rows.need(batch, [1, 2]),
                lambda: self.rows.need(batch, keys.astype(np.float32)),
                lambda: self.rows.need(batch, torch.ones(2)),
                lambda: self.rows.need(batch, torch.ones(2, dtype=torch.bfloat16)),
                lambda: self.rows.need(batch, np.array([[1, 2], [-3, 4]])),
                lambda: self.rows.need(batch, torch.ones(2, dtype=torch.int64, device="meta")),
                lambda: self.rows.need_features(batch, {"user": keys, "item": -keys}),
                lambda: self.rows.need_features(batch, {}),
                lambda: self.rows.need(batch, Jagged(["a"], torch.arange(2), torch.arange(3), torch.ones(2))),
                lambda: bags(batch, keys),
                lambda: bags(batch, keys, [0, 2]),
                lambda: bags(batch, keys, np.array([0.0, 2.0])),
                lambda: bags(batch, keys, np.array([0, 4, 2])),
                lambda: bags(batch, keys, np.array([0, 4, 7])),
                lambda: bags(batch, keys, np.array([1, 4])),
                lambda: bags(batch, keys, np.array([], np.int64)),
                lambda: bags(batch, keys, np.array([[0, 4]])),
                lambda: bags(batch, keys.reshape(2, 3), np.array([0, 4])),
                lambda: bags(batch, keys.reshape(2, 3), weights=np.ones(6, np.float32)),
                lambda: bags(batch, keys.reshape(2, 3), weights=np.ones((2, 3))),
                lambda: mean.need(batch, keys.reshape(2, 3), weights=np.ones((2, 3), np.float32)),
                lambda: muster.torch.EmbeddingBag(self.bag.table, mode="max"),
                lambda: muster.torch.EmbeddingTable("rows"),
                lambda: dense(self.session, "network"),
                lambda: dense(self.session, nn.ReLU(), name="none"),
                lambda: dense(self.session, nn.Linear(1, 1).double(), name="double"),
                lambda: dense(self.session, nn.Linear(1, 1, device="meta"), name="meta", initializers={"*": muster.Zero()}),
                lambda: dense(self.session, nn.Linear(1, 1), name="Big"),
                lambda: dense(self.session, nn.Linear(1, 1), name="typing", initializers={"wieght": muster.Zero()}),
                lambda: dense(self.session, strange, name="strange"),
                lambda: dense(self.session, deep, name="deep"),
            )
        ]

    def run(self, batch):
        lookup = batch.data
        if batch.evaluate:
            return
        if once("in-loop"):
            self.first = lookup
            write("misuse-in-loop", "\n".join(self.in_loop(batch, lookup)))
        elif self.first is not None:
            write("misuse-later", said_by(lambda: self.rows(self.first)))
            self.first = None
        # Both are noticed at the commit. The worker then starts again.
        elif once("reshaped"):
            self.network.weight = nn.Parameter(torch.ones(1, 3))
        elif once("changed"):
            self.part.need(batch)
            with torch.no_grad():
                self.frozen.weight.add_(1)

    def in_loop(self, batch, lookup):
        (self.rows(lookup).sum() + self.network(torch.ones(1, 2)).sum()).backward()
        texts = [
            said_by(lambda: self.rows(np.arange(3))),
            said_by(lambda: self.other(lookup)),
            said_by(lambda: self.frozen(torch.ones(1, 2)).sum().backward()),
        ]
        self.part.need(batch)
        self.frozen(torch.ones(1, 2)).sum().backward()
        batch.commit()
        texts.append(said_by(lambda: self.rows(lookup)))
        texts.append(said_by(lambda: self.network(torch.ones(1, 2)).sum().backward()))
        return texts


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = {"learn": Learner, "dataset": Learner, "nan": Learner, "check": Checker, "misuse": Misuser}[MODE]
    with muster.connect() as session:
        worker = model(session)
        if MODE == "dataset":
            return learn_from_dataset(muster.torch.ShardDataset(session, worker.parse), worker)
        for batch in session.batches(worker.parse):
            with batch:
                worker.run(batch)


if __name__ == "__main__":
    main()
