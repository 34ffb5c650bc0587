"""The rows of `speed.py`, each with its job, its keys, its peer and its limits."""

import dataclasses

MORE, LESS = "more is better", "less is better"
NO_SNAPSHOTS = "24h"  # peers write nothing to a disk while they are measured


@dataclasses.dataclass(frozen=True)
class Figure:
    """How a figure is shown: divided by `scale`, in `unit`."""

    label: str
    unit: str
    scale: float = 1
    better: str = MORE
    digits: int = 2


FIGURES = {
    "rows_per_second": Figure("rate", "Mrows/s", 1e6),
    "bytes_per_second": Figure("bytes", "GB/s", 1e9),
    "records_per_second": Figure("rate", "M records/s", 1e6),
    "shards_per_second": Figure("rate", "shards/s", digits=0),
    "p50_us": Figure("p50", "us", better=LESS, digits=1),
    "p99_us": Figure("p99", "us", better=LESS, digits=1),
    "step_ms": Figure("step", "ms", better=LESS, digits=1),
    "server_cpu_ns": Figure("CPU of the server, a row", "ns", better=LESS, digits=0),
    "worker_cpu_ns": Figure("CPU of the worker, a row", "ns", better=LESS, digits=0),
    "master_cpu_us": Figure("CPU of the master, a shard", "us", better=LESS, digits=1),
    "worker_cpu_us": Figure("CPU of the workers, a shard", "us", better=LESS, digits=1),
    "worker_cpu_share": Figure("CPU of the worker", "cores"),
    "server_cpu_ms": Figure("CPU of the server, a step", "ms", better=LESS, digits=1),
    "worker_cpu_ms": Figure("CPU of a worker, a step", "ms", better=LESS, digits=1),
    "cpu_ms": Figure("CPU of both, a step", "ms", better=LESS, digits=1),
    "tensors": Figure("largest memory of a worker", "tensors", better=LESS, digits=1),
}


@dataclasses.dataclass(frozen=True)
class Keys:
    """Of the calls; `exponent` of zipf's law, 0 is uniform."""

    a_call: int = 10_000
    exponent: float = 0.99
    rows: int = 1_000_000
    calls: int = 256  # then the first one comes again

    def text(self):
        return f"{'zipf(' + str(self.exponent) + ')' if self.exponent else 'uniform'}, {self.a_call:,} keys a call, {self.rows:,} rows"


@dataclasses.dataclass(frozen=True)
class Row:
    """`mode` is speed_trainer's; `figures` are shown, the first of them first; of `shared` a ratio to the peer is shown. `limits`:
    [(our figure, the limit's name, in words)]."""

    what: str
    mode: str
    figures: tuple
    shared: tuple = ()
    keys: Keys = None
    dim: int = 64
    workers: int = 1
    servers: int = 1
    partitions: int = 64  # the default of a job
    tables: int = 1  # that the rows are divided among; or tensors, the elements
    tcp: bool = False
    tls: bool = False  # over TCP, the connections are encrypted
    peer: str = None  # torch, torch over TCP, dlrover
    limits: tuple = ()
    prefetch: int = 4
    longer: float = 1  # than others it is measured: its steps are few
    snapshots: str = NO_SNAPSHOTS  # from one to the next
    python: str = None  # the interpreter whose trainer is measured, in place of that in C++


PULL_FIGURES = ("rows_per_second", "server_cpu_ns", "worker_cpu_ns")
PULL_LIMITS = (("server_cpu_ns", "gather_ns", "CPU of the server / a bare gather"),)


def sparse(what, mode="pull", **parts):
    keys = parts.pop("keys", Keys())
    bytes_limit = "tcp_rows_per_second" if parts.get("tcp") else "unix_rows_per_second"
    socket = (("rows_per_second", bytes_limit, "rate / a raw " + ("TCP" if parts.get("tcp") else "UNIX") + " socket"),)
    return Row(what, mode, PULL_FIGURES, ("rows_per_second",), keys, peer="torch", limits=socket + (PULL_LIMITS if mode == "pull" else ()), **parts)


LEASE_FIGURES = ("shards_per_second", "p50_us", "p99_us", "master_cpu_us", "worker_cpu_us")
ROWS = {
    "pull": sparse("pull, four calls ahead"),
    "pull-100k": sparse("pull of large calls", keys=Keys(100_000, calls=32)),
    "pull-dim16": sparse("pull of short rows", dim=16),
    "pull-uniform": sparse("pull of uniform keys", keys=Keys(exponent=0)),
    "pull-push": sparse("pull and push of the same rows: ours Adagrad, exactly once; torch a plain sum", "pull-push"),
    "tables": sparse("pull and push of short rows of 26 tables, as a click model has them; a call of torch carries all of them", "pull-push",
                     dim=16, tables=26),
    "pull-tcp": sparse("pull over TCP", tcp=True),
    "pull-push-tcp": sparse("pull and push over TCP", "pull-push", tcp=True),
    "small": Row("one small pull at a time, nothing ahead", "small", ("p50_us", "p99_us", "server_cpu_ns"), ("p50_us", "p99_us"),
                 Keys(100, calls=8192), peer="torch", limits=(("p50_us", "unix_p50_us", "p50 / a raw round trip over a UNIX socket"),
                                                             ("p99_us", "unix_p99_us", "p99 / a raw round trip over a UNIX socket"))),
    "lease": Row("shards of one record leased and done, one worker", "lease", LEASE_FIGURES, ("shards_per_second",), peer="dlrover"),
    "lease-64": Row("the same, 64 workers", "lease", LEASE_FIGURES, ("shards_per_second", "p99_us"), workers=64, peer="dlrover"),
    "read": Row("records of files, nothing done with them, default shard sizes", "read", ("records_per_second", "bytes_per_second", "worker_cpu_share"),
                limits=(("bytes_per_second", "memchr_bytes_per_second", "rate / read and memchr on one core"),)),
    "dense": Row("a dense tensor pulled and pushed each step by two workers", "dense",
                 ("step_ms", "server_cpu_ms", "worker_cpu_ms", "cpu_ms", "tensors"), workers=2, prefetch=2, longer=4,
                 limits=(("step_ms", "memcpy_ms", "step / memcpy of the tensor"), ("cpu_ms", "memcpy_ms", "CPU of a step / memcpy of the tensor"))),
}
