"""A worker that learns which orders customers send back: a model of Keras, and embeddings of shops and products, on the servers."""

import keras
import numpy as np
import tensorflow as tf

import muster
import muster.tensorflow

EMBEDDING = 8
PRODUCT = 1 << 32  # keys of products begin here, and those of shops at 0


def parse_order(line: bytes) -> tuple[tuple[float, float, float], tuple[int, int], float]:
    """(numbers, keys, label) of "price,days,discount,shop,product,returned". Raises ValueError if the line is no order."""
    price, days, discount, shop, product, returned = line.split(b",")
    numbers = float(price) / 100, float(days) / 7, float(discount) / 0.5
    return numbers, (int(shop.removeprefix(b"shop-")), PRODUCT + int(product.removeprefix(b"product-"))), float(int(returned))


class Trainer:
    def __init__(self, session: muster.Session) -> None:
        adagrad = muster.Adagrad(0.05, initial_accumulator=0.01)
        table = session.table("embedding", dim=EMBEDDING, optimizer=adagrad, initializer=muster.Normal(stddev=0.05))
        self.embedding = muster.tensorflow.EmbeddingTable(table)
        self.model = keras.Sequential(
            [keras.Input((3 + 2 * EMBEDDING,)), keras.layers.Dense(16, activation="relu", name="hidden"), keras.layers.Dense(1, name="output")]
        )
        self.network = muster.tensorflow.dense(session, self.model, optimizer=adagrad)

    def parse(self, batch: muster.Batch) -> object:
        """Called ahead of the loop: parses the records, and asks for what they need."""
        orders = []
        for i, line in enumerate(batch.records):
            try:
                orders.append(parse_order(line))
            except ValueError as error:
                batch.reject(i, str(error))
        numbers, keys, labels = zip(*orders)
        self.network.need(batch)
        return np.array(numbers, np.float32), self.embedding.need(batch, np.array(keys, np.uint64)), np.array(labels, np.float32)

    def run(self, batch: muster.Batch) -> None:
        numbers, lookup, labels = batch.data
        with tf.GradientTape() as tape:
            vectors = tf.reshape(self.embedding(lookup), (len(labels), 2 * EMBEDDING))
            logits = self.model(tf.concat([numbers, vectors], 1), training=not batch.evaluate)[:, 0]
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses) / batch.nominal_size
        batch.metric("loss", float(tf.reduce_mean(losses)), len(labels))
        if batch.evaluate:
            batch.auc_of_logits("auc", np.asarray(logits), labels > 0)
            return
        leaves = muster.tensorflow.leaves(batch)  # the rows of this minibatch, and the variables of the model
        muster.tensorflow.apply_gradients(batch, zip(tape.gradient(loss, leaves), leaves))


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)  # a worker each core
    with muster.connect() as session:
        trainer = Trainer(session)
        for batch in session.batches(trainer.parse):
            with batch:
                trainer.run(batch)


if __name__ == "__main__":
    main()
