"""What the scaler costs. In one run of the flights job it is stopped (SIGSTOP) and continued in turns of some seconds: stopped, it
measures nothing, asks the master nothing and serves nothing; it is never stopped for the 10 s after which it would be replaced. Each
turn's training rate is compared with its neighbours' of the other kind, so that a rate that drifts hits both alike. What workers do
for the figures they send, a few clock readings a minibatch, is part of both. Beside it, the CPU time of the scaler and of the
processes that supervise nodes, as a share of the job's: what sampling can cost at most where every core is busy."""

import os
import signal
import statistics
import time

from scaling import figures
from scaling import job as jobs
from scaling import straggler
from scaling.job import processes

TURN_MAX = 8
TICKS = os.sysconf("SC_CLK_TCK")


def arguments(parser):
    parser.add_argument("--turns", type=int, default=60, help="of each kind")
    parser.add_argument("--turn", type=float, default=5, help=f"seconds; at most {TURN_MAX}")
    straggler.add_shape(parser, 0, 0, 0)


def smoke(options):
    options.turns, options.turn, options.epochs, options.flights = 1, 0.5, 10_000, 20_000


def cpu_seconds(pid):
    """User and system time of the process, without children."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except OSError:
        return 0.0


def usage(job, data):
    """CPU seconds so far: (scaler, processes that supervise, everything of the run)."""
    scaler = set(processes.nodes(job.run.pid, data.trainer)["scaler"])
    sums = [0.0, 0.0, 0.0]
    for pid in [job.run.pid] + processes.descendants(job.run.pid):
        used = cpu_seconds(pid)
        sums[2] += used
        if pid in scaler:
            sums[0] += used
        elif processes.command_line(pid)[1:2] == ["supervise"]:
            sums[1] += used
    return sums


def done_at(job):
    """(when, records done): the middle of asking."""
    before = time.monotonic()
    done = job.wait("the status", job.done)
    return (before + time.monotonic()) / 2, done


def turns_of(options, job, data):
    """[(stopped, records/s)] turn by turn."""
    scaler = job.wait("a scaler", lambda: processes.nodes(job.run.pid, data.trainer)["scaler"])[0]
    found = []
    try:
        for number in range(2 * options.turns + 1):
            stopped = number % 2 == 1
            processes.send(scaler, signal.SIGSTOP if stopped else signal.SIGCONT)
            time.sleep(0.3)  # its pending work has ended
            began, before = done_at(job)
            time.sleep(options.turn)
            ended, after = done_at(job)
            found.append((stopped, (after - before) / (ended - began)))
            if number % 10 == 0:
                jobs.say(f"overhead: turn {number} of {2 * options.turns}")
    finally:
        processes.send(scaler, signal.SIGCONT)
    return found


def measure(options, folder):
    if not 0.5 <= options.turn <= TURN_MAX:
        raise jobs.Failed(f"--turn {options.turn}: from 0.5 to {TURN_MAX} s, or the scaler would be replaced for standing still")
    data = jobs.Flights(options, os.path.join(folder, "data"), options.flights)
    options.seconds = (2 * options.turns + 1) * (options.turn + 0.6) + 60
    # More than are needed: the job is cancelled when the turns are over.
    epochs = options.epochs or 2 * straggler.epochs_for(options, data, folder)
    with jobs.Job(options, os.path.join(folder, "job"), straggler.spec_of(options, data, epochs), data.trainer) as job:
        job.wait_training()
        time.sleep(5)  # caches are warm
        used, began = usage(job, data), time.monotonic()
        found = turns_of(options, job, data)
        wall = time.monotonic() - began
        used = [now - then for now, then in zip(usage(job, data), used)]
        events = job.events()
        if job.run.poll() is not None:
            raise jobs.Failed("the job ended before the turns did: more --turns than there are records for")
        processes.send(job.run.pid, signal.SIGINT)
        time.sleep(0.5)
        processes.send(job.run.pid, signal.SIGINT)
        job.run.wait(timeout=120)
    # Every stopped turn against the mean of the two around it.
    ratios = [2 * found[i][1] / (found[i - 1][1] + found[i + 1][1]) for i in range(1, len(found) - 1, 2)]
    low, high = figures.interval_of_median(ratios)
    scaled = (options.turns + 1) / (2 * options.turns + 1)  # the share of the time in which it ran
    result = {"turns": len(ratios), "rate_on": figures.summary([rate for stopped, rate in found if not stopped]),
              "rate_stopped": figures.summary([rate for stopped, rate in found if stopped]),
              "overhead_percent": 100 * (1 - 1 / statistics.median(ratios)), "interval_percent": [100 * (1 - 1 / low), 100 * (1 - 1 / high)],
              "scaler_cores": used[0] / wall / scaled, "supervise_cores": used[1] / wall, "job_cores": used[2] / wall,
              "cpu_share_percent": 100 * (used[0] / scaled + used[1]) / used[2],
              "decisions": sum(event["kind"] == "decision" for event in events), "problems": []}
    if not options.smoke and result["overhead_percent"] >= 1:
        result["problems"].append(f"it costs {result['overhead_percent']:.2f} % of the training rate, the goal is less than 1 %")
    result["ok"] = not result["problems"]
    return result


def text(result):
    low, high = result["interval_percent"]
    return [figures.line("training rate, scaler at work", result["rate_on"], "records/s", 0),
            figures.line("training rate, scaler stopped", result["rate_stopped"], "records/s", 0),
            f"it costs {result['overhead_percent']:.2f} % of the rate: median of {result['turns']} turns against their neighbours, 95 % interval "
            f"{low:.2f} to {high:.2f} %",
            f"CPU: scaler {result['scaler_cores']:.4f} cores, supervising processes {result['supervise_cores']:.4f}, the whole job "
            f"{result['job_cores']:.2f}: {result['cpu_share_percent']:.2f} % of it"]
