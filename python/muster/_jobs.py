"""Jobs that a script or a notebook starts: `run`, and what it returns."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any

from ._command import executable
from .errors import Error, FailedPrecondition, InvalidArgument, JobFailed, Unavailable

# Exit codes of `muster` (docs/cli.md).
_SUCCEEDED, _USAGE, _DRAINED, _UNREACHABLE = 0, 2, 3, 5
# Master and scaler may be away for a moment, for example while they are started.
_PATIENCE_S = 30.0
_PAUSE_S = 0.1
# The columns of metrics() before those of the metrics.
_COLUMNS = ("dataset", "mode", "epoch", "records_committed", "rejected_records")


class Job:
    """A job that this process runs on this machine: `run()` and `launch()` return it.

    It is over when its data are trained, and ends at once when this process ends, however that happens. `with` waits for
    it: leaving the block waits until the job is over and raises `JobFailed` if it has failed. If an exception leaves the
    block (Ctrl-C, too), the job is drained: it takes snapshots, and the same call resumes it. Another Ctrl-C ends it at once.

    Each call starts the executable `muster` of this package, and so shows exactly what its verb shows (docs/cli.md).
    Thread-safe. A forked child cannot use it.
    """

    def __init__(self, process: subprocess.Popen[bytes], target: Sequence[str], output: IO[bytes], said: IO[bytes] | None) -> None:
        """Use `run()` or `launch()`."""
        self._process = process
        self._owner = os.getpid()
        self._target = list(target)
        self._output = output
        self._said = said
        for file in (output, said):
            if file is not None:
                weakref.finalize(self, file.close)

    @property
    def pid(self) -> int:
        """The pid of `muster run`."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """False when the job is over, or was drained or stopped."""
        self._require_owner()
        return self._process.poll() is None

    def status(self) -> dict[str, Any]:
        """What `muster status --output json` shows: state, progress, metrics, nodes, counters. Also when the job is over."""
        answer: dict[str, Any] = json.loads(self._ask("status"))
        return answer

    def events(self, *, last: int | None = None) -> list[dict[str, Any]]:
        """What happened and what was decided, oldest first; only the newest `last` if given."""
        lines = self._ask("events", *([] if last is None else ["--last", str(last)])).splitlines()
        return [json.loads(line) for line in lines]

    def nodes(self) -> list[dict[str, Any]]:
        """The processes of the job: role, state, pid, restarts, last exit."""
        nodes: list[dict[str, Any]] = json.loads(self._ask("nodes"))["nodes"]
        return nodes

    def metrics(self) -> dict[str, list[Any]]:
        """A table of all epochs, as columns of equal length: `pandas.DataFrame(job.metrics())` takes it.

        The columns are `dataset`, `mode` ("train", "evaluate" or "predict"), `epoch` (from 0), `records_committed`, `rejected_records`,
        and one of float for each metric, with NaN where an epoch has no value. A metric that is named like another column
        is `metric.NAME`.
        """
        datasets = json.loads(self._ask("status", "--all-epochs"))["datasets"]
        rows = [(dataset, epoch) for dataset in datasets for epoch in dataset["epochs"]]
        table: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        names = sorted({name for _, epoch in rows for name in epoch["metrics"]})
        columns = {name: f"metric.{name}" if name in _COLUMNS else name for name in names}
        table.update({column: [] for column in columns.values()})
        for dataset, epoch in rows:
            table["dataset"].append(dataset["name"])
            table["mode"].append(dataset["mode"])
            for name in _COLUMNS[2:]:
                table[name].append(epoch[name])
            for name, column in columns.items():
                value = epoch["metrics"].get(name)
                table[column].append(math.nan if value is None else float(value))
        return table

    def scale(self, *, workers: int) -> int:
        """Changes the number of workers, and returns the number of the order's event. It holds until policies resume."""
        number: int = json.loads(self._ask("scale", "--workers", str(workers)))["event"]["id"]
        return number

    @property
    def dashboard_url(self) -> str:
        """The address of the job's page. It contains the job's token: who has it can give orders to the job."""
        address: str = json.loads(self._ask("dashboard"))["address"]
        return address

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits until the job is over, drained or stopped, and returns its summary (docs/cli.md, summary.json).

        `timeout` is in seconds. Raises `TimeoutError` when it is over, and `JobFailed` with the reason if the job has failed,
        or was cancelled.
        """
        self._require_owner()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the job is not over after {timeout} s") from None
        return self._outcome()

    def stop(self, *, now: bool = False) -> dict[str, Any]:
        """Ends the run, so that the same call resumes it, and returns its summary.

        The job is drained: workers finish their shards, and servers take snapshots. With `now`, everything ends at once,
        and what was not committed runs again. Does nothing if the job is over.
        """
        while self.running:
            # The first signal drains, the second ends at once. Two that come together may arrive as one.
            self._process.send_signal(signal.SIGTERM)
            if not now:
                break
            with contextlib.suppress(TimeoutError):
                return self.wait(_PAUSE_S)
        return self.wait()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self.wait()
            return
        try:
            if self.running:
                print("muster: draining the job; Ctrl-C ends it at once", file=sys.stderr)
            self.stop()
        except KeyboardInterrupt:
            self.stop(now=True)
        except Error:
            pass  # the exception that leaves the block tells more

    def __repr__(self) -> str:
        return f"<muster.Job {' '.join(self._target)}: {'running' if self.running else 'over'}, pid {self.pid}>"

    def _repr_html_(self) -> str:
        """What Jupyter shows: state, progress and metrics of now."""
        import html  # takes time, and only notebooks need it

        try:
            status = self.status()
        except Error as error:
            return f"<p>{html.escape(str(error))}</p>"
        progress = status["progress"]
        done, expected = progress["records_done"], progress["records_expected"]
        rows = [
            f"<tr><td>{html.escape(trend['dataset'])}</td><td>{html.escape(trend['metric'])}</td><td>{trend['latest']}</td></tr>"
            for trend in status["metric_trends"]
        ]
        return (
            f"<p><b>{html.escape(status['name'])}</b>: {html.escape(status['state'])} {html.escape(status['reason'])}<br>"
            f'<progress value="{done}" max="{max(expected, 1)}"></progress> {done:,} of {expected:,} records</p>'
            f"<table>{''.join(rows)}</table>"
        )

    def _require_owner(self) -> None:
        if os.getpid() != self._owner:
            raise FailedPrecondition("this process was forked from the one that runs the job: use the job there")

    def _await_start(self) -> None:
        """Waits until verbs find this run, and not an earlier one of the same state directory. Raises if it is refused."""
        while self.running:
            listed = json.loads(_answer(["list"]))["jobs"]
            if any(job["pid"] == self.pid for job in listed):
                return
            time.sleep(_PAUSE_S)
        self._outcome()

    def _ask(self, *arguments: str) -> str:
        self._require_owner()
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return _answer([*arguments, *self._target])
            except Unavailable:
                if not self.running or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)

    def _outcome(self) -> dict[str, Any]:
        """What `muster run` has printed; raises if that is a failure."""
        code = self._process.returncode
        text = _contents(self._output)
        summary: dict[str, Any] = json.loads(text) if text else {}
        if code in (_SUCCEEDED, _DRAINED):
            return summary
        said = _message(_contents(self._said)) if self._said is not None else "its last lines on stderr say why"
        if code == _USAGE and not summary:
            raise InvalidArgument(said)
        raise JobFailed(summary.get("reason") or said or f"`muster run` has ended with {code}", code, summary)


def _contents(file: IO[bytes]) -> str:
    # Not by its position, which threads would share.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def _message(said: str) -> str:
    return said.strip().removeprefix("muster: ")


def _answer(arguments: Sequence[str]) -> str:
    """What a verb prints as JSON."""
    call = subprocess.run(
        [executable(), *arguments, "--output", "json"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if call.returncode == _SUCCEEDED:
        return call.stdout
    kind = {_USAGE: InvalidArgument, _UNREACHABLE: Unavailable}.get(call.returncode, Error)
    raise kind(_message(call.stderr))


def refuse_in_worker() -> None:
    """Raises in a worker of a job, which has run the script that started the job."""
    if "MUSTER_NODE" in os.environ:
        raise FailedPrecondition(
            "this process is a worker of a job, and would start the job again: put the call below `if __name__ == \"__main__\":`"
        )


def start(verb: Sequence[str], target: Sequence[str], progress: bool | None) -> Job:
    """Starts `muster VERB`, whose job other verbs find by `target`. Waits until it runs, or raises if it is refused."""
    refuse_in_worker()
    shown = sys.stderr.isatty() if progress is None else progress
    options = ["--output", "json", "--end-with", str(os.getpid()), *([] if shown else ["--no-progress"])]
    # Files in memory, which take any amount before they are read.
    output = os.fdopen(os.memfd_create("muster-output"), "rb")
    said = None if shown else os.fdopen(os.memfd_create("muster-said"), "rb")
    process = subprocess.Popen(
        [executable(), verb[0], *options, *verb[1:]],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=said,
        start_new_session=True,  # Ctrl-C reaches this process alone, which then decides
    )
    job = Job(process, target, output, said)
    try:
        job._await_start()
    except BaseException:
        if job.running:
            job.stop(now=True)
        raise
    return job


def run(job_file: str | os.PathLike[str], *, retry_failed: bool = False, progress: bool | None = None) -> Job:
    """Runs a job on this machine, or resumes it, as `muster run` does, and returns when it has been started.

        with muster.run("job.yaml") as job:
            print(job.dashboard_url)
        print(job.metrics())

    `retry_failed` tries FAILED shards again. `progress` shows it on stderr, by default if that is a terminal. Raises
    `InvalidArgument` with every mistake if the job file or the data are refused; then nothing was started.
    """
    path = os.path.abspath(job_file)
    return start(["run", path, *(["--retry-failed"] if retry_failed else [])], [path], progress)
