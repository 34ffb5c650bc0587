"""What the machine can do, measured beside the jobs."""

import os
import statistics
import time

RECORD = b"x" * 300  # about what the journal writes for a step


def sync_ms(folder, times=30):
    """Milliseconds that fdatasync takes after a short record was appended to a file of `folder`: the median."""
    path = os.path.join(folder, "sync-probe")
    taken = []
    with open(path, "wb", buffering=0) as file:
        for _ in range(times):
            file.write(RECORD)
            begin = time.monotonic()
            os.fdatasync(file.fileno())
            taken.append(1e3 * (time.monotonic() - begin))
    os.unlink(path)
    return statistics.median(taken)


def copy_ms(size, times=3):
    """Milliseconds of one memcpy of `size` bytes by one thread: the median. Both places are in memory already."""
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(b"\2") * size)
    taken = []
    for _ in range(1 + times):
        begin = time.monotonic()
        target[:] = source
        taken.append(1e3 * (time.monotonic() - begin))
    return statistics.median(taken[1:])
