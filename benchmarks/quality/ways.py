"""The ways in which a job goes through the mixed flights: with how many workers and servers, and what happens to it meanwhile."""

import dataclasses
import os
import signal
import time

from scaling import job as jobs
from scaling.job import processes

LOOK_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Way:
    workers: int = 2
    servers: int = 2
    killed: str = ""   # the role of which a process is killed, evenly over the data
    kills: int = 0
    halves: str = ""   # "resume": the run is stopped in the middle, and continued; "warm": a second job begins with the weights
    passes: int = 0    # 0: --passes


# name: (in words, the way)
WAYS = {
    "alone": ("1 worker, 1 server", Way(workers=1, servers=1)),
    "servers8": ("2 workers, 8 servers", Way(servers=8)),
    "workers4": ("4 workers", Way(workers=4)),
    "workers8": ("8 workers", Way(workers=8)),
    "workers16": ("16 workers", Way(workers=16)),
    "killw": ("20 kills of workers", Way(killed="worker", kills=20)),
    "kills": ("20 kills of servers", Way(killed="ps", kills=20)),
    "killm": ("20 kills of the master", Way(killed="master", kills=20)),
    "resume": ("stopped in the middle, and continued", Way(halves="resume")),
    "warm": ("two passes, the second a job of its own with a warm start", Way(halves="warm", passes=2)),
}


def spec(options, way, datasets, test, seed, epochs, weights=None):
    evaluate = {"name": "test", "mode": "evaluate", "files": [test], "header": True, "minibatchSize": 1024}
    command = [os.path.join(options.build, "examples", "flights", jobs.FLIGHTS_TRAINER)] + (["--warm-start", weights] if weights else [])
    made = jobs.spec_of([one | ({} if "kafka" in one else {"epochs": epochs}) for one in datasets] + [evaluate],
                        command, workers=way.workers, servers=way.servers)
    made |= {"seed": seed, "partitions": 16, "training": {"unacknowledgedMinibatchesMax": 2, "prefetchMinibatches": 1}}
    if way.kills:
        made["restarts"] = {"crashLoopExits": 1000, "backoffInitial": "0s", "backoffMax": "0s"}
    return made


def auc(job):
    """The AUC of the evaluation after the last pass."""
    summary = job.finish(1200)
    jobs.require_exact(summary)
    epochs = next(one["epochs"] for one in summary["datasets"] if one["mode"] == "evaluate")
    return epochs[-1]["metrics"]["auc"]


def wait_for(job, what, condition):
    """The first true value of `condition`, or None if the job came to its end before."""
    end = time.monotonic() + 600
    while job.run.poll() is None:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise jobs.Failed(f"no {what} after 600 s: {job.folder}/run.log")
        time.sleep(LOOK_SECONDS)
    return None


def wait_done(job, records):
    return wait_for(job, f"{records} records", lambda: (job.done() or 0) >= records)


def kill(job, role, number):
    """One process of the role, each in its turn. Returns false if there is none any more, because the job has ended."""
    pids = wait_for(job, f"a process of {role}", lambda: processes.nodes(job.run.pid, job.trainer)[role])
    if not pids:
        return False
    processes.send(sorted(pids)[number % len(pids)], signal.SIGKILL)
    return True


def stop(job):
    """As a person does with Ctrl-C; the job can be continued."""
    job.run.send_signal(signal.SIGINT)
    end = time.monotonic() + 120
    while job.run.poll() is None and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    if job.run.poll() is None:
        raise jobs.Failed(f"the run did not stop: {job.folder}/run.log")


def run(options, name, folder, datasets, test, seed, records):
    """The AUC of the job after its last pass. `records`: how many one pass has."""
    way = WAYS[name][1] if name in WAYS else Way(workers=options.workers, servers=options.servers)
    epochs = way.passes or options.passes
    if way.halves == "warm":
        weights = os.path.join(folder, "weights")
        with jobs.Job(options, folder, spec(options, way, datasets, test, seed, 1), jobs.FLIGHTS_TRAINER) as job:
            auc(job)
            job.say("export", "--output-dir", weights)
        os.rename(job.state, job.state + "-first")
        with jobs.Job(options, folder, spec(options, way, datasets, test, seed + 1000, epochs - 1, weights), jobs.FLIGHTS_TRAINER) as job:
            return auc(job)
    asked = spec(options, way, datasets, test, seed, epochs)
    with jobs.Job(options, folder, asked, jobs.FLIGHTS_TRAINER) as job:
        for number in range(way.kills):
            wait_done(job, (number + 1) * epochs * records // (way.kills + 1))
            if not kill(job, way.killed, number):
                jobs.say(f"{name}: the job ended after {number} of {way.kills} kills")
                break
        if way.halves != "resume":
            return auc(job)
        wait_done(job, epochs * records // 2)
        stop(job)
    with jobs.Job(options, folder, asked, jobs.FLIGHTS_TRAINER) as job:
        return auc(job)
