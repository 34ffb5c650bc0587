"""A whole model, examples/flights: jobs of two workers beside the same model in one process without Muster (flights_local), in turns. The
job is the example's, without its test set, and continues until it is measured: from the end of its first epoch on, records done in a window
of time, what its workers waited for meanwhile, and the CPU time of everything that belongs to it. flights_local reads its records once, and a
worker its own in every epoch: the local rate is shown with the reading counted to every epoch, which is the same work, and without. Two
local processes train twice as fast at best, so two workers are set against twice the local rate."""

import json
import os
import re
import resource
import subprocess
import time

from scaling import figures
from scaling import job as jobs
from scaling.job import processes
from scaling.overhead import cpu_seconds, done_at

WHAT = "examples/flights by two workers, one server or two, beside the same model in one process without Muster"
WORKERS, SERVERS = 2, (1, 2)
PER_SHARD = 16  # as in the example's job.yaml
EPOCHS = 900  # no job ends before it is measured, and `muster status` lists all of them
LOCAL_EPOCHS = 6  # the first one does not count
WINDOW = 4  # times --seconds
SMOKE_RECORDS = 20_000
TEST_RECORDS = 100  # that flights_local evaluates: it must, and it shall take no time
LOCAL = "flights_local"
PROGRAMS = (f"examples/flights/{LOCAL}", f"examples/flights/{jobs.FLIGHTS_TRAINER}")

# figure: (label, unit, divisor, digits)
OF_LOCAL = {"rate": ("rate, reading counted", "records/s", 1, 0), "rate_read": ("rate, the records in memory", "records/s", 1, 0),
            "cpu_us": ("CPU, a record, read once", "us", 1, 2)}
WAITS = {"pulls": "wait_pull_us", "pushes": "wait_push_us", "shards": "wait_shard_us"}
OF_JOB = {"rate": ("rate", "records/s", 1, 0), "cpu_us": ("CPU of all its processes, a record", "us", 1, 2),
          "pulls": ("workers' time in pulls", "%", 0.01, 1), "pushes": ("workers' time in pushes", "%", 0.01, 1),
          "shards": ("workers' time waiting for shards", "%", 0.01, 1)}
RATIOS = {"rate": "rate / twice the local one, reading counted", "rate_read": "rate / twice the local one, the records in memory",
          "cpu_us": "CPU a record / the local one"}


def local_figures(said, records, cpu_seconds_used):
    """The figures of what flights_local said."""
    read = re.search(r"^read (\d+) records in ([\d.]+) s$", said, re.M)
    rates = [float(rate) for rate in re.findall(r"^epoch \d+: .* (\d+) records/s$", said, re.M)]
    if read is None or int(read.group(1)) != records or len(rates) < 2:
        raise jobs.Failed(f"{LOCAL} did not train some epochs of {records} records: {said}")
    seconds = sum(records / rate for rate in rates[1:]) / (len(rates) - 1)  # an epoch
    return {"rate": records / (seconds + float(read.group(2))), "rate_read": records / seconds,
            "cpu_us": 1e6 * cpu_seconds_used / (len(rates) * records)}


