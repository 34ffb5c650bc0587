"""What snapshots cost a trainer. The same job in turns: with no snapshot, with one of everything every 10 s, as is the default, and every
second. Two kinds of job: `pull-push` as the row of that name, whose rate and longest minibatch count, and small pulls whose rows are
pushed as well, so that there is something to snapshot; their latency counts. In a job with snapshots, steps while one is copied or
written are also set against those of the same job in between, where there is such a time."""

import dataclasses
import os
import shutil
import time

from scaling import figures
from scaling import job as jobs
from scaling.job import processes
from speed import command, ours, phases
from speed.rows import NO_SNAPSHOTS, ROWS, Keys

NONE = "none"
# Until the first commit, one of 256 partitions has its turn every half a minute, even if the interval is a day.
TURNS_OF_NONE = 2
INTERVALS = ("10s", "1s")  # docs/job-file.md has the default
SMOKE_INTERVALS = ("100ms",)
WINDOW = 7  # times --seconds: two of the longest interval
JOBS = {"pull-push": ROWS["pull-push"],
        "small-push": dataclasses.replace(ROWS["small"], what="small pulls, nothing ahead, and a push of the same rows", mode="small-push",
                                          keys=Keys(100, calls=8192))}
WHAT = "what snapshots cost: the rate, the longest minibatch, small pulls, the server's memory; beside the same jobs without"
PROGRAMS = ()  # beside those of all rows
LOOK_SECONDS = 0.5  # no file is deleted as soon as that
# A file tells when it was written. Its image was copied before, and the master hears of it after. Files of one burst follow each other.
BEFORE_NS, AFTER_NS, GAP_NS = 50_000_000, 20_000_000, 500_000_000


@dataclasses.dataclass(frozen=True)
class Figure:
    label: str
    unit: str
    digits: int = 2


FIGURES = {
    "rate": Figure("pull and push: rate", "Mrows/s"),
    "rate_lost": Figure("pull and push: rate lost, in turns with none", "%", 1),
    "rate_lost_inside": Figure("pull and push: rate lost, against the same job between snapshots", "%", 1),
    "rate_lost_during": Figure("pull and push: rate lost while one runs, against the same job between snapshots", "%", 1),
    "share": Figure("share of the time in which one runs", "%", 0),
    "longest_ms": Figure("longest minibatch", "ms", 1),
    "longest_more_ms": Figure("longest minibatch, more than with none", "ms", 1),
    "longest_more_inside_ms": Figure("longest minibatch while one runs, more than the longest of the same job between", "ms", 1),
    "server_cpu_ns": Figure("CPU of the server, a row", "ns", 0),
    "server_mib": Figure("largest memory of the server", "MiB", 1),
    "memory_more": Figure("largest memory of the server, more than with none", "%", 1),
    "written": Figure("written to the disk", "MB/s", 1),
    "p50_us": Figure("small pull: p50 while one runs", "us", 1),
    "p99_us": Figure("small pull: p99 while one runs", "us", 1),
    "p50_times": Figure("small pull: p50 while one runs, beside a job with none", "times"),
    "p99_times": Figure("small pull: p99 while one runs, beside a job with none", "times"),
    "p50_times_inside": Figure("small pull: p50 while one runs, beside the same job between snapshots", "times"),
    "p99_times_inside": Figure("small pull: p99 while one runs, beside the same job between snapshots", "times"),
}


class Watch:
    """Watches a job while it is measured: the server's memory, and the files of snapshots as they come."""

    def __init__(self):
        self.files = {}  # path: (when it was written, on the clock that all processes share; bytes)
        self.memory = 0  # bytes
        self._changed = {}  # folder of a partition: when it last did

    def look(self, folder):
        """Takes up the files that are new, with little work: the machine has other things to do."""
        offset = time.time_ns() - time.monotonic_ns()
        for path in (entry.path for entry in os.scandir(folder)):
            changed = os.stat(path).st_mtime_ns
            if changed != self._changed.get(path) and os.path.isdir(path):
                self._changed[path] = changed
                for file in (entry for entry in os.scandir(path) if entry.name.endswith(".sst") and entry.path not in self.files):
                    try:
                        stat = file.stat()
                    except FileNotFoundError:
                        continue  # a newer base has just replaced it
                    self.files[file.path] = (stat.st_mtime_ns - offset, stat.st_size)

    def __call__(self, job, end):
        folder = os.path.join(job.state, "snapshots")
        (server,) = processes.nodes(job.run.pid, ours.TRAINER)["ps"]
        processes.forget_most_memory(server)
        while time.monotonic_ns() < end:
            self.look(folder)
            ours.sleep_until(min(end, time.monotonic_ns() + int(LOOK_SECONDS * phases.NS)))
        self.look(folder)
        self.memory = processes.memory(server)[1]


def job_of(options, kind, interval):
    row = command.small(JOBS[kind]) if options.smoke else JOBS[kind]
    return dataclasses.replace(row, snapshots=NO_SNAPSHOTS if interval == NONE else interval, longer=WINDOW)


