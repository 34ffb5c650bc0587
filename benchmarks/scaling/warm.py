"""A job that names no resources at all, run twice in one state directory (the second time with more epochs)."""

import json
import os

from scaling import figures
from scaling import job as jobs


def arguments(parser):
    parser.add_argument("--epochs", type=int, default=40, help="of the flights, in the first run; the second has as many more")
    parser.add_argument("--flights", type=int, default=0, help="only so many records of the flights")


def smoke(options):
    options.epochs, options.flights = 5, 20_000


def run(options, job):
    limits = {}

    def look():
        nodes = {name: node for name, node in (job.nodes() or {}).items() if node["role"] in ("ps", "worker")}
        if len(nodes) == 4 and all(node["pid"] for node in nodes.values()):
            limits.update({name: node["limits"] for name, node in nodes.items()})
        return limits
    job.wait("the nodes' limits", look)
    summary = job.finish(1200)
    jobs.require_exact(summary)
    return {"limits_at_first": limits, "seconds": summary["seconds"], "records_per_second": summary["records_per_second"],
            "restarts": summary["restarts"]}


def learned(job):
    with open(os.path.join(job.state, "scaler", "history", "runs.json"), encoding="utf-8") as file:
        return json.load(file)["runs"]


def measure(options, folder):
    data = jobs.Flights(options, os.path.join(folder, "data"), options.flights)
    runs, seen = [], 0
    for number in (1, 2):
        jobs.say(f"warm: run {number} of 2 ...")
        with jobs.Job(options, os.path.join(folder, "job"), data.spec(epochs=number * options.epochs), data.trainer) as job:
            result = run(options, job)
            events = [event for event in job.events() if event["id"] > seen]
            printed = job.printed_events()
            shown = [line for line in printed if any(f"#{event['id']} " in line for event in events)]
            seen = max([seen] + [event["id"] for event in events])
            found = learned(job)
            result |= {"events": shown, "learned": {role: {name: value for name, value in needs.items() if name in ("cpus_p95", "memory_peak_bytes")}
                                                    for role, needs in found[-1]["roles"].items()},
                       "initial": [event for event in events if event["policy"] == "initial-resources"]}
            runs.append(result)
    problems = []
    if not runs[1]["initial"]:
        problems.append("initial-resources decided nothing in the second run")
    if runs[0]["limits_at_first"] == runs[1]["limits_at_first"]:
        problems.append("both runs began with the same limits")
    return {"runs": runs, "problems": problems, "ok": not problems}


def text(result):
    lines = []
    for number, run_ in enumerate(result["runs"], 1):
        lines.append(f"run {number}: {run_['seconds']:.1f} s, {run_['records_per_second']:,.0f} records/s, restarts {run_['restarts']}")
        lines += [f"  {name} began with {figures.mib(limit['memory_bytes'])}, {limit['cpus'] or 'no limit of'} cores"
                  for name, limit in sorted(run_["limits_at_first"].items())]
        lines += [f"  learned of {role}: {figures.mib(needs['memory_peak_bytes'])} at most, {needs['cpus_p95']:.2f} cores (95th percentile)"
                  for role, needs in run_["learned"].items()]
        lines += ["    " + event for event in run_["events"]]
    return lines
