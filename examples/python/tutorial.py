"""A worker that learns which orders customers send back. docs/python.md explains it block by block."""

import numpy as np

import muster

EMBEDDING, HIDDEN = 4, 8
INPUTS = 3 + 1 + 2 * EMBEDDING  # numbers, a constant 1 for the bias, and the embeddings of shop and product


def key_of(column: bytes, value: bytes) -> int:
    """The key of a category's row: FNV-1a of "column=value". Stored rows depend on it, so it must never change."""
    key = 0xCBF29CE484222325
    for byte in column + b"=" + value:
        key = (key ^ byte) * 0x100000001B3 % 2**64
    return key


def parse_order(line: bytes) -> tuple[tuple[float, float, float], tuple[int, int], bool]:
    """(numbers, keys, label) of "price,days,discount,shop,product,returned". Raises ValueError if the line is no order."""
    price, days, discount, shop, product, returned = line.split(b",")
    numbers = float(price) / 100, float(days) / 7, float(discount) / 0.5
    if returned not in (b"0", b"1"):
        raise ValueError("the label is neither 0 nor 1")
    return numbers, (key_of(b"shop", shop), key_of(b"product", product)), returned == b"1"


class Trainer:
    def __init__(self, session: muster.Session) -> None:
        adagrad = muster.Adagrad(0.05, initial_accumulator=0.01)
        schedule = muster.ConstantRate(warmup_steps=100)
        uniform = muster.Uniform(low=-0.3, high=0.3)
        self.embedding = session.table(
            "embedding", dim=EMBEDDING, optimizer=adagrad, initializer=muster.Normal(stddev=0.05), schedule=schedule
        )
        self.hidden = session.dense("hidden", (HIDDEN, INPUTS), optimizer=adagrad, initializer=uniform, schedule=schedule)
        self.output = session.dense("output", HIDDEN + 1, optimizer=adagrad, initializer=uniform, schedule=schedule)

    def parse(self, batch: muster.Batch) -> object:
        """Called some minibatches ahead of the loop: what it returns is batch.data there."""
        orders = []
        for i, line in enumerate(batch.records):
            try:
                orders.append(parse_order(line))
            except ValueError as error:
                batch.reject(i, str(error))
        numbers = np.array([order[0] for order in orders], np.float32).reshape(-1, 3)
        keys = np.array([order[1] for order in orders], np.uint64).reshape(-1, 2)
        labels = np.array([order[2] for order in orders], bool)
        batch.need(self.embedding, keys)
        batch.need(self.hidden)
        batch.need(self.output)
        return numbers, keys, labels

    def run(self, batch: muster.Batch) -> None:
        numbers, keys, labels = batch.data
        count = len(labels)
        if count == 0:  # every record was rejected
            return
        embeddings = batch.pull(self.embedding, keys)  # [count, 2, EMBEDDING]
        hidden, output = batch.pull(self.hidden), batch.pull(self.output)

        ones = np.ones((count, 1), np.float32)
        inputs = np.hstack([numbers, ones, embeddings.reshape(count, -1)])
        active = np.hstack([np.maximum(inputs @ hidden.T, 0), ones])
        probabilities = (1 / (1 + np.exp(-(active @ output)))).astype(np.float32)
        loss = -np.log(np.maximum(np.where(labels, probabilities, 1 - probabilities), 1e-7)).mean()
        batch.metric("loss", loss, count)
        batch.auc("auc", probabilities, labels)
        if batch.evaluate:
            return

        slope = probabilities - labels.astype(np.float32)  # d loss / d logit
        down = np.outer(slope, output[:HIDDEN]) * (active[:, :HIDDEN] > 0)
        batch.push(self.hidden, down.T @ inputs / np.float32(batch.nominal_size))
        batch.push(self.output, slope @ active / np.float32(batch.nominal_size))
        batch.push(self.embedding, keys, np.ascontiguousarray((down @ hidden)[:, 4:]).reshape(embeddings.shape))


def main() -> None:
    with muster.connect() as session:
        trainer = Trainer(session)
        for batch in session.batches(trainer.parse):
            with batch:
                trainer.run(batch)


if __name__ == "__main__":
    main()
