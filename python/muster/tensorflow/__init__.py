"""Muster for TensorFlow: embeddings and dense models on the parameter servers.

    import muster
    import muster.tensorflow

    users = muster.tensorflow.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
    network = muster.tensorflow.dense(session, model, optimizer=muster.Adam())

`docs/python.md` shows whole loops. It needs TensorFlow with Keras 3 (2.16 or newer), which `import muster` does not import.
"""

try:
    import tensorflow as _tensorflow
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("muster.tensorflow needs TensorFlow, which is not installed: call pip install tensorflow") from error

from ._dense import Dense, dense
from ._leaves import apply_gradients, leaves
from ._tables import Bags, EmbeddingBag, EmbeddingTable, Lookup

__all__ = [
    "Bags",
    "Dense",
    "EmbeddingBag",
    "EmbeddingTable",
    "Lookup",
    "apply_gradients",
    "dense",
    "leaves",
]
