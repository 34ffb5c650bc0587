"""The worker of kills.py: kills_trainer.py MODE FOLDER

MODE rows trains the flights' DeepFM for records that are numbers of lines of FOLDER/train.csv, and adds 1 to the row of each number. MODE
group trains a network in ElasticDDP and writes the digest of all its state to FOLDER/weights-NODE.
"""

import os
import sys
import time

import numpy as np
import torch
from bits import digest
from torch import nn
from torch.nn import functional

import muster
import muster.torch

MODE, FOLDER = sys.argv[1:]
# A minibatch takes so long, so that there is time for kills.
SLOW_SECONDS = float(os.environ["SLOW_SECONDS"])


def rows(session):
    import deepfm
    from flight_records import FlightParser

    with open(os.path.join(FOLDER, "train.csv"), "rb") as file:
        header, *lines = file.read().splitlines()
    parser = FlightParser(header)
    adagrad = muster.Adagrad(deepfm.LEARNING_RATE, initial_accumulator=deepfm.INITIAL_ACCUMULATOR)
    embedding = muster.torch.EmbeddingTable(session.table("embedding", dim=deepfm.DIM, optimizer=adagrad, initializer=muster.Normal(stddev=0.01)))
    first_order = muster.torch.EmbeddingBag(session.table("first_order", dim=1, optimizer=adagrad))
    seen = muster.torch.EmbeddingTable(session.table("seen", dim=1, optimizer=muster.Sum()))
    network = deepfm.DeepFm()
    dense = muster.torch.dense(session, network, optimizer=adagrad)

    def parse(batch):
        numbers = batch.record_numbers
        keys, labels = parser.parse([lines[number] for number in numbers], batch.reject)
        vectors = embedding.need(batch, keys)
        weights = first_order.need(batch, vectors)
        dense.need(batch)
        return vectors, weights, seen.need(batch, numbers.astype(np.uint64)), torch.from_numpy(labels)

    for batch in session.batches(parse):
        with batch:
            vectors, weights, counted, labels = batch.data
            logits = network(embedding(vectors), first_order(weights))
            loss = functional.binary_cross_entropy_with_logits(logits, labels)
            batch.metric("logloss", loss.item(), len(labels))
            (loss + seen(counted).sum()).backward()  # the gradient of a row of `seen` is 1
            time.sleep(SLOW_SECONDS)


def group(session):
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    ddp = muster.torch.ElasticDDP(module, optimizer, session.group())
    for step in ddp.steps():
        for batch in step.batches():
            with batch:
                numbers = torch.from_numpy(batch.record_numbers).float()
                inputs = torch.stack([torch.sin(numbers * factor) for factor in (1, 2, 3, 4)], 1)
                functional.mse_loss(ddp(inputs)[:, 0], inputs.sum(1)).backward()
                time.sleep(SLOW_SECONDS)
        step.commit()
    if ddp.group.has_final_state():
        with open(os.path.join(FOLDER, f"weights-{os.environ['MUSTER_NODE']}"), "w", encoding="ascii") as file:
            file.write(digest(ddp.state_dict()))


def main():
    torch.set_num_threads(1)
    with muster.connect() as session:
        {"rows": rows, "group": group}[MODE](session)


if __name__ == "__main__":
    main()
