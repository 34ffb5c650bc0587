"""Ratios within a round, and their spread. Pure."""

from scaling import figures
from speed.rows import FIGURES, LESS


def shown(name, value):
    """A figure with its unit."""
    figure = FIGURES[name]
    return f"{value / figure.scale:,.{figure.digits}f} {figure.unit}"


def ratio(name, ours, theirs):
    """Above 1 where ours is the better one, whatever the figure."""
    if not ours or not theirs:
        return None
    return theirs / ours if FIGURES[name].better == LESS else ours / theirs


def best_depth(rounds, name):
    """The number of calls in progress with which the peer's median is best. `rounds`: [{depth: figures}]."""
    medians = {depth: figures.summary([one[depth][name] for one in rounds])["median"] for depth in rounds[0]}
    return (min if FIGURES[name].better == LESS else max)(medians, key=medians.get)


def ratios(name, ours, theirs):
    """Summary of the ratios round by round: what slows a round slows both of its halves."""
    return figures.summary([ratio(name, a.get(name), b.get(name)) for a, b in zip(ours, theirs)])


def shares(name, limit, ours, limits):
    """Summary of our figure as a share of the limit in the same round; no side is better."""
    return figures.summary([a[name] / b[limit] if b.get(limit) and a.get(name) is not None else None for a, b in zip(ours, limits)])


def merged(workers):
    """The figures of a job of its workers': rates and CPU add up, the median worker's p50, the worst one's p99 and memory."""
    def total(name):
        return sum(one[name] for one in workers)

    def rate(name):
        return sum(one[name] / one["seconds"] for one in workers)
    return {"steps_per_second": rate("steps"), "rows_per_second": rate("rows"), "records_per_second": rate("records"),
            "bytes_per_second": rate("bytes"), "rows": total("rows"), "steps": total("steps"), "cpu_seconds": total("cpu_seconds"),
            "seconds": max(one["seconds"] for one in workers), "p50_us": figures.summary([one["p50_us"] for one in workers])["median"],
            "p99_us": max(one["p99_us"] for one in workers), "memory_max_bytes": max(one["memory_max_bytes"] for one in workers)}


def of_row(mode, job, server_cpu, master_cpu, tensor_bytes):
    """What a row shows of a job's merged figures and of the CPU seconds of its servers and its master."""
    found = {name: job[name] for name in ("p50_us", "p99_us")}
    if mode in ("pull", "pull-push", "small", "small-push"):
        found |= {"rows_per_second": job["rows_per_second"], "server_cpu_ns": 1e9 * server_cpu / job["rows"],
                  "worker_cpu_ns": 1e9 * job["cpu_seconds"] / job["rows"]}
    elif mode == "lease":
        found |= {"shards_per_second": job["steps_per_second"], "master_cpu_us": 1e6 * master_cpu / job["steps"],
                  "worker_cpu_us": 1e6 * job["cpu_seconds"] / job["steps"]}
    elif mode == "read":
        found |= {"records_per_second": job["records_per_second"], "bytes_per_second": job["bytes_per_second"],
                  "worker_cpu_share": job["cpu_seconds"] / job["seconds"]}
    else:
        server, worker = (1e3 * seconds / job["steps"] for seconds in (server_cpu, job["cpu_seconds"]))
        found |= {"step_ms": job["p50_us"] / 1e3, "server_cpu_ms": server, "worker_cpu_ms": worker, "cpu_ms": server + worker,
                  "tensors": job["memory_max_bytes"] / tensor_bytes}
    return found


def in_rows(raw, row_bytes):
    """The limits of speed_limits, converted to rows of this many bytes; none where a limit is for something else."""
    if "gather_rows_per_second" not in raw:
        return {}
    return {"gather_ns": 1e9 / raw["gather_rows_per_second"]} | {
        f"{kind}_rows_per_second": raw[f"{kind}_bytes_per_second"] / row_bytes for kind in ("unix", "tcp")}
