#!/usr/bin/env python3
"""The AUC and the loss of exported weights on a file of orders. Needs NumPy, and nothing of Muster.

Example: score.py out test.csv
"""

import sys

import numpy as np


def key_of(column, value):
    """As KeyOf in trainer.cc."""
    key = 0xCBF29CE484222325
    for byte in f"{column}={value}".encode():
        key = (key ^ byte) * 0x100000001B3 % 2**64
    return key


def read_orders(path):
    """numbers [orders, 3], keys [orders, 2] and labels [orders] of the lines that are orders."""
    numbers, keys, labels = [], [], []
    with open(path, encoding="utf-8") as file:
        next(file)  # the header
        for line in file:
            try:
                price, days, discount, shop, product, returned = line.rstrip("\n").split(",")
                row = [float(price) / 100, float(days) / 7, float(discount) / 0.5]
                label = {"0": 0, "1": 1}[returned]
            except (ValueError, KeyError):
                continue
            numbers.append(row)
            keys.append([key_of("shop", shop), key_of("product", product)])
            labels.append(label)
    return np.array(numbers, np.float32), np.array(keys, np.uint64), np.array(labels)


def rows_of(folder, keys):
    """Embeddings [orders, 2 * 4]; zeros for a category that the job has never seen."""
    known = np.load(f"{folder}/embedding.keys.npy")  # ascending
    rows = np.load(f"{folder}/embedding.values.npy")
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found = known[places] == keys
    return (rows[places] * found[..., None]).reshape(len(keys), -1)


def probabilities_of(folder, numbers, keys):
    ones = np.ones((len(numbers), 1), np.float32)
    inputs = np.hstack([numbers, ones, rows_of(folder, keys)])
    hidden = np.maximum(inputs @ np.load(f"{folder}/hidden.npy").T, 0)
    logits = np.hstack([hidden, ones]) @ np.load(f"{folder}/output.npy")
    return 1 / (1 + np.exp(-logits))


def main():
    folder, path = sys.argv[1:]
    numbers, keys, labels = read_orders(path)
    scores = probabilities_of(folder, numbers, keys)
    loss = -np.log(np.where(labels == 1, scores, 1 - scores)).mean()
    negatives = np.sort(scores[labels == 0])
    auc = np.searchsorted(negatives, scores[labels == 1]).mean() / len(negatives)
    print(f"{len(labels)} orders, auc {auc:.4f}, loss {loss:.4f}")


if __name__ == "__main__":
    main()
