"""A member of a group that learns which orders customers send back, with ElasticDDP. docs/python.md explains it."""

import os

import torch
from torch import nn
from torch.nn import functional

import muster
import muster.torch

SHOPS, PRODUCTS, EMBEDDING = 20, 500, 4


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shops, self.products = nn.Embedding(SHOPS, EMBEDDING), nn.Embedding(PRODUCTS, EMBEDDING)
        self.shop_tower = nn.Sequential(nn.Linear(EMBEDDING, 8), nn.ReLU())
        self.order_tower = nn.Sequential(nn.Linear(EMBEDDING + 3, 16), nn.ReLU())
        self.output = nn.Linear(8 + 16, 1)

    def forward(self, numbers: torch.Tensor, shops: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
        order = self.order_tower(torch.cat([numbers, self.products(products)], 1))
        logits: torch.Tensor = self.output(torch.cat([self.shop_tower(self.shops(shops)), order], 1))
        return logits[:, 0]


def parse(batch: muster.Batch) -> tuple[torch.Tensor, ...]:
    """(numbers, shops, products, labels) of the records that are orders."""
    orders = []
    for i, line in enumerate(batch.records):
        try:
            price, days, discount, shop, product, returned = line.split(b",")
            numbers = float(price) / 100, float(days) / 7, float(discount) / 0.5
            orders.append((numbers, int(shop.split(b"-")[1]), int(product.split(b"-")[1]), int(returned)))
        except ValueError as error:
            batch.reject(i, str(error))
    numbers, shops, products, labels = zip(*orders)
    return torch.tensor(numbers), torch.tensor(shops), torch.tensor(products), torch.tensor(labels, dtype=torch.float32)


def main() -> None:
    torch.manual_seed(1)  # all members begin with the same weights
    torch.set_num_threads(1)  # of one number in all members
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    with muster.connect() as session:
        ddp = muster.torch.ElasticDDP(model, optimizer, session.group(), schedulers=[scheduler])
        for step in ddp.steps():
            model.train(not step.evaluate)
            for batch in step.batches(parse):
                with batch:
                    *inputs, labels = batch.data
                    logits = model(*inputs)
                    loss = functional.binary_cross_entropy_with_logits(logits, labels)
                    batch.metric("loss", loss.item(), len(labels))
                    if step.evaluate:
                        batch.auc_of_logits("auc", logits.detach(), labels.bool())
                    else:
                        loss.backward()
            step.commit()
        if ddp.group.has_final_state():
            torch.save(model.state_dict(), f"model-{os.environ['MUSTER_NODE']}.pt")


if __name__ == "__main__":
    main()
