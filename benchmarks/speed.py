#!/usr/bin/env python3
"""How fast the path is that a trainer really takes, beside what others do and what the machine can do. Python's standard library only.

Every round of a row runs, one after the other: the machine's limits with the same keys and sizes (speed_limits); a real job, `muster
run` with one server and workers that link libmuster.so (speed_trainer); and the row's peer, where it is installed (benchmarks/peers).
Figures are medians over the rounds, with the smallest and the largest; a ratio is taken within a round, so what slows a round slows
both of its halves. Ratios to a peer are above 1 where Muster is the faster one. Nobody takes snapshots meanwhile, but in `snapshots`
and `flights`. torch is measured with 1, 4 and 8 calls in progress, and the best of them counts.

`snapshots` has neither peer nor limit: the same jobs with and without take turns, seven times --seconds each. In a job with snapshots, the
time in which one runs is set against the rest, too. `flights` trains a whole model, each job for four times --seconds; a process without
Muster trains the same one between the jobs. Workers and servers share the machine's cores, so their number is printed.
`tls`, `shuffle` and `evaluation` have neither peer nor limit: the same jobs with and without it take turns. `python` sets jobs whose
worker is Python beside those whose worker is C++, and beside torch RPC; it needs --python. `tax` is no job: it is the
server's engine alone, on one thread, for four times --seconds.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.

What can be measured:
"""

import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from scaling import figures, job  # noqa: E402
from speed import command, compare, evaluations, flights, ours, peers, python, shuffles, snapshots, tax, tls  # noqa: E402
from speed.rows import FIGURES, ROWS  # noqa: E402

LINES = {"read": (2_000_000, 100), "lease": (1_000_000, 8)}  # of the input, and bytes of each; others have little to read
OTHER_LINES = (1_000_000, 8)
# Measured each in its own way, without limits and peers.
APART = {"snapshots": snapshots, "flights": flights, "tax": tax, "tls": tls, "shuffle": shuffles, "evaluation": evaluations,
         "python": python}
WHAT = {name: row.what for name, row in ROWS.items()} | {name: module.WHAT for name, module in APART.items()}
TENSOR_BYTES = 100_000_000
EXAMPLES = """
examples:
  benchmarks/speed.py all --build build/release --peers ~/.cache/muster-peers
  benchmarks/speed.py pull pull-tcp --rounds 9 --seconds 5
  benchmarks/speed.py snapshots flights tax --rounds 3
  benchmarks/speed.py lease --smoke --output json
"""


def parse():
    parser = command.parser(__doc__, EXAMPLES, WHAT, "WHAT", rounds=5, smoke="one short round with few rows",
                            seconds=(3, "that each job and each depth of a peer is measured, dense tensors four times as long"))
    parser.add_argument("--peers", default=peers.DEFAULT_FOLDER, help="where benchmarks/peers/install put them (default: %(default)s)")
    parser.add_argument("--python", help="for `python`: a Python with the wheel installed, for example build/dev/wheel/fresh/bin/python")
    options = command.checked(parser, {name: module.PROGRAMS for name, module in APART.items()})
    if "python" in options.what and not options.python:
        parser.error("`python` needs --python, a Python with the wheel installed")
    options.peers = os.path.abspath(os.path.expanduser(options.peers))
    options.tensor_bytes, options.limit_seconds = (4_000_000, 0.02) if options.smoke else (TENSOR_BYTES, 0.5)
    return options


def limits_of(options, row, inputs):
    if row.keys:
        return ours.limits(options, "rows", inputs["keys"], row.dim, options.limit_seconds)
    if row.mode == "read":
        return ours.limits(options, "lines", inputs["lines"], options.limit_seconds)
    if row.mode == "dense":
        return ours.limits(options, "copy", options.tensor_bytes, options.limit_seconds)
    return {}


