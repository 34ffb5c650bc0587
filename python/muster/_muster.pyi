"""The C++ part of the package `muster`."""

from collections.abc import Callable, Sequence
import types
from typing import Any, Literal, overload

import numpy
import numpy.typing

import muster._outputs


def version() -> str: ...

class Sum:
    """w += g. It has no learning rate, and ignores the schedule."""

    def __init__(self) -> None: ...

class Sgd:
    """w -= learning_rate * g"""

    def __init__(self, learning_rate: float = 0.01, *, weight_decay: float = 0.0) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def weight_decay(self) -> float:
        """The factor of the weight that each gradient gets."""

class Momentum:
    """SGD with momentum, of Nesterov if asked for."""

    def __init__(self, learning_rate: float = 0.01, *, momentum: float = 0.9, nesterov: bool = False, weight_decay: float = 0.0) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def momentum(self) -> float:
        """How much of the last step the next one keeps."""

    @property
    def nesterov(self) -> bool:
        """True for the momentum of Nesterov."""

    @property
    def weight_decay(self) -> float:
        """The factor of the weight that each gradient gets."""

class Adagrad:
    """
    w -= learning_rate * g / (sqrt(s) + epsilon), where s is the sum of the squares of all gradients of this row and column.
    """

    def __init__(self, learning_rate: float = 0.01, *, initial_accumulator: float = 0.0, epsilon: float = 1e-10) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def initial_accumulator(self) -> float:
        """Where the sum of squares begins."""

    @property
    def epsilon(self) -> float:
        """What is added to the divisor."""

class RowwiseAdagrad:
    """
    Adagrad with one s per row: each step adds the mean of g * g over the columns.
    """

    def __init__(self, learning_rate: float = 0.01, *, initial_accumulator: float = 0.0, epsilon: float = 1e-10) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def initial_accumulator(self) -> float:
        """Where the sum of squares begins."""

    @property
    def epsilon(self) -> float:
        """What is added to the divisor."""

