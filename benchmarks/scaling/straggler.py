"""Completion time of the flights job when a node is held to a share of a core in the middle, beside undisturbed runs of the same
session: undisturbed, policies on and policies off take turns. Published for DLRover: 1.15 (worker), 1.18 (server).

Where a machine's speed differs more from run to run than the goal allows, medians of a few runs say little. So every run is also
compared with itself: with what it would have taken at its own rate before the throttle. Undisturbed runs, to which nothing
happens at that moment, show how far that figure can be trusted: for them it is to be 1."""

import os
import statistics
import time

from scaling import figures
from scaling import job as jobs
from scaling import throttle

POLICIES = ["worker-straggler", "server-straggler", "hang", "worker-count"]
GOALS = {"worker": 1.05, "ps": 1.10}


def arguments(parser):
    parser.add_argument("--role", choices=("worker", "ps"), default="worker")
    parser.add_argument("--how", choices=("quota", "group"), default="group",
                        help="quota: the node's own control group gets a quota, which the scaler can set again; group: the node is moved "
                             "into another group, and only another start helps")
    parser.add_argument("--off", choices=("paused", "dry-run"), default="paused", help="what `policies off` means in the job file")
    parser.add_argument("--cores", type=float, default=0.2)
    parser.add_argument("--at", type=float, default=0.3, help="share of the records after which it begins")
    parser.add_argument("--runs", type=int, default=3, help="of each kind")
    add_shape(parser, 240)


def add_shape(parser, seconds, worker_cpu=0.5, server_cpu=0.4):
    """Nodes and length of the job. Limits keep the machine from being full: where it is, what one node does not use others do, and
    a slow one costs nothing."""
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--worker-cpu", type=float, default=worker_cpu, metavar="CORES", help="limit of each worker in the job file; 0: none")
    parser.add_argument("--server-cpu", type=float, default=server_cpu, metavar="CORES")
    parser.add_argument("--seconds", type=float, default=seconds, help="what an undisturbed run is to take; a short run is timed to find the epochs")
    parser.add_argument("--epochs", type=int, default=0, help="this many instead")
    parser.add_argument("--flights", type=int, default=0, help="only so many records of the flights, for a quick look")


def smoke(options):
    options.runs, options.cores, options.epochs, options.flights = 1, 0.5, 40, 20_000


def spec_of(options, data, epochs, **more):
    limits = [{"limits": {"memory": "512Mi"} | ({"cpu": cpu} if cpu else {})} for cpu in (options.worker_cpu, options.server_cpu)]
    return data.spec(epochs=epochs, workers=options.workers, servers=options.servers, worker=limits[0], server=limits[1], **more)


def epochs_for(options, data, folder):
    """As many as take `options.seconds`, by the training rate of a short run."""
    if options.epochs:
        return options.epochs
    jobs.say("a short run, for its rate ...")
    trial = max(1, round(2_000_000 / data.records))
    with jobs.Job(options, os.path.join(folder, "trial"), spec_of(options, data, trial), data.trainer) as job:
        rate = job.finish(300)["records_per_second"]
    epochs = max(1, round(options.seconds * rate / data.records))
    jobs.say(f"{rate:,.0f} records/s: {epochs} epochs for {options.seconds:.0f} s")
    return epochs


def victim(job, role):
    return job.wait(f"a running {role}", lambda: next(
        (node for node in (job.nodes() or {}).values() if node["role"] == role and node["name"].endswith("-0") and node["pid"]), None))


def reached(job, options, records):
    """(time, records done) as soon as this many records are done."""
    done = job.wait(f"{records:,.0f} records", lambda: (got := job.progress()) >= records and got, 10 * options.seconds + 60, 0.3)
    return time.monotonic(), done


