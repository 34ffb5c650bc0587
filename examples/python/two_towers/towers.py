"""A member of a group that learns which user likes which film: two towers in step, over embeddings on the servers.

The towers are small, and the same in every member: ElasticDDP trains them, and all members take each step together. The embeddings
are large, and most minibatches touch few of them: they are tables, and a push takes effect when its server has it. Each minibatch
takes effect exactly once in both.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import muster
import muster.torch

DIM, GENRES, OUTPUT = 16, 8, 8


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, OUTPUT))
        self.film = nn.Sequential(nn.Linear(DIM + GENRES, 32), nn.ReLU(), nn.Linear(32, OUTPUT))

    def forward(self, users: torch.Tensor, films: torch.Tensor, genres: torch.Tensor) -> torch.Tensor:
        """Logits [n] of users [n, DIM], films [n, DIM] and genres [n]."""
        films = torch.cat([films, functional.one_hot(genres, GENRES)], 1)
        logits: torch.Tensor = (self.user(users) * self.film(films)).sum(1)
        return logits


def main() -> None:
    torch.manual_seed(1)  # all members begin with the same towers
    torch.set_num_threads(1)
    towers = Towers()
    optimizer = torch.optim.AdamW(towers.parameters(), lr=0.01)
    with muster.connect() as session:
        adagrad, normal = muster.Adagrad(0.1, initial_accumulator=1e-6), muster.Normal(stddev=0.1)
        users = muster.torch.EmbeddingTable(session.table("users", dim=DIM, optimizer=adagrad, initializer=normal))
        films = muster.torch.EmbeddingTable(session.table("films", dim=DIM, optimizer=adagrad, initializer=normal))
        ddp = muster.torch.ElasticDDP(towers, optimizer, session.group())

        def parse(batch: muster.Batch) -> object:
            columns = np.array([line.split(b",") for line in batch.records]).astype(np.int64)
            needed = users.need(batch, columns[:, 0]), films.need(batch, columns[:, 1])
            return *needed, torch.from_numpy(columns[:, 2].copy()), torch.from_numpy(columns[:, 3].astype(np.float32))

        for step in ddp.steps():
            for batch in step.batches(parse):
                with batch, torch.set_grad_enabled(not step.evaluate):
                    user, film, genres, labels = batch.data
                    logits = towers(users(user), films(film), genres)
                    loss = functional.binary_cross_entropy_with_logits(logits, labels)
                    batch.metric("loss", loss.item(), len(labels))
                    if step.evaluate:
                        batch.auc_of_logits("auc", logits.numpy(), labels.bool().numpy())
                    else:
                        loss.backward()  # the gradients of the towers go to the group, and those of rows to the servers
            step.commit()


if __name__ == "__main__":
    main()
