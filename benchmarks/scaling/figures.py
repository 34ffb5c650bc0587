"""Medians and spread, and how they are printed."""

import random
import statistics


def summary(values):
    """{"median", "min", "max", "n"}; None if there are no values."""
    values = [value for value in values if value is not None]
    if not values:
        return {"median": None, "min": None, "max": None, "n": 0}
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def interval_of_median(values, resamples=2000):
    """The 95 % interval of the median, by bootstrap; the same for the same values."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples)]


def line(name, figures, unit, digits=1):
    if not figures["n"]:
        return f"{name}: none"
    return (f"{name}: median {figures['median']:.{digits}f} {unit}, from {figures['min']:.{digits}f} to "
            f"{figures['max']:.{digits}f} {unit} (n = {figures['n']})")


def mib(size):
    return f"{size / 2**20:.1f} MiB"
