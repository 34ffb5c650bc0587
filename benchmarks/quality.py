#!/usr/bin/env python3
"""Measures what is learned: the AUC of the flights example on its test set, for data that comes in the shapes of real data, in turns
with one process that trains the same model on the same records with a full shuffle (flights_local). Python's standard library only.

Each round is a real job, `muster run`, of the example's trainer with two workers and two servers (unless the line says another number),
and with another seed; servers write snapshots every 2 s. The AUC is that of the evaluation after one pass over the data (`--passes`). The
reference shuffles all records, and applies gradients as late as two workers do. Kills are SIGKILL, evenly over the data. Topics need a
broker (scripts/kafka install) and kcat.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured and within --bound, 1 a mean is further below the reference, 2 bad
arguments, 3 a measurement did not come to its end (or Kafka is missing), 130 interrupted.

Shapes:
"""

import json
import os
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from quality import plot, ways  # noqa: E402
from quality.shapes import SHAPES, TOPICS, Records  # noqa: E402
from quality.topics import Topics, kafka_broker  # noqa: E402
from quality.ways import WAYS  # noqa: E402
from scaling import job  # noqa: E402
from speed import command  # noqa: E402

LATE = 4  # minibatches: about what two workers lack of each other's pushes
ALL = SHAPES | WAYS | TOPICS
PROGRAMS = ("cli/muster", "examples/flights/flights_local", f"examples/flights/{job.FLIGHTS_TRAINER}")

EXAMPLES = """
examples:
  benchmarks/quality.py all --build build/release --rounds 10
  benchmarks/quality.py label small --rounds 3 --passes 2 --output json
"""


def parse():
    parser = command.parser(__doc__, EXAMPLES, {name: words for name, (words, _) in ALL.items()}, "SHAPE", rounds=10,
                            smoke="one round with a tenth of the records", seconds=(1, "has no meaning here"))
    parser.add_argument("--passes", type=int, default=1, help="epochs (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--bound", type=float, help="the mean of a shape may lie so far below the reference")
    parser.add_argument("--plot", metavar="FILE", help="draws the rounds to an SVG file")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    for program in PROGRAMS:
        if not os.access(os.path.join(options.build, program), os.X_OK):
            parser.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    if options.rounds < 1 or options.passes < 1:
        parser.error("--rounds and --passes are at least 1")
    if options.smoke:
        options.rounds = 1
    options.what = list(ALL) if "all" in options.what else list(dict.fromkeys(options.what))
    return options


def run_local(options, folder, records, test, seed, passes):
    """The AUC of the same model in one process, with a full shuffle, after so many passes."""
    os.makedirs(folder)
    records.write(os.path.join(folder, "train.csv"), records.shuffled(seed))
    os.symlink(test, os.path.join(folder, "test.csv"))
    done = subprocess.run([os.path.join(options.build, PROGRAMS[1]), folder, "--epochs", str(passes), "--stale", str(LATE),
                           "--shard", str(len(records.lines))], stdout=subprocess.PIPE, text=True, timeout=1200, check=False)
    found = re.findall(r"test AUC ([\d.]+)", done.stdout)
    if len(found) != passes:
        raise job.Failed(f"flights_local said: {done.stdout[-500:]}")
    return float(found[-1])


def run_shape(options, name, place, records, test, seed):
    if name not in TOPICS:
        write = SHAPES["mixed" if name in WAYS else name][1]
        return ways.run(options, name, place, write(records, place, seed), test, seed, len(records.lines))
    with Topics(os.path.join(place, "broker")) as topics:
        datasets, produced = topics.begin("flights", TOPICS[name][1], records.shuffled(seed))
        try:
            return ways.run(options, name, place, datasets, test, seed, len(records.lines))
        finally:
            produced.stopped.set()
            produced.join()


def passes_of(options, name):
    return (WAYS[name][1].passes if name in WAYS else 0) or options.passes


def reference(passes):
    return f"reference{passes}"


def summary(values):
    return {"mean": statistics.mean(values), "sd": statistics.stdev(values) if len(values) > 1 else 0.0, "least": min(values),
            "n": len(values)}


def measure(options, folder):
    data = os.path.join(folder, "data")
    subprocess.run([os.path.join(ROOT, "examples", "flights", "prepare_data"), data], check=True)
    records, test = Records(os.path.join(data, "train.csv")), os.path.join(data, "test.csv")
    if options.smoke:
        records.lines = records.lines[:len(records.lines) // 10]
    passes = {name: passes_of(options, name) for name in options.what}
    aucs = {reference(one): [] for one in sorted(set(passes.values()))} | {name: [] for name in options.what}
    for seed in range(1, options.rounds + 1):
        for one in sorted(set(passes.values())):
            aucs[reference(one)].append(run_local(options, os.path.join(folder, f"reference{one}-{seed}"), records, test, seed, one))
        for name in options.what:
            place = os.path.join(folder, f"{name}-{seed}")
            os.makedirs(place)
            aucs[name].append(run_shape(options, name, place, records, test, seed))
        job.say(f"{seed}/{options.rounds}: " + ", ".join(f"{name} {values[-1]:.4f}" for name, values in aucs.items()))
    if options.plot:
        words = {reference(one): f"one process, full shuffle, passes: {one}" for one in passes.values()} | {name: words for name, (words, _) in ALL.items()}
        plot.draw(options.plot, aucs, words)
    found = {name: summary(values) for name, values in aucs.items()}
    for name, one in passes.items():
        base = found[reference(one)]["mean"]
        found[name] |= {"mean_beside": found[name]["mean"] - base, "least_beside": found[name]["least"] - base}
    return found


def text(found):
    for name, one in found.items():
        beside = f"; mean {one['mean_beside']:+.4f}, least {one['least_beside']:+.4f}" if "mean_beside" in one else ""
        yield f"{name:10} AUC {one['mean']:.4f} (sd {one['sd']:.4f}, least {one['least']:.4f}, n {one['n']}){beside}"


def main():
    options = parse()

    def work(folder):
        try:
            found = measure(options, folder)
        except kafka_broker.Missing as missing:
            raise job.Failed(str(missing)) from missing
        print(json.dumps(found) if options.output == "json" else "\n".join(text(found)), flush=True)
        low = -options.bound if options.bound is not None else -float("inf")
        return 1 if any(one.get("mean_beside", 0) < low for one in found.values()) else 0
    return job.in_folder("quality.py", "quality", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
