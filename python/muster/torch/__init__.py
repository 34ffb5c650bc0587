"""Muster for PyTorch: embeddings and dense modules on the parameter servers, and modules that a group trains together.

    import muster
    import muster.torch

    users = muster.torch.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
    network = muster.torch.dense(session, module, optimizer=muster.Adam())

    ddp = muster.torch.ElasticDDP(module, optimizer, session.group())

`docs/python.md` shows whole loops. It needs PyTorch 2.3 or newer, which `import muster` does not import.
"""

try:
    import torch as _torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("muster.torch needs PyTorch, which is not installed: call pip install torch") from error

from ._dataset import ShardDataset
from ._ddp import ElasticDDP, ElasticStep
from ._dense import Dense, dense
from ._local import DiLoCo, LocalSGD
from ._pushes import PushStep, push_step
from ._tables import EmbeddingBag, EmbeddingTable, Feature, Lookup

__all__ = [
    "Dense",
    "DiLoCo",
    "ElasticDDP",
    "ElasticStep",
    "EmbeddingBag",
    "EmbeddingTable",
    "Feature",
    "LocalSGD",
    "Lookup",
    "PushStep",
    "ShardDataset",
    "dense",
    "push_step",
]
