"""A worker is drained by REST while it holds shards. Those that it has not begun must run elsewhere, those that it computes it may
finish. All times are from the order, seen within some 30 ms."""

import os
import time

from scaling import figures
from scaling import job as jobs

POLL = 0.025
SHARD = 8  # minibatches
TIMES = {"back_seconds": "the last shard that it had not begun being handed back",
         "leased_seconds": "the last of them being leased to another worker",
         "first_elsewhere_seconds": "the first of them being computed there",
         "elsewhere_seconds": "the last of them being computed there, after what others had already",
         "left_seconds": "its end"}


def arguments(parser):
    parser.add_argument("--runs", type=int, default=10, help="jobs; each drains one of its workers")
    parser.add_argument("--minibatch-ms", type=int, default=50, help="what a minibatch takes; a shard has 8")


def smoke(options):
    options.runs = 1


def leased(job):
    """{shard: its answer} for the leased or done shards; None if there is no answer."""
    answer = job.rest.get("shards?limit=1000")
    return None if answer is None else {shard["id"]: shard for shard in answer["shards"]}


def one(options, data, folder):
    spec = data.spec(slow_us=options.minibatch_ms * 1000, per_shard=SHARD, workers=3,
                     leases={"heartbeatInterval": "100ms"})
    with jobs.Job(options, folder, spec, data.trainer) as job:
        job.wait_training()
        name = "worker-1"
        def held():
            mine = {i: s for i, s in (leased(job) or {}).items() if s["worker"] == name and s["state"] == "leased"}
            return mine if len(mine) >= 2 else None
        mine = job.wait(f"shards of {name}", held)
        start = job.node(name)["start"]
        began = time.monotonic()
        event = job.rest.post(f"nodes/{name}/drain", {"reason": "measured"})
        if event is None:
            raise jobs.Failed("the order to drain was not answered")
        answered = time.monotonic() - began
        back, leased_again, elsewhere, finished = {}, {}, {}, {}

        def moved():
            seen = leased(job)
            if seen is None:
                return False
            now = time.monotonic() - began
            for shard in mine:
                there = seen.get(shard)
                if there is not None and there["worker"] == name:
                    continue
                if there is not None and there["state"] == "done" and shard not in back:
                    finished.setdefault(shard, now)
                elif shard not in finished:
                    back.setdefault(shard, now)
                if there is not None and there["state"] == "leased":
                    leased_again.setdefault(shard, now)
                    if there["minibatches_started"] > 0:
                        elsewhere.setdefault(shard, now)
            return len(elsewhere) + len(finished) == len(mine)

        def gone():
            node = job.node(name)
            return node is not None and node["state"] in ("exited", "finished") and node["start"] == start

        job.wait("the drained worker's shards", moved, 60, POLL)
        job.wait("the end of the drained worker", gone, 60, POLL)
        left = time.monotonic() - began
        redelivered = job.wait("the counters", lambda: job.rest.get("job"))["counters"]["redelivered_minibatches"]
        job.rest.post("job/cancel", {"reason": "measured"})
        job.run.wait(timeout=60)
        return {"held": len(mine), "handed_back": len(back), "finished_itself": len(finished), "answered_seconds": answered,
                "back_seconds": max(back.values(), default=None), "leased_seconds": max(leased_again.values(), default=None),
                "elsewhere_seconds": max(elsewhere.values(), default=None), "first_elsewhere_seconds": min(elsewhere.values(), default=None),
                "left_seconds": left, "redelivered": redelivered}


def measure(options, folder):
    data = jobs.Numbers(options, os.path.join(folder, "data"), 200_000)
    runs = []
    for number in range(options.runs):
        runs.append(one(options, data, os.path.join(folder, str(number))))
        jobs.say(f"drain {number + 1}/{options.runs}: {runs[-1]}")
    problems = [f"drain {number + 1}: {run['redelivered']} minibatches were delivered again" for number, run in enumerate(runs) if run["redelivered"]]
    return {"runs": runs, "shard_seconds": SHARD * options.minibatch_ms / 1000, "problems": problems, "ok": not problems} | {
        name: figures.summary([run[name] for run in runs]) for name in TIMES}


def text(result):
    handed, finished = (sum(run[name] for run in result["runs"]) for name in ("handed_back", "finished_itself"))
    return [f"{len(result['runs'])} drains of one of three workers, whose shards take {result['shard_seconds']:.2f} s: {handed} shards handed back, "
            f"{finished} finished by itself, {sum(run['redelivered'] for run in result['runs'])} minibatches delivered again"] + [
                figures.line("from the order to " + what, result[name], "s", 2) for name, what in TIMES.items()]
