"""The same model in plain PyTorch: processes that share nothing, each with its own part of the records. For comparison.

    flights_local.py FOLDER [--processes 2] [--passes 1]

It trains on FOLDER/train.csv and tests on FOLDER/test.csv. Its embeddings have a row for each value of both files, which it
collects before the time begins; then it reads and parses the lines again, minibatch by minibatch, as a worker of Muster does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

import deepfm
import numpy as np
import numpy.typing as npt
import torch
from flight_records import FlightParser
from torch import nn
from torch.nn import functional

BATCH = 256
Keys = npt.NDArray[np.uint64]


def lines_of(path: str) -> tuple[bytes, list[bytes]]:
    with open(path, "rb") as file:
        header, *lines = file.read().splitlines()
    return header, lines


def keys_of(folder: str) -> Keys:
    """All keys of both files, ascending."""
    parts = []
    for name in ("train.csv", "test.csv"):
        header, lines = lines_of(os.path.join(folder, name))
        parts.append(np.unique(FlightParser(header).parse(lines, print)[0]))
    return np.unique(np.concatenate(parts))


class Model(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, deepfm.DIM)
        self.first_order = nn.Embedding(rows, 1)  # faster than an EmbeddingBag
        self.network = deepfm.DeepFm()
        nn.init.normal_(self.embedding.weight, std=deepfm.EMBEDDING_STDDEV)
        nn.init.zeros_(self.first_order.weight)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.network(self.embedding(positions), self.first_order(positions).sum(1))
        return logits


class Process:
    """What one process trains."""

    def __init__(self, header: bytes, keys: Keys, seed: int) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.keys, self.parser, self.model = keys, FlightParser(header), Model(len(keys))
        self.optimizer = torch.optim.Adagrad(
            self.model.parameters(), lr=deepfm.LEARNING_RATE, initial_accumulator_value=deepfm.INITIAL_ACCUMULATOR, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1, (step + 1) / deepfm.WARMUP_STEPS))

    def batch(self, lines: list[bytes]) -> tuple[torch.Tensor, torch.Tensor]:
        keys, labels = self.parser.parse(lines, print)
        return torch.from_numpy(np.searchsorted(self.keys, keys)), torch.from_numpy(labels)

    def train(self, lines: list[bytes]) -> None:
        for begin in range(0, len(lines), BATCH):
            positions, labels = self.batch(lines[begin : begin + BATCH])
            self.optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(self.model(positions), labels, reduction="sum") / BATCH
            loss.backward()
            self.optimizer.step()
            self.schedule.step()

    def auc(self, lines: list[bytes]) -> float:
        with torch.no_grad():
            parts = [self.batch(lines[begin : begin + 4096]) for begin in range(0, len(lines), 4096)]
            logits = torch.cat([self.model(positions) for positions, _ in parts]).numpy()
        labels = torch.cat([labels for _, labels in parts]).numpy() > 0
        ranks = np.empty(len(logits))
        ranks[np.argsort(logits, kind="stable")] = np.arange(1, len(logits) + 1)
        positives = int(labels.sum())
        return float(ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))


def work(options: argparse.Namespace, number: int, keys: Keys, ready: Barrier, results: Queue[Any]) -> None:
    header, lines = lines_of(os.path.join(options.folder, "train.csv"))
    lines = lines[number :: options.processes]
    process = Process(header, keys, number)
    random = np.random.default_rng(number)
    ready.wait()
    began = time.time()
    for _ in range(options.passes):
        process.train([lines[i] for i in random.permutation(len(lines))])
    ended = time.time()
    _, test = lines_of(os.path.join(options.folder, "test.csv"))
    results.put((began, ended, len(lines) * options.passes, process.auc(test)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where examples/flights/prepare_data has written the records")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--passes", type=int, default=1)
    options = parser.parse_args()
    if options.processes < 1 or options.passes < 1:
        parser.error("--processes and --passes are at least 1")
    keys = keys_of(options.folder)
    spawn = multiprocessing.get_context("spawn")
    ready, results = spawn.Barrier(options.processes), spawn.Queue()
    running = [spawn.Process(target=work, args=(options, number, keys, ready, results)) for number in range(options.processes)]
    for process in running:
        process.start()
    found = [results.get() for _ in running]
    for process in running:
        process.join()
    seconds = max(ended for _, ended, _, _ in found) - min(began for began, _, _, _ in found)
    records = sum(count for _, _, count, _ in found)
    aucs = ", ".join(f"{auc:.4f}" for *_, auc in found)
    print(f"trained {records} records in {seconds:.3f} s: {records / seconds:.0f} records/s, test AUC of each {aucs}")


if __name__ == "__main__":
    main()