def run(options, kind, interval, inputs, folder):
    """{"rows_per_second", "server_cpu_ns", "memory", "files", "bytes", "all", "during", "between"} of one job."""
    watch = Watch()
    found = ours.run(options, job_of(options, kind, interval), inputs, folder, watch)
    steps = ours.steps(folder)
    begin, end = steps[0][0], steps[-1][0]
    inside = [(when, size) for when, size in watch.files.values() if begin <= when <= end]
    if (len(inside) > TURNS_OF_NONE) != (interval != NONE):
        raise jobs.Failed(f"{kind}, snapshots {interval}: {len(inside)} files of snapshots while it was measured, in {folder}")
    spans = phases.bursts([when for when, _ in inside], BEFORE_NS, AFTER_NS, GAP_NS)
    if not options.keep:
        shutil.rmtree(folder)
    return found | {"memory": watch.memory, "files": len(inside), "bytes": sum(size for _, size in inside)} | phases.split(steps, spans)


def compared(kinds, none):
    """{figure: value or None} of one round: {kind: figures} of jobs with snapshots, and of the same jobs without."""
    push, small = kinds["pull-push"], kinds["small-push"]

    def lost(now, before):
        return None if now is None or before is None else 100 * (1 - now["steps_per_second"] / before["steps_per_second"])

    def times(now, before, name):
        return None if now is None or before is None else now[name] / before[name]

    def more(now, before, name):
        return None if now is None or before is None else now[name] - before[name]
    plain = none["pull-push"]
    found = {"rate": push["rows_per_second"] / 1e6, "rate_lost": lost(push["all"], plain["all"]),
             "rate_lost_inside": lost(push["all"], push["between"]), "rate_lost_during": lost(push["during"], push["between"]),
             "share": 100 * push["during"]["seconds"] / push["all"]["seconds"] if push["during"] else None,
             "longest_ms": push["all"]["longest_ms"], "longest_more_ms": more(push["all"], plain["all"], "longest_ms"),
             "longest_more_inside_ms": more(push["during"], push["between"], "longest_ms"), "server_cpu_ns": push["server_cpu_ns"],
             "server_mib": push["memory"] / 2**20, "memory_more": 100 * (push["memory"] / plain["memory"] - 1),
             "written": push["bytes"] / push["all"]["seconds"] / 1e6}
    for name in ("p50_us", "p99_us"):
        short = name.removesuffix("_us")
        found |= {name: small["during"] and small["during"][name], f"{short}_times": times(small["during"], none["small-push"]["all"], name),
                  f"{short}_times_inside": times(small["during"], small["between"], name)}
    return found


def without(kinds):
    """The same for jobs without snapshots, where it exists."""
    push, small = kinds["pull-push"], kinds["small-push"]
    return {"rate": push["rows_per_second"] / 1e6, "longest_ms": push["all"]["longest_ms"], "server_cpu_ns": push["server_cpu_ns"],
            "server_mib": push["memory"] / 2**20, "p50_us": small["all"]["p50_us"], "p99_us": small["all"]["p99_us"]}


def summaries(rounds):
    """{interval: {figure: summary}} of [{interval: {kind: figures}}]; those of no snapshots first."""
    found = {}
    for interval in rounds[0]:
        of_rounds = [without(one[NONE]) if interval == NONE else compared(one[interval], one[NONE]) for one in rounds]
        found[interval] = {name: figures.summary([one[name] for one in of_rounds]) for name in of_rounds[0]}
    return found


def measure(options, folder):
    os.makedirs(folder)
    intervals = (NONE, *(SMOKE_INTERVALS if options.smoke else INTERVALS))
    inputs = {}
    for kind in JOBS:
        of_kind = os.path.join(folder, kind)
        os.makedirs(of_kind)
        inputs[kind] = {"lines": os.path.join(folder, "lines"), "keys": ours.write_keys(options, job_of(options, kind, NONE), of_kind)}
    ours.write_lines(os.path.join(folder, "lines"), 20_000 if options.smoke else 1_000_000, 8)
    rounds = []
    for number in range(options.rounds):
        rounds.append({interval: {} for interval in intervals})
        for kind in JOBS:
            # Whoever comes first in one round comes last in the next: what changes with time strikes all.
            for interval in intervals if number % 2 == 0 else reversed(intervals):
                found = rounds[-1][interval][kind] = run(options, kind, interval, inputs[kind], os.path.join(folder, f"{kind}-{interval}-{number}"))
                jobs.say(f"{number + 1}/{options.rounds} snapshots {interval}, {kind}: {found['rows_per_second'] / 1e6:.2f} Mrows/s, "
                         f"p99 {found['all']['p99_us']:.0f} us, {found['files']} files")
    return {"row": "snapshots", "what": WHAT, "keys": {kind: job_of(options, kind, NONE).keys.text() for kind in JOBS}, "rounds": rounds,
            "intervals": summaries(rounds)}


def text(found):
    yield f"snapshots: {found['what']}; " + "; ".join(f"{kind}: {keys}" for kind, keys in found["keys"].items())
    for interval, named in found["intervals"].items():
        yield "  no snapshots" if interval == NONE else f"  snapshots every {interval}"
        for name, figure in FIGURES.items():
            if name in named:
                label = figure.label.replace(" while one runs", "") if interval == NONE else figure.label
                yield "    " + figures.line(label, named[name], figure.unit, figure.digits)
