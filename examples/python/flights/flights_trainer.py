"""A worker that trains the DeepFM of the flights in PyTorch. Read it from the bottom: main, Trainer.run, Trainer.parse."""

import sys
import time

import deepfm
import torch
from flight_records import FlightParser
from torch.nn import functional

import muster
import muster.torch


class Trainer:
    def __init__(self, session: muster.Session) -> None:
        adagrad = muster.Adagrad(deepfm.LEARNING_RATE, initial_accumulator=deepfm.INITIAL_ACCUMULATOR)
        schedule = muster.ConstantRate(warmup_steps=deepfm.WARMUP_STEPS)
        normal = muster.Normal(stddev=deepfm.EMBEDDING_STDDEV)
        table = session.table("embedding", dim=deepfm.DIM, optimizer=adagrad, initializer=normal, schedule=schedule)
        self.embedding = muster.torch.EmbeddingTable(table)
        self.first_order = muster.torch.EmbeddingBag(session.table("first_order", dim=1, optimizer=adagrad, schedule=schedule))
        self.network = deepfm.DeepFm()
        self.dense = muster.torch.dense(session, self.network, optimizer=adagrad, schedule=schedule)
        self.parser: FlightParser | None = None
        self.began, self.ended, self.records = 0.0, 0.0, 0

    def parse(self, batch: muster.Batch) -> object:
        """Called ahead of the loop: parses the records, and asks for their rows."""
        if self.parser is None:
            self.parser = FlightParser(batch.header)
        keys, labels = self.parser.parse(batch.records, batch.reject)
        vectors = self.embedding.need(batch, keys)
        weights = self.first_order.need(batch, vectors)  # the same keys
        self.dense.need(batch)
        return vectors, weights, torch.from_numpy(labels)

    def run(self, batch: muster.Batch) -> None:
        vectors, weights, labels = batch.data
        if len(labels) == 0:  # every record was rejected
            return
        with torch.set_grad_enabled(not batch.evaluate):
            logits = self.network(self.embedding(vectors), self.first_order(weights))
            loss = functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        batch.metric("logloss", loss.item() / len(labels), len(labels))
        if batch.evaluate:
            batch.auc_of_logits("auc", logits, labels.bool())
            return
        (loss / batch.nominal_size).backward()

    def measure(self, batch: muster.Batch) -> None:
        """When training began and ended: measure.py reads it."""
        if not batch.evaluate:
            self.ended = time.time()
            self.records += len(batch)


def main() -> None:
    torch.set_num_threads(1)  # a worker each core
    with muster.connect() as session:
        trainer = Trainer(session)
        for batch in session.batches(trainer.parse):
            trainer.began = trainer.began or time.time()
            with batch:
                trainer.run(batch)
            trainer.measure(batch)
    print(f"trained {trainer.records} records from {trainer.began:.3f} to {trainer.ended:.3f}", file=sys.stderr)


if __name__ == "__main__":
    main()
