#!/usr/bin/env python3
"""A process that trains a network of 10 million parameters: a member of a job, or a rank of PyTorch's DistributedDataParallel.

    elastic_ddp_trainer.py muster FOLDER | ddp FOLDER RANK PORT STEPS

It writes the end of each step, CLOCK_MONOTONIC in nanoseconds, to a line of FOLDER/NAME.steps. benchmarks/speed/elastic_ddp.py starts it.
"""

import datetime
import os
import sys
import time

import torch
from torch import nn

RECORDS = 16  # of a minibatch; a step has one for each of two processes


def made():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(1500, 2000), nn.ReLU(), nn.Linear(2000, 2000), nn.ReLU(), nn.Linear(2000, 1500))
    return module, torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9), torch.randn(RECORDS, 1500), torch.randn(RECORDS, 1500)


def train_muster(folder):
    import muster
    import muster.torch

    module, optimizer, inputs, labels = made()
    with muster.connect() as session, open(os.path.join(folder, f"{os.environ['MUSTER_NODE']}.steps"), "a", encoding="ascii") as said:
        ddp = muster.torch.ElasticDDP(module, optimizer, session.group())
        for step in ddp.steps():
            for batch in step.batches():
                with batch:
                    nn.functional.mse_loss(ddp(inputs), labels).backward()
            step.commit()
            print(time.monotonic_ns(), file=said, flush=True)


def train_ddp(folder, rank, port, steps):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=int(rank), world_size=2,
                                         timeout=datetime.timedelta(seconds=60))
    module, optimizer, inputs, labels = made()
    ddp = nn.parallel.DistributedDataParallel(module)
    with open(os.path.join(folder, f"rank-{rank}.steps"), "a", encoding="ascii") as said:
        for _ in range(int(steps)):
            optimizer.zero_grad()
            nn.functional.mse_loss(ddp(inputs), labels).backward()
            optimizer.step()
            print(time.monotonic_ns(), file=said, flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    {"muster": train_muster, "ddp": train_ddp}[sys.argv[1]](*sys.argv[2:])
