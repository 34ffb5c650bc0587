"""The scaler is killed (SIGKILL) in the middle of a job, again and again. From the kill to REST answering again means: until a new
scaler names every node as running; before that, when it answers at all. Pauses between starts of a scaler are a setting, and none here."""

import os
import random
import signal
import time

from scaling import figures
from scaling import job as jobs
from scaling.job import processes


def arguments(parser):
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--seconds", type=float, default=60, help="what the job takes at least")


def smoke(options):
    options.kills, options.records, options.seconds = 1, 20_000, 5


def lives(nodes):
    """{node: (start, pid)} of what must not be restarted, or None when not all of it runs."""
    found = {name: (node["start"], node["pid"]) for name, node in (nodes or {}).items() if node["role"] in ("ps", "worker") and node["state"] == "running"}
    return found if len(found) == 4 else None


def measure(options, folder):
    data = jobs.Numbers(options, os.path.join(folder, "data"), options.records)
    slow_us = int(options.seconds * 1e6 * 2 * 64 / options.records)
    spec = data.spec(slow_us=slow_us, worker={"limits": {"memory": "512Mi"}}, server={"limits": {"memory": "512Mi"}},
                     restarts={"crashLoopExits": 1000, "backoffInitial": "0s", "backoffMax": "0s"})
    chance, first, times, problems = random.Random(1), [], [], []
    with jobs.Job(options, os.path.join(folder, "job"), spec, data.trainer) as job:
        job.wait_training()
        before = job.wait("all nodes", lambda: lives(job.nodes()))
        for number in range(options.kills):
            scaler = job.wait("a scaler", lambda: processes.nodes(job.run.pid, data.trainer)["scaler"])[0]
            began = time.monotonic()
            processes.send(scaler, signal.SIGKILL)
            # Who answers now is another one: the address says whose it is only to those who look, so wait for the old one's end.
            processes.wait_gone([scaler], 10)
            job.wait("any answer of the next scaler", lambda: job.rest.get("policies"), 60, 0.005)
            first.append(time.monotonic() - began)
            after = job.wait("an answer of the next scaler", lambda: lives(job.nodes()), 60, 0.005)
            times.append(time.monotonic() - began)
            jobs.say(f"kill {number + 1}/{options.kills}: REST answers after {first[-1]:.2f} s, for all nodes after {times[-1]:.2f} s")
            if after != before:
                problems.append(f"kill {number + 1}: start and pid were {before}, are {after}")
                before = after
            time.sleep(chance.uniform(0.2, 1.5))
        summary = job.finish(options.seconds * 10 + 120)
        committed = jobs.require_exact(summary)
        wrong = data.wrong_rows(job, 1)
        events = job.events()
    result = {"kills": options.kills, "seconds_to_serve": figures.summary(times), "seconds_to_answer": figures.summary(first), "committed": committed,
              "expected": jobs.counts(summary)[1], "wrong_rows": wrong, "restarts": summary["restarts"],
              "redelivered_minibatches": summary["counters"]["redelivered_minibatches"],
              "decisions": sum(event["kind"] == "decision" for event in events), "problems": problems}
    if wrong:
        problems.append(f"{wrong} rows are not the closed form")
    if summary["restarts"]["ps"] or summary["restarts"]["worker"]:
        problems.append(f"restarts: {summary['restarts']}")
    ids = [event["id"] for event in events]
    if ids != list(range(1, len(ids) + 1)):
        problems.append(f"ids of events have gaps, or come twice: {ids}")
    result["ok"] = not problems
    return result


def text(result):
    restarts = result["restarts"]
    return [f"{result['kills']} kills of the scaler: servers restarted {restarts['ps']}, workers {restarts['worker']}, minibatches delivered again "
            f"{result['redelivered_minibatches']}, decisions {result['decisions']}",
            f"committed / expected {result['committed']:,} / {result['expected']:,}; {result['wrong_rows']} wrong rows",
            figures.line("from SIGKILL to the first answer of REST", result["seconds_to_answer"], "s", 2),
            figures.line("from SIGKILL to REST answering for all nodes", result["seconds_to_serve"], "s", 2)]
