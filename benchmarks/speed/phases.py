"""The steps of one job apart: those while something else ran, and those between. Pure."""

STEPS_MIN, SECONDS_MIN = 20, 0.2  # fewer steps or less time are not enough
NS = 1e9


def bursts(times, before, after, gap):
    """[(begin, end)] of what shows at `times` alone, nanoseconds as everything here: it begins `before` the first sign and ends `after` the
    last one, and signs with up to `gap` between them belong to one burst."""
    found = []
    for time in sorted(times):
        if found and time - found[-1][1] <= gap:
            found[-1][1] = time
        else:
            found.append([time, time])
    return [(first - before, last + after) for first, last in found]


def apart(ends, spans):
    """[whether the step overlaps one of `spans`] of all steps but the first one. `ends`: of steps, one after the other; a step begins where
    the one before it ended. Spans are sorted and do not overlap."""
    found, at = [], 0
    for begin, end in zip(ends, ends[1:]):
        while at < len(spans) and spans[at][1] <= begin:
            at += 1
        found.append(at < len(spans) and spans[at][0] < end)
    return found


def quantile(values, share):
    """Of sorted values, as speed_trainer takes it."""
    return values[min(int(share * len(values)), len(values) - 1)]


def of_steps(steps):
    """Figures of [(how long the step took, its latency)]; None of too few."""
    seconds = sum(took for took, _ in steps) / NS
    if len(steps) < STEPS_MIN or seconds < SECONDS_MIN:
        return None
    latencies = sorted(latency for _, latency in steps)
    return {"seconds": seconds, "steps_per_second": len(steps) / seconds,
            "longest_ms": max(took for took, _ in steps) / 1e6, "p50_us": quantile(latencies, 0.5) / 1e3, "p99_us": quantile(latencies, 0.99) / 1e3}


def split(steps, spans):
    """{"all", "during", "between": figures or None} of [(end, latency)] and the spans of what else ran."""
    ends = [end for end, _ in steps]
    timed = [(end - begin, latency) for begin, (end, latency) in zip(ends, steps[1:])]
    during = apart(ends, spans)
    return {"all": of_steps(timed), "during": of_steps([step for step, inside in zip(timed, during) if inside]),
            "between": of_steps([step for step, inside in zip(timed, during) if not inside])}
