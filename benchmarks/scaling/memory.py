"""Figures of memory: kills by the kernel, and limits raised before them."""

import collections
import glob
import os
import sys
import time

from scaling import figures
from scaling import job as jobs

POLICY = "predicted-out-of-memory"


def arguments(parser):
    parser.add_argument("--role", choices=("both", "ps", "worker"), default="both")
    parser.add_argument("--runs", type=int, default=3, help="jobs of each role, with and without prediction")
    parser.add_argument("--records", type=int, default=1_000_000, help="rows of the table that grows")
    parser.add_argument("--seconds", type=float, default=100, help="what a job takes at least, for prediction needs some time to see growth")
    parser.add_argument("--server-limit", type=int, default=20, metavar="MIB")
    parser.add_argument("--worker-limit", type=int, default=40, metavar="MIB")
    parser.add_argument("--worker-memory", type=int, default=64, metavar="MIB", help="what a worker comes to hold")
    parser.add_argument("--worker-growth", type=float, default=1.0, metavar="MIB_PER_SECOND")


def smoke(options):
    options.runs, options.role, options.records, options.seconds = 1, "worker", 20_000, 6
    options.worker_limit, options.worker_memory, options.worker_growth = 30, 40, 8


def attempts(folder):
    """When minibatches were about to be pushed, in seconds of time.monotonic(): {history file: [times]}."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*")):
        with open(path, encoding="ascii") as file:
            found[path] = [int(line.split(None, 2)[1]) / 1e9 for line in file if line.startswith("attempt ") and line.endswith("\n")]
    return found


def back_after(died, node, role, found):
    """When it trained again: a worker's next process pushes; after a server's death, the end of the
    longest silence of all workers that began within a second."""
    if role == "worker":
        mine = [times for path, times in found.items() if os.path.basename(path).startswith(node + "-")]
        later = [times[0] for times in mine if times and times[0] > died]
        return min(later) if later else None
    times = sorted(at for times in found.values() for at in times)
    gaps = [(after - before, after) for before, after in zip(times, times[1:]) if after > died and before < died + 1]
    return max(gaps)[1] if gaps else None


def one(options, data, folder, role, predicted):
    """A job in which both nodes of `role` have a limit that is too low."""
    history = os.path.join(folder, "history")
    wrap = []
    if role == "worker":
        wrap = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "growing.py"),
                "--mib", str(options.worker_memory), "--mib-per-second", str(options.worker_growth), "--"]
    low = {"server": options.server_limit if role == "ps" else 512, "worker": options.worker_limit if role == "worker" else 512}
    minibatch, workers = 64, 2
    slow_us = int(options.seconds * 1e6 * workers * minibatch / options.records)
    spec = data.spec(slow_us=slow_us, minibatch=minibatch, history=history, wrap=wrap, workers=workers,
                     scaler={"pausedPolicies": [] if predicted else [POLICY]},
                     **{name: {"limits": {"memory": f"{mib}Mi"}, "max": {"memory": "512Mi"}} for name, mib in low.items()})
    starts = {}
    with jobs.Job(options, folder, spec, data.trainer) as job:
        while job.run.poll() is None:
            for name, node in (job.nodes() or {}).items():
                if node["pid"]:
                    starts.setdefault(node["pid"], (name, node["role"]))
            time.sleep(0.2)
        summary = job.finish(1)
        committed = jobs.require_exact(summary)
        events = job.events()
        kills = [event for event in events if event["kind"] == "exit" and "killed" in event["because"] and event["evidence"]]
        found = attempts(history)
        left = collections.Counter(event["target"] for event in kills)
        away = []
        for pid, died in sorted(job.exits.ended.items(), key=lambda item: item[1]):
            name, its_role = starts.get(pid, ("", ""))
            if its_role != role or left[name] == 0:
                continue
            left[name] -= 1
            back = back_after(died, name, role, found)
            away.append(None if back is None else back - died)
        return {"role": role, "prediction": predicted, "kills_for_memory": len(kills), "committed": committed,
                "expected": jobs.counts(summary)[1], "wrong_rows": data.wrong_rows(job, 1),
                "limits_raised": sum(event["kind"] == "decision" and event["policy"] == POLICY for event in events),
                "restarted": sum(event["kind"] == "decision" and event["policy"] == "out-of-memory" for event in events),
                "away_seconds": away, "restarts": summary["restarts"], "wall_seconds": summary["wall_seconds"],
                "events": job.printed_events()}


def measure(options, folder):
    data = jobs.Numbers(options, os.path.join(folder, "data"), options.records)
    roles = ("ps", "worker") if options.role == "both" else (options.role,)
    runs = []
    for number in range(options.runs):
        for role in roles:
            for predicted in (False, True):
                jobs.say(f"memory {number + 1}/{options.runs}: {role}, prediction {'on' if predicted else 'off'} ...")
                runs.append(one(options, data, os.path.join(folder, f"{number}-{role}-{int(predicted)}"), role, predicted))
    result = {"runs": runs, "ok": True, "problems": []}
    for run in runs:
        what = f"{run['role']}, prediction {'on' if run['prediction'] else 'off'}"
        if run["wrong_rows"]:
            result["problems"].append(f"{what}: {run['wrong_rows']} rows are not the closed form")
        # In a short run memory grows too fast to be predicted.
        if bool(run["kills_for_memory"]) == run["prediction"] and not (options.smoke and run["prediction"]):
            result["problems"].append(f"{what}: {run['kills_for_memory']} kills for memory")
    for role in roles:
        result[f"{role}_away_seconds"] = figures.summary([s for run in runs if run["role"] == role and not run["prediction"] for s in run["away_seconds"]])
    result["ok"] = not result["problems"]
    return result


def text(result):
    lines = []
    shown = set()
    for run in result["runs"]:
        kind = (run["role"], run["prediction"])
        lines.append(f"{run['role']}, prediction {'on' if run['prediction'] else 'off'}: {run['kills_for_memory']} kills for memory, "
                     f"{run['restarted']} restarted bigger, {run['limits_raised']} limits raised in place; committed / expected "
                     f"{run['committed']:,} / {run['expected']:,}; {run['wrong_rows']} wrong rows; {run['wall_seconds']:.1f} s")
        if kind not in shown:
            lines += ["    " + event for event in run["events"]]
        shown.add(kind)
    for role in ("ps", "worker"):
        if (away := result.get(f"{role}_away_seconds")) is not None:
            lines.append(figures.line(f"{role}: from the kernel's kill to training again", away, "s", 2))
    return lines