def one(options, data, folder, epochs, kind):
    scaler = {}
    if kind == "off":
        scaler = {"pausedPolicies": POLICIES} if options.off == "paused" else {"dryRun": True}
    expected = data.records * epochs
    with jobs.Job(options, folder, spec_of(options, data, epochs, scaler=scaler), data.trainer) as job:
        # The rate before: from a third of the way to the moment on.
        began, done_then = reached(job, options, options.at / 3 * expected)
        at, done = reached(job, options, max(options.at * expected, done_then + 1))
        own_seconds = at - job.began + (expected - done) * (at - began) / (done - done_then)
        if kind == "undisturbed":
            summary = job.finish(10 * options.seconds + 300)
        else:
            node = victim(job, options.role)
            with throttle.Throttle(node["pid"], options.cores, options.how):
                jobs.say(f"{node['name']} (process {node['pid']}) is held to {options.cores} cores, {time.monotonic() - job.began:.1f} s after the start")
                summary = job.finish(10 * options.seconds + 300)
        jobs.require_exact(summary)
        decisions = [event for event in job.events() if event["kind"] == "decision"]
        return {"kind": kind, "seconds": summary["seconds"], "against_own_rate": summary["wall_seconds"] / own_seconds,
                "training_seconds": summary["training_seconds"], "records_per_second": summary["records_per_second"],
                "decisions": len(decisions), "restarts": summary["restarts"], "events": job.printed_events()}


def measure(options, folder):
    data = jobs.Flights(options, os.path.join(folder, "data"), options.flights)
    epochs = epochs_for(options, data, folder)
    runs = []
    kinds = ["undisturbed", "on", "off"]
    for number in range(options.runs):
        # Each round begins with another kind: a machine that becomes slower hits all alike.
        for kind in kinds[number % 3:] + kinds[:number % 3]:
            jobs.say(f"straggler {number + 1}/{options.runs}: {options.role}, {kind} ...")
            runs.append(one(options, data, os.path.join(folder, f"{number}-{kind}"), epochs, kind))
            jobs.say(f"{runs[-1]['seconds']:.1f} s")
    result = {"role": options.role, "how": options.how, "cores": options.cores, "epochs": epochs, "runs": runs, "problems": []}
    for kind in kinds:
        result[kind] = figures.summary([run["seconds"] for run in runs if run["kind"] == kind])
        result["own_" + kind] = figures.summary([run["against_own_rate"] for run in runs if run["kind"] == kind])
    base = result["undisturbed"]["median"]
    result["ratio_on"], result["ratio_off"] = result["on"]["median"] / base, result["off"]["median"] / base
    for kind in ("on", "off"):
        result[f"paired_ratio_{kind}"] = statistics.median(
            a["seconds"] / b["seconds"] for a, b in zip([r for r in runs if r["kind"] == kind], [r for r in runs if r["kind"] == "undisturbed"]))
    result["goal"] = GOALS[options.role]
    if not options.smoke:
        if result["ratio_on"] > result["goal"]:
            result["problems"].append(f"with policies on it takes {result['ratio_on']:.3f} of the undisturbed time, the goal is {result['goal']}")
        for run in runs:
            if run["kind"] == "undisturbed" and run["decisions"]:
                result["problems"].append(f"{run['decisions']} decisions in an undisturbed run")
    result["ok"] = not result["problems"]
    return result


def text(result):
    lines = [f"{result['role']} held to {result['cores']} cores ({result['how']}), {result['epochs']} epochs; completion time of the job"]
    for kind, name in (("undisturbed", "undisturbed"), ("on", "throttled, policies on"), ("off", "throttled, policies off")):
        lines.append(figures.line("  " + name, result[kind], "s"))
        lines.append(figures.line("    against the run's own rate before", result["own_" + kind], "times", 3))
    lines.append(f"  against undisturbed: policies on {result['ratio_on']:.3f}, off {result['ratio_off']:.3f} (medians); "
                 f"on {result['paired_ratio_on']:.3f}, off {result['paired_ratio_off']:.3f} (by turns); goal {result['goal']}")
    for kind in ("on", "off", "undisturbed"):
        first = next(run for run in result["runs"] if run["kind"] == kind)
        lines.append(f"events of the first run, {kind}: {'' if first['events'] else 'none'}")
        lines += ["    " + event for event in first["events"]]
    return lines
