"""Runs of the flights job without any problem, so every decision of a policy is wrong."""

import os

from scaling import figures
from scaling import job as jobs
from scaling import straggler


def arguments(parser):
    parser.add_argument("--runs", type=int, default=10)
    straggler.add_shape(parser, 120)
    parser.set_defaults(at=0.3)


def smoke(options):
    options.runs, options.epochs, options.flights = 1, 40, 20_000


def measure(options, folder):
    data = jobs.Flights(options, os.path.join(folder, "data"), options.flights)
    epochs = straggler.epochs_for(options, data, folder)
    runs = []
    for number in range(options.runs):
        jobs.say(f"undisturbed {number + 1}/{options.runs} ...")
        runs.append(straggler.one(options, data, os.path.join(folder, str(number)), epochs, "undisturbed"))
    problems = [f"run {number + 1}: {run['decisions']} decisions: {run['events']}" for number, run in enumerate(runs)
                if run["decisions"] and not options.smoke]
    return {"runs": runs, "epochs": epochs, "interventions": sum(run["decisions"] for run in runs),
            "seconds": figures.summary([run["seconds"] for run in runs]),
            "against_own_rate": figures.summary([run["against_own_rate"] for run in runs]),
            "records_per_second": figures.summary([run["records_per_second"] for run in runs]),
            "problems": problems, "ok": not problems}


def text(result):
    return [f"{len(result['runs'])} undisturbed runs of {result['epochs']} epochs: {result['interventions']} interventions",
            figures.line("completion time", result["seconds"], "s"),
            figures.line("training rate", result["records_per_second"], "records/s", 0)]
