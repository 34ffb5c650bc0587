"""Muster: elastic training with parameter servers, where each minibatch takes effect exactly once.

    import muster

    with muster.connect() as session:
        weights = session.table("weights", dim=1, optimizer=muster.Adagrad(0.05))
        for batch in session.batches():
            with batch:
                ...

`docs/python.md` is a tutorial.
"""

from ._group import DiLoCo, Group, GroupStep, LocalSGD
from ._muster import (
    Adagrad,
    Adam,
    AdamW,
    Batch,
    Constant,
    ConstantRate,
    CosineDecay,
    DenseTensor,
    Ftrl,
    Momentum,
    Normal,
    OuterAdam,
    OuterNesterov,
    OuterSgd,
    RowwiseAdagrad,
    Sgd,
    StepDecay,
    Sum,
    SumBucket,
    Table,
    Uniform,
    Zero,
)
from ._jobs import Job, run
from ._launch import launch
from ._muster import version as _version
from ._session import Session, connect
from ._sources import Source, csv, parquet
from .errors import AlreadyExists, Error, FailedPrecondition, Interrupted, InvalidArgument, JobFailed, NotFound, Unavailable

__version__ = _version()

__all__ = [
    "Adagrad",
    "Adam",
    "AdamW",
    "AlreadyExists",
    "Batch",
    "Constant",
    "ConstantRate",
    "CosineDecay",
    "DenseTensor",
    "DiLoCo",
    "Error",
    "FailedPrecondition",
    "Ftrl",
    "Group",
    "GroupStep",
    "Interrupted",
    "InvalidArgument",
    "Job",
    "JobFailed",
    "LocalSGD",
    "Momentum",
    "Normal",
    "NotFound",
    "OuterAdam",
    "OuterNesterov",
    "OuterSgd",
    "RowwiseAdagrad",
    "Session",
    "Sgd",
    "Source",
    "StepDecay",
    "Sum",
    "SumBucket",
    "Table",
    "Unavailable",
    "Uniform",
    "Zero",
    "__version__",
    "connect",
    "csv",
    "launch",
    "parquet",
    "run",
]
