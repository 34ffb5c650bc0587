"""The axes of `growth.py`, each with its values and the measurement at one of them."""

import dataclasses

from speed.rows import Keys, sparse

KEYS_IN_FILE = 2_560_000  # of all calls together, about


@dataclasses.dataclass(frozen=True)
class Axis:
    what: str
    values: tuple
    # For an axis of rates: the differences from `speed.py pull`, and the field of Row or of Keys.
    base: dict = dataclasses.field(default_factory=dict)
    field: str = ""
    measured: str = "rates"  # or "tensors", "shards", "epochs", "files", "members": the module of this folder


AXES = {
    "rows": Axis("rows in the table, 16 float32 each", (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000), {"dim": 16}, "rows"),
    "dim": Axis("float32 a row, 100,000 rows", (8, 32, 128, 512, 1024), {"rows": 100_000}, "dim"),
    "keys": Axis("keys a call, 16 float32 a row", (10, 100, 1_000, 10_000, 100_000, 1_000_000), {"dim": 16}, "a_call"),
    "partitions": Axis("partitions", (16, 64, 256, 1024, 4096), {}, "partitions"),
    "tables": Axis("tables that share the rows of 16 float32, and each call's keys", (1, 8, 26, 200, 1000), {"dim": 16}, "tables"),
    "tensors": Axis("dense tensors that share 1,000,000 float32", (1, 8, 64, 500), measured="tensors"),
    "workers": Axis("workers, 100,000 rows", (1, 2, 4, 8, 16, 32, 64), {"rows": 100_000}, "workers"),
    "servers": Axis("servers", (1, 2, 4, 8), {}, "servers"),
    "shards": Axis("shards of the job, half of them COMMITTED", (1_000, 10_000, 100_000, 1_000_000, 10_000_000), measured="shards"),
    "epochs": Axis("epochs of one minibatch", (1_000, 10_000, 100_000), measured="epochs"),
    "files": Axis("files that share 4,000,000 records of 64 bytes", (1, 10, 100, 1_000, 20_000), measured="files"),
    "members": Axis("simulated workers, 4 to a server", (10, 30, 100, 300, 1_000), measured="members"),
}


def row_of(name, value, mode):
    """The Row of `speed.rows` that is measured at a value of an axis of rates."""
    axis = AXES[name]
    parts = axis.base | {axis.field: value}
    a_call = parts.pop("a_call", 10_000)
    keys = Keys(a_call, rows=parts.pop("rows", 1_000_000), calls=max(4, min(8192, KEYS_IN_FILE // a_call)))
    return sparse(axis.what, mode, keys=keys, **parts)
