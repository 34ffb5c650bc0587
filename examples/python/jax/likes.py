"""Learns which user likes which item, with JAX: pulled arrays go in, and the gradients that come out are pushed.

    python likes.py

It needs no module of Muster for JAX, because JAX takes arrays of NumPy and gives them back. The records are numbers, and what they
stand for is made up from them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

import muster

USERS, ITEMS, DIM, HIDDEN = 1000, 300, 8, 16
TEST = 1 << 40  # the first record to test on


def mixed(numbers: npt.NDArray[np.uint64], salt: int) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64: other numbers, which look random."""
    state = numbers * np.uint64(2 * salt + 1) + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ state >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return state ^ state >> np.uint64(31)


def likes(numbers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """(keys [n, 2] of a user and an item, whether the user likes the item) of record numbers."""
    keys = np.stack([mixed(numbers, 1) % np.uint64(USERS), np.uint64(USERS) + mixed(numbers, 2) % np.uint64(ITEMS)], 1)
    # Each has a taste, which is an angle. Near ones like each other, with an exception in ten.
    taste = mixed(keys, 3) / 2.0**64 * 2 * np.pi
    exception = mixed(numbers, 4) % np.uint64(10) == 0
    return keys, (np.cos(taste[:, 0] - taste[:, 1]) > 0) ^ exception


def loss_of(rows: jax.Array, hidden: jax.Array, output: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(the sum of the losses, logits [n]) of rows [n, 2, DIM]."""
    active = jax.nn.relu(rows.reshape(len(rows), -1) @ hidden)
    logits = (rows[:, 0] * rows[:, 1]).sum(1) + active @ output
    return (jnp.logaddexp(0, logits) - labels * logits).sum(), logits


# Compiled once for each shape: rows have the shape of their keys, which is that of a whole minibatch but for the last one.
gradients_of = jax.jit(jax.value_and_grad(loss_of, argnums=(0, 1, 2), has_aux=True))


def learn(session: muster.Session) -> None:
    adagrad, uniform = muster.Adagrad(0.1, initial_accumulator=0.001), muster.Uniform(low=-0.3, high=0.3)
    table = session.table("taste", dim=DIM, optimizer=adagrad, initializer=muster.Normal(stddev=0.1))
    hidden = session.dense("hidden", (2 * DIM, HIDDEN), optimizer=adagrad, initializer=uniform)
    output = session.dense("output", HIDDEN, optimizer=adagrad, initializer=uniform)

    def parse(batch: muster.Batch) -> object:
        numbers = batch.record_numbers.astype(np.uint64)
        keys, labels = likes(numbers + np.uint64(TEST) if batch.evaluate else numbers)
        batch.need(table, keys)
        batch.need(hidden)
        batch.need(output)
        return keys, labels

    for batch in session.batches(parse):
        with batch:
            keys, labels = batch.data
            weights = batch.pull(table, keys), batch.pull(hidden), batch.pull(output)
            (loss, logits), gradients = gradients_of(*weights, labels.astype(np.float32))
            batch.metric("loss", float(loss) / len(labels), len(labels))
            if batch.evaluate:
                batch.auc_of_logits("auc", np.asarray(logits), labels)
                continue
            rows_gradient, hidden_gradient, output_gradient = (np.asarray(one, np.float32) / np.float32(batch.nominal_size) for one in gradients)
            batch.push(table, keys, rows_gradient)
            batch.push(hidden, hidden_gradient)
            batch.push(output, output_gradient)


if __name__ == "__main__":
    with muster.launch(learn, data_records=200_000, test_records=20_000, epochs=2, workers=2, servers=1) as job:
        print(job.dashboard_url)
    metrics = job.metrics()
    print(f"test AUC of each epoch: {[auc for auc, mode in zip(metrics['auc'], metrics['mode']) if mode == 'evaluate']}")
