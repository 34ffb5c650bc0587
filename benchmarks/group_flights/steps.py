"""What group_member has logged: the steps of each member, and figures of them. Pure, apart from `read`."""

import array
import collections
import glob
import os

FIELDS = 6
RECORD_BYTES = 8 * FIELDS

# A try of a step. Number 0: the trainer is about to ask for its first step. Times are CLOCK_MONOTONIC in nanoseconds. committed 0: the step has not happened in this try.
Step = collections.namedtuple("Step", "number minibatches begun computed committed applied")


def parse(data):
    """The steps of a log; a record that is not whole is left out."""
    numbers = array.array("q")
    numbers.frombytes(data[:len(data) // RECORD_BYTES * RECORD_BYTES])
    return [Step(*numbers[i:i + FIELDS]) for i in range(0, len(numbers), FIELDS)]


def read(folder):
    """{(node, pid): [Step]} of the logs in `folder`."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.steps")):
        node, _, pid = os.path.basename(path)[:-len(".steps")].rpartition("-")
        with open(path, "rb") as file:
            found[node, int(pid)] = parse(file.read())
    return found


def committed(steps):
    return [step for step in steps if step.committed]


def periods_ms(steps):
    """The times between two steps that follow one another."""
    done = committed(steps)
    return [(after.applied - before.applied) / 1e6 for before, after in zip(done, done[1:]) if after.number == before.number + 1]


def mean_ms(steps, begin, end):
    """The mean time of a step between two moments, in milliseconds; None with fewer than two steps."""
    times = [step.applied for step in committed(steps) if begin <= step.applied <= end]
    return (times[-1] - times[0]) / 1e6 / (len(times) - 1) if len(times) > 1 else None


def first_commit_after(members, moment):
    """When a member first applied a step that it had not at `moment`, and that was committed later; None if none did."""
    times = [step.committed for steps in members for step in committed(steps) if step.committed > moment]
    return min(times, default=None)


def gap_ms(members, moment, until):
    """The longest time without a commit that begins at `moment` or later, or contains it, and ends before `until`."""
    times = sorted(step.committed for steps in members for step in committed(steps))
    gaps = [after - before for before, after in zip(times, times[1:]) if after > moment and after <= until]
    return max(gaps, default=0) / 1e6


def numbers_once(members):
    """True if the committed steps of all members together are 1, 2, 3 ... without a hole."""
    numbers = {step.number for steps in members for step in committed(steps)}
    return numbers == set(range(1, len(numbers) + 1))