class Adam:
    """Each row has its own count of steps."""

    def __init__(self, learning_rate: float = 0.001, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def beta1(self) -> float:
        """How much of the mean gradient each step keeps."""

    @property
    def beta2(self) -> float:
        """How much of the mean square each step keeps."""

    @property
    def epsilon(self) -> float:
        """What is added to the divisor."""

class AdamW:
    """Adam with decoupled weight decay."""

    def __init__(self, learning_rate: float = 0.001, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, weight_decay: float = 0.01) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def beta1(self) -> float:
        """How much of the mean gradient each step keeps."""

    @property
    def beta2(self) -> float:
        """How much of the mean square each step keeps."""

    @property
    def epsilon(self) -> float:
        """What is added to the divisor."""

    @property
    def weight_decay(self) -> float:
        """The part of a weight that a step takes away, times the rate."""

class Ftrl:
    """FTRL-Proximal."""

    def __init__(self, learning_rate: float = 0.1, *, beta: float = 1.0, lambda1: float = 0.0, lambda2: float = 0.0) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step, which the schedule multiplies."""

    @property
    def beta(self) -> float:
        """What is added to the root of the sum of squares."""

    @property
    def lambda1(self) -> float:
        """The strength of the L1 regularisation."""

    @property
    def lambda2(self) -> float:
        """The strength of the L2 regularisation."""

class Zero:
    """Every value begins as 0."""

    def __init__(self) -> None: ...

class Constant:
    """Every value begins as `value`."""

    def __init__(self, value: float = 0.0) -> None: ...

    @property
    def value(self) -> float:
        """The value."""

class Uniform:
    """Values begin uniform in [low, high]."""

    def __init__(self, *, low: float = -0.01, high: float = 0.01) -> None: ...

    @property
    def low(self) -> float:
        """The least value."""

    @property
    def high(self) -> float:
        """The largest value."""

class Normal:
    """Values begin normally distributed."""

    def __init__(self, *, mean: float = 0.0, stddev: float = 0.01) -> None: ...

    @property
    def mean(self) -> float:
        """The mean of the values."""

    @property
    def stddev(self) -> float:
        """The standard deviation of the values."""

class ConstantRate:
    """The factor is 1 after a linear warm-up."""

    def __init__(self, *, warmup_steps: int = 0) -> None: ...

    @property
    def warmup_steps(self) -> int:
        """Minibatches in which the factor grows to 1."""

class StepDecay:
    """The factor is multiplied by `decay` every `period_steps`."""

    def __init__(self, *, period_steps: int, decay: float, warmup_steps: int = 0) -> None: ...

    @property
    def period_steps(self) -> int:
        """Minibatches from one decay to the next."""

    @property
    def decay(self) -> float:
        """What the factor is multiplied by."""

    @property
    def warmup_steps(self) -> int:
        """Minibatches in which the factor grows to 1."""

class CosineDecay:
    """
    The factor falls from 1 to `final_factor` over `period_steps`, along half a cosine, and then stays.
    """

    def __init__(self, *, period_steps: int, final_factor: float = 0.0, warmup_steps: int = 0) -> None: ...

    @property
    def period_steps(self) -> int:
        """Minibatches in which the factor falls."""

    @property
    def final_factor(self) -> float:
        """The factor at the end."""

    @property
    def warmup_steps(self) -> int:
        """Minibatches in which the factor grows to 1."""

class Table:
    """A handle of a registered table of rows by 64-bit keys."""

    @property
    def name(self) -> str:
        """The name in the job."""

    @property
    def dim(self) -> int:
        """Floats per row."""

class DenseTensor:
    """A handle of a registered tensor of fixed shape."""

    @property
    def name(self) -> str:
        """The name in the job."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""

class Session:
    @staticmethod
    def connect(master_address: str | None, worker_name: str | None, job_id: str | None, connect_timeout: float | None) -> Session: ...

    def table(self, name: str, dim: int, optimizer: Sum | Sgd | Momentum | Adagrad | RowwiseAdagrad | Adam | AdamW | Ftrl, initializer: Zero | Constant | Uniform | Normal, schedule: ConstantRate | StepDecay | CosineDecay, warm_start: str) -> Table: ...

    def dense(self, name: str, shape: int | Sequence[int], optimizer: Sum | Sgd | Momentum | Adagrad | RowwiseAdagrad | Adam | AdamW | Ftrl, initializer: Zero | Constant | Uniform | Normal, schedule: ConstantRate | StepDecay | CosineDecay, warm_start: str) -> DenseTensor: ...

    def next_loop(self, parse: Callable[[Batch], object] | None) -> Loop | None: ...

    def numbered_datasets(self) -> dict[str, int]: ...

    def check(self) -> None: ...

    def leave(self) -> None: ...

    def finish(self) -> int: ...

    def close(self) -> bool: ...

    def group(self, backend: str, device: int, library: str, driver: str) -> Group: ...

class Loop:
    def next(self) -> Batch | None: ...

    def close(self) -> None: ...

class OuterSgd:
    """
    w -= learning_rate * change. With 1, the weights become the mean of the members' weights.
    """

    def __init__(self, learning_rate: float = 1.0) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The part of the mean change that is applied."""

class OuterNesterov:
    """
    m = momentum * m + change; w -= learning_rate * (change + momentum * m).
    """

    def __init__(self, learning_rate: float = 0.7, *, momentum: float = 0.9) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step."""

    @property
    def momentum(self) -> float:
        """How much of the last step the next one keeps."""

class OuterAdam:
    """Adam; with a small epsilon, it is unstable."""

    def __init__(self, learning_rate: float = 0.3, *, beta1: float = 0.9, beta2: float = 0.95, epsilon: float = 0.1) -> None: ...

    @property
    def learning_rate(self) -> float:
        """The factor of each step."""

    @property
    def beta1(self) -> float:
        """How much of the mean change each step keeps."""

    @property
    def beta2(self) -> float:
        """How much of the mean square each step keeps."""

    @property
    def epsilon(self) -> float:
        """What is added to the divisor."""

class SumBucket:
    """A handle of a group's bucket."""

    @property
    def name(self) -> str:
        """The name in the group."""

    @property
    def elements(self) -> int:
        """How many numbers it has."""

class GroupStep:
    @property
    def step(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def evaluate(self) -> bool: ...

    @property
    def replay(self) -> bool: ...

    @property
    def state_copied(self) -> bool: ...

    @property
    def records(self) -> int: ...

    def loop(self, parse: Callable[[Batch], object] | None) -> Loop: ...

    def add(self, bucket: SumBucket, gradient: object) -> None: ...

    def put(self, bucket: SumBucket, sum: object) -> None: ...

    def commit(self, apply: Callable[[], object] | None) -> bool: ...

    def sum(self, bucket: SumBucket, out: Any) -> Any: ...

    def fail(self, reason: str) -> None: ...

    def close(self) -> None: ...

class Group:
    def add_bucket(self, name: str, elements: int, type: str, fraction_bits: int, after_loop: bool) -> SumBucket: ...

    def add_state(self, name: str, values: object) -> None: ...

    def train_locally(self, outer: OuterNesterov | OuterSgd | OuterAdam, type: str, fraction_bits: int, fragments: int, mixing: float, members: int) -> None: ...

    def add_weights(self, name: str, values: object) -> None: ...

    def add_mean(self, name: str, values: object) -> None: ...

    def next_step(self) -> GroupStep | None: ...

    def has_final_state(self) -> bool: ...

    def close(self) -> None: ...

class Batch:
    """
    Records that are trained on together; the unit of pushing. Only the thread that runs the loop may use it. `with batch:` commits it when the block is left. If an exception leaves the block, the shard fails with the exception's type, message and place instead; after a KeyboardInterrupt or a SystemExit, the shard goes back.
    """

    @property
    def records(self) -> list[bytes]:
        """
        Lines without their line ends, or the values of a topic's records. The list is made when it is first asked for.
        """

    @property
    def record_numbers(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        The record numbers, int64, of a dataset with `records: N`: 0 to N - 1 in each epoch. Such a dataset has no bytes: each of `records` is empty. Of other datasets, the array has no elements. It cannot be written, and stays valid as long as it exists.
        """

    def __len__(self) -> int: ...

    @property
    def nominal_size(self) -> int:
        """Records of a whole minibatch. Divide a sum of gradients by it."""

    @property
    def evaluate(self) -> bool:
        """
        True in a dataset of mode `evaluate` or `predict`, where push() is an error.
        """

    @property
    def predict(self) -> bool:
        """
        True in a dataset of mode `predict`, where output() gives out what the model says.
        """

    @property
    def dataset(self) -> str:
        """The name of the dataset."""

    @property
    def epoch(self) -> int:
        """Counted from 0."""

    @property
    def seed(self) -> int:
        """For random numbers: the same in every run of this minibatch."""

    @property
    def step(self) -> int:
        """The position of the minibatch in the job, from 0."""

    @property
    def shard(self) -> str:
        """"dataset/epoch/index", for logs."""

    @property
    def header(self) -> bytes:
        """The first line of the source file, if the dataset has a header."""

    @property
    def data(self) -> Any:
        """What `parse` returned, or what was set here. None at first."""

    @data.setter
    def data(self, value: Any, /) -> None: ...

    def __enter__(self) -> Batch: ...

    def __exit__(self, type: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None) -> Literal[False]: ...

    @overload
    def need(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Requests rows ahead of time; call it in `parse`. Never waits."""

    @overload
    def need(self, tensor: DenseTensor) -> None: ...

    @overload
    def pull(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.float32]:
        """
        The rows of the keys, float32, of the shape of `keys` and one more dimension of the table's dim; or the whole tensor, in its shape. Waits until they have arrived, so a need() of the same keys in `parse` saves the wait. The array cannot be written, shares the library's memory, and stays valid and constant as long as it exists, also after the minibatch. If the lease is lost meanwhile, all values are 0: compute with them as usual, their gradients are not sent.
        """

    @overload
    def pull(self, tensor: DenseTensor) -> numpy.typing.NDArray[numpy.float32]: ...

    @overload
    def push(self, table: Table, keys: numpy.typing.NDArray[numpy.uint64], gradients: numpy.typing.NDArray[numpy.float32]) -> None:
        """
        Adds gradients, float32, in the shape that pull() returns. The commit sends them. They are summed, never averaged.
        """

    @overload
    def push(self, tensor: DenseTensor, gradient: numpy.typing.NDArray[numpy.float32]) -> None: ...

    def commit(self) -> None:
        """
        Ends the minibatch and sends its gradients. Leaving a `with` block calls it, and so does the step to the next minibatch.
        """

    def on_begin(self, call: Callable[[], object]) -> None:
        """
        Calls `call()` when the loop comes to the minibatch, or at once if it is there. For `parse`. If it raises, the shard fails.
        """

    def on_commit(self, call: Callable[[], object]) -> None:
        """
        Calls `call()` once, before the minibatch is committed, and not if it fails. It may push. If it raises, the shard fails, and nothing is sent.
        """

    def metric(self, name: str, value: float, weight: float) -> None:
        """
        Adds `value` with `weight` to the epoch's weighted mean. Counts exactly once.
        """

    def auc(self, name: str, scores: numpy.typing.NDArray[numpy.float32], labels: numpy.typing.NDArray[numpy.bool_ | numpy.uint8]) -> None:
        """
        Adds scores in [0, 1], each with its label, to the area under the epoch's ROC curve.
        """

    def auc_of_logits(self, name: str, logits: numpy.typing.NDArray[numpy.float32], labels: numpy.typing.NDArray[numpy.bool_ | numpy.uint8]) -> None:
        """The same for logits, ln(p / (1 - p))."""

    def output(self, value: bytes | numpy.typing.NDArray[numpy.float32] | dict[str, Any] | muster._outputs.Columns) -> None:
        """
        Gives out what the model says about the records of a predict dataset: bytes, to which you add line ends yourself, or float32 of shape (n,) or (n, columns), or columns by their names: a dict of arrays or lists, a table or a record batch of pyarrow, or a frame that gives itself out as Arrow. The outputs of a shard become one object at `output` of the dataset, as they are (.out), as one NumPy array (.npy), or as a Parquet file (.parquet) with a row group for each call. It appears once and as a whole, whatever is killed. Columns need pyarrow, and have the same types in all calls for a shard, or it fails. In other datasets, the session fails.
        """

    def reject(self, record: int, reason: str) -> None:
        """
        Reports that records[record] cannot be used. Leave it out of the gradients yourself.
        """

    def fail(self, reason: str) -> None:
        """
        Reports that the trainer failed on this shard. The shard is tried again.
        """