def measure(options, name, folder):
    """{"row", "ours": [figures of a round], "limits": [...], "peer": None or {"version", "depth", "rounds": [...]}, "missing"}."""
    row = command.small(ROWS[name]) if options.smoke else ROWS[name]
    os.makedirs(folder)
    inputs = {"lines": os.path.join(folder, "lines")}
    lines, length = LINES.get(row.mode, OTHER_LINES)
    ours.write_lines(inputs["lines"], 20_000 if options.smoke else lines, length)
    if row.keys:
        inputs["keys"] = ours.write_keys(options, row, folder)
    found = {"row": name, "what": row.what, "keys": row.keys.text() + f" of {row.dim} float32" if row.keys else None,
             "ours": [], "limits": [], "peer": None, "missing": None}
    asked = []
    for number in range(options.rounds):
        found["limits"].append(limits_of(options, row, inputs))
        run_folder = os.path.join(folder, str(number))
        found["ours"].append(ours.run(options, row, inputs, run_folder))
        if not options.keep:
            shutil.rmtree(run_folder)
        if row.peer and peers.python(options, row.peer):
            asked.append(peers.run(options, row, inputs))
        first = row.figures[0]
        said = [f"{number + 1}/{options.rounds} {name}: ours {compare.shown(first, found['ours'][-1][first])}"]
        said += [f"{asked[-1]['version']} with {depth} {compare.shown(first, one[first])}" for depth, one in asked[-1]["depths"].items()] if asked else []
        job.say("; ".join(said))
    if asked:
        depth = compare.best_depth([one["depths"] for one in asked], row.shared[0])
        found["peer"] = {"version": asked[0]["version"] + (" (uv, TCP)" if row.tcp else ""), "depth": depth,
                         "rounds": [one["depths"][depth] for one in asked]}
        found["ratios"] = {name: compare.ratios(name, found["ours"], found["peer"]["rounds"]) for name in row.shared}
    elif row.peer:
        found["missing"] = peers.missing(options, row.peer)
    limits = [raw | compare.in_rows(raw, 4 * row.dim) for raw in found["limits"]]
    found["shares"] = {words: compare.shares(figure, limit, found["ours"], limits) for figure, limit, words in row.limits}
    return found


def lines_of(names, rounds):
    """A line for each figure that the rounds have."""
    for name in names:
        figure, values = FIGURES[name], [one[name] for one in rounds if name in one]
        if values:
            yield figures.line(figure.label, figures.summary([value / figure.scale for value in values]), figure.unit, figure.digits)


def limit_text(name, values):
    """A limit in words: the name that speed_limits gives it, its unit at the end."""
    middle = figures.summary(values)["median"]
    for ending, unit, scale in (("_bytes_per_second", "GB/s", 1e9), ("_records_per_second", "M records/s", 1e6), ("_rows_per_second", "Mrows/s", 1e6),
                                ("_us", "us", 1), ("_ms", "ms", 1), ("_ns", "ns", 1)):
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')} {middle / scale:.3g} {unit}"
    return f"{name} {middle:.3g}"


def text(found):
    row = ROWS[found["row"]]
    yield f"{found['row']}: {found['what']}" + (f"; {found['keys']}" if found["keys"] else "")
    for line in lines_of(row.figures, found["ours"]):
        yield f"  ours    {line}"
    if found["peer"]:
        peer = found["peer"]
        for line in lines_of(row.figures, peer["rounds"]):
            yield f"  peer    {line}; {peer['version']}, {peer['depth']} at a time"
        for name, ratio in found["ratios"].items():
            yield f"  ratio   {figures.line(FIGURES[name].label, ratio, 'times as good as the peer', 2)}"
    if found["missing"]:
        yield f"  peer    not measured: {found['missing']}"
    for words, share in found["shares"].items():
        yield f"  limit   {figures.line(words, share, 'times', 2)}"
    if found["limits"][0]:
        yield "  machine " + ", ".join(limit_text(name, [one[name] for one in found["limits"]]) for name in found["limits"][0])


def main():
    options = parse()

    def work(folder):
        results = []
        every = [name for name in WHAT if name != "python" or options.python]
        for name in every if "all" in options.what else dict.fromkeys(options.what):
            of_name = os.path.join(folder, name)
            results.append(APART[name].measure(options, of_name) if name in APART else measure(options, name, of_name))
            if options.output == "text":
                print("\n".join((APART[name].text if name in APART else text)(results[-1])), flush=True)
        if options.output == "json":
            print(json.dumps(results))
        return 0
    return job.in_folder("speed.py", "speed", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