def run_local(options, data, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = os.path.join(options.build, PROGRAMS[0])
    done = subprocess.run([program, folder, "--epochs", str(LOCAL_EPOCHS)], stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise jobs.Failed(f"{program} ended with code {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return local_figures(done.stdout, data.records, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def worker_times(job):
    """[times of a worker]; none if there is no answer."""
    try:
        return [node["worker"]["times"] for node in json.loads(job.say("nodes"))["nodes"] if node["worker"]]
    except ValueError:
        return []


def moment(job):
    """(when, records done, CPU seconds of the job, [times of a worker])."""
    when, done = done_at(job)
    used = sum(map(cpu_seconds, [job.run.pid, *processes.descendants(job.run.pid)]))
    return when, done, used, job.wait("times of the workers", lambda: worker_times(job))


def job_figures(before, after):
    """The figures of a job between two moments."""
    (began, done_before, used_before, times_before), (ended, done_after, used_after, times_after) = before, after

    def grown(name):
        return sum(times[name] for times in times_after) - sum(times[name] for times in times_before)
    found = {"rate": (done_after - done_before) / (ended - began), "cpu_us": 1e6 * (used_after - used_before) / (done_after - done_before)}
    return found | {name: grown(waited) / grown("total_us") for name, waited in WAITS.items()}


def run_job(options, data, servers, folder):
    spec = data.spec(epochs=EPOCHS, per_shard=PER_SHARD, workers=WORKERS, servers=servers)
    with jobs.Job(options, folder, spec, data.trainer) as job:
        job.wait("end of the first epoch", lambda: (job.done() or 0) >= data.records, 120, 0.2)
        before = moment(job)
        time.sleep(WINDOW * options.seconds)
        return job_figures(before, moment(job))


def ratios(job, local):
    """{figure: ratio} of one round: of rates to twice the local one."""
    return {"rate": job["rate"] / (WORKERS * local["rate"]), "rate_read": job["rate"] / (WORKERS * local["rate_read"]),
            "cpu_us": job["cpu_us"] / local["cpu_us"]}


def summaries(names, rounds):
    return {name: figures.summary([one[name] for one in rounds]) for name in names}


def local_folder(data, folder):
    """What flights_local reads: the same training records, and few to test."""
    os.makedirs(folder)
    os.symlink(data.path, os.path.join(folder, "train.csv"))
    with open(os.path.join(os.path.dirname(data.path), "test.csv"), encoding="utf-8") as all_of_it, \
         open(os.path.join(folder, "test.csv"), "w", encoding="utf-8") as few:
        few.writelines(line for line, _ in zip(all_of_it, range(1 + TEST_RECORDS)))
    return folder


def measure(options, folder):
    data = jobs.Flights(options, os.path.join(folder, "data"), SMOKE_RECORDS if options.smoke else 0)
    local = local_folder(data, os.path.join(folder, "local"))
    rounds = []
    for number in range(options.rounds):
        found = {"local": run_local(options, data, local)}
        for servers in SERVERS:
            found[servers] = run_job(options, data, servers, os.path.join(folder, f"{servers}-{number}"))
        rounds.append(found)
        jobs.say(f"{number + 1}/{options.rounds} flights: local {found['local']['rate']:,.0f} records/s; "
                 + "; ".join(f"servers: {servers}, {found[servers]['rate']:,.0f} records/s" for servers in SERVERS))
    of_local = [one["local"] for one in rounds]
    return {"row": "flights", "what": WHAT, "records": data.records, "cores": len(os.sched_getaffinity(0)),
            "rounds": rounds, "local": summaries(OF_LOCAL, of_local),
            "jobs": {servers: summaries(OF_JOB, [one[servers] for one in rounds]) for servers in SERVERS},
            "ratios": {servers: summaries(RATIOS, [ratios(one[servers], one["local"]) for one in rounds]) for servers in SERVERS}}


def lines(named, summaries_):
    for name, (label, unit, scale, digits) in named.items():
        scaled = {key: value / scale if key != "n" else value for key, value in summaries_[name].items()}
        yield figures.line(label, scaled, unit, digits)


def text(found):
    yield f"flights: {found['what']}; {found['records']:,} records, {found['cores']} cores for all of it"
    yield "  one process without Muster"
    yield from (f"    {line}" for line in lines(OF_LOCAL, found["local"]))
    for servers, of_job in found["jobs"].items():
        yield f"  {WORKERS} workers, {servers} server{'s' if int(servers) > 1 else ''}"
        yield from (f"    {line}" for line in lines(OF_JOB, of_job))
        for name, label in RATIOS.items():
            yield "    " + figures.line(label, found["ratios"][servers][name], "times", 2)
