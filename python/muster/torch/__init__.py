"""Muster for PyTorch. It imports torch, which `import muster` does not."""

from ._ddp import ElasticDDP, ElasticStep
from ._local import DiLoCo, LocalSGD

__all__ = ["DiLoCo", "ElasticDDP", "ElasticStep", "LocalSGD"]
