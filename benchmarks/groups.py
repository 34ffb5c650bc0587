#!/usr/bin/env python3
"""How fast members of a synchronous group add their gradients, beside a peer and what the machine can do. Python's standard library only.

Every round runs, one after the other, for each number of processes and each size: our sum through shared memory, over UNIX sockets and
over TCP (collectives_bench, which also takes memcpy of the same bytes between the sums), and all_reduce of torch.distributed with the
backend gloo on loopback, where torch is installed. A figure of a round is the median of its runs, as rank 0 sees them. Figures are
medians over the rounds, with the smallest and the largest; a ratio is taken within a round, so what slows a round slows both of its
halves. Ratios are above 1 where Muster is the faster one.

All processes share this machine's cores, so their number is printed. Rank 0 of ours begins a sum while the others wait for it; those of
gloo begin together, after a barrier. All members compute a checksum of each sum, and get the same bits;
over TCP, each frame has a checksum, too. Gloo has neither.

The limit: a member of N reads and writes about 2 (N - 1) / N times the bucket when it sends, and as much when it receives. Where each
process has a core of its own, a sum takes at least 4 (N - 1) / N copies; with fewer cores, N / cores times as many.

torch comes from `benchmarks/peers/install torch`, or from any other virtual environment: --peers FOLDER, with Python at
FOLDER/torch/bin/python. Without it, the peer is left out, and the output says so.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from scaling import figures, job  # noqa: E402
from speed import peers  # noqa: E402

WAYS = {"shared": "shared memory", "unix": "UNIX sockets", "tcp": "TCP"}
PEER = "gloo"
MEMBERS, SIZES = (2, 4), {"64B": 64, "64MiB": 64 << 20}
RUNS = {"64B": 300, "64MiB": 5}
PROGRAM = os.path.join("benchmarks", "collectives_bench")
EXAMPLES = """
examples:
  benchmarks/groups.py
  benchmarks/groups.py --members 4 --size 64MiB --rounds 9
  benchmarks/groups.py --smoke --output json
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the program (default: %(default)s)")
    parser.add_argument("--peers", default=peers.DEFAULT_FOLDER, help="where benchmarks/peers/install put torch (default: %(default)s)")
    parser.add_argument("--members", type=int, choices=MEMBERS, help="processes (default: 2, then 4)")
    parser.add_argument("--size", choices=SIZES, help="of the bucket (default: both)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--smoke", action="store_true", help="one short round with less data: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    options.build, options.peers = os.path.abspath(options.build), os.path.abspath(os.path.expanduser(options.peers))
    if not os.access(os.path.join(options.build, PROGRAM), os.X_OK):
        parser.error(f"--build {options.build}: no {PROGRAM} there; build it first, or name another folder")
    if not 1 <= options.rounds <= 1000:
        parser.error("--rounds is from 1 to 1000")
    if options.smoke:
        options.rounds = 1
    return options


def ours(options, way, members, size, runs):
    """The medians of a round: {"sum_ms", "memcpy_ms", "socket_ms"}."""
    command = [os.path.join(options.build, PROGRAM), "--way", way, "--members", members, "--bytes", size, "--runs", runs, "--output", "json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise job.Failed(f"{' '.join(map(str, command))} ended with code {done.returncode}:\n{done.stderr[-4000:]}")
    found = json.loads(done.stdout)
    return {name: statistics.median(found[name]) for name in ("sum_ms", "memcpy_ms", "socket_ms")}


def measure(options, members, size_name):
    """{"members", "bytes", "ways": {way: [figures of a round]}, "peer": None or {"version", "rounds"}, "missing"}."""
    size, runs = (min(SIZES[size_name], 1 << 20), 3) if options.smoke else (SIZES[size_name], RUNS[size_name])
    found = {"members": members, "bytes": size, "cores": os.cpu_count(), "ways": {way: [] for way in WAYS}, "peer": None, "missing": None}
    for number in range(options.rounds):
        for way in WAYS:
            found["ways"][way].append(ours(options, way, members, size, runs))
        said = [f"{WAYS[way]} {rounds[-1]['sum_ms']:.3f} ms" for way, rounds in found["ways"].items()]
        if peers.python(options, "torch"):
            answer = peers.ask(options, "torch", "torch_gloo.py", "--members", members, "--bytes", size, "--runs", runs)
            found["peer"] = found["peer"] or {"version": answer["version"], "rounds": []}
            found["peer"]["rounds"].append(statistics.median(answer["sum_ms"]))
            said.append(f"{PEER} {found['peer']['rounds'][-1]:.3f} ms")
        else:
            found["missing"] = peers.missing(options, "torch")
        job.say(f"{number + 1}/{options.rounds} {members} processes, {size_name}: {', '.join(said)}")
    return found | {"ratios": ratios(found)}


def ratios(found):
    """Summaries, round by round: {way: {"copies": sums in times of memcpy, "peer": times of the peer in sums; None without it}}."""
    answer = {}
    for way, rounds in found["ways"].items():
        peer = found["peer"] and [theirs / one["sum_ms"] for theirs, one in zip(found["peer"]["rounds"], rounds)]
        answer[way] = {"copies": figures.summary([one["sum_ms"] / one["memcpy_ms"] for one in rounds if one["memcpy_ms"] > 0]),
                       "peer": peer and figures.summary(peer)}
    return answer


def text(found):
    large = found["bytes"] > 4096
    scale, unit, digits = (1, "ms", 2) if large else (1e3, "us", 1)
    yield f"{found['members']} processes on {found['cores']} cores add {found['bytes']} bytes of float32"
    for way, rounds in found["ways"].items():
        yield "  ours    " + figures.line(WAYS[way], figures.summary([scale * one["sum_ms"] for one in rounds]), unit, digits)
    if found["peer"]:
        yield "  peer    " + figures.line(found["peer"]["version"], figures.summary([scale * one for one in found["peer"]["rounds"]]), unit, digits)
        for way, ratio in found["ratios"].items():
            yield "  ratio   " + figures.line(WAYS[way], ratio["peer"], "times as fast as the peer", 2)
    else:
        yield f"  peer    left out: {found['missing']}"
    if large:
        for way, ratio in found["ratios"].items():
            yield "  limit   " + figures.line(WAYS[way], ratio["copies"], "copies of the bucket (memcpy)", 1)
        copies = 4 * (found["members"] - 1) / found["members"] * max(1, found["members"] / found["cores"])
        yield f"  limit   at least {copies:.1f} copies"


def main():
    options = parse()

    def work(_):
        results = []
        for members in [options.members] if options.members else MEMBERS:
            for size in [options.size] if options.size else SIZES:
                results.append(measure(options, members, size))
                if options.output == "text":
                    print("\n".join(text(results[-1])), flush=True)
        if options.output == "json":
            print(json.dumps(results))
        return 0
    return job.in_folder("groups.py", "groups", False, work)


if __name__ == "__main__":
    sys.exit(main())
