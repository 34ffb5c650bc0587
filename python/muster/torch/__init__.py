"""Muster for PyTorch: embeddings and dense modules on the parameter servers. It needs PyTorch 2.3 or newer.

    import muster
    import muster.torch

    users = muster.torch.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
    network = muster.torch.dense(session, module, optimizer=muster.Adam())

`docs/python.md` shows a whole loop.
"""

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("muster.torch needs PyTorch, which is not installed: call pip install torch") from error

from ._dense import Dense, dense
from ._tables import EmbeddingBag, EmbeddingTable, Feature, Lookup

__all__ = [
    "Dense",
    "EmbeddingBag",
    "EmbeddingTable",
    "Feature",
    "Lookup",
    "dense",
]
