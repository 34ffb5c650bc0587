"""What a full shuffle costs a worker that reads records and does nothing with them: jobs with and without it in turns, of a file that is in the
kernel's cache, and of one that is not; and with it, jobs of many small files beside jobs of one."""

import os
import shutil

from scaling import figures
from speed import compare, ours, turns
from speed.rows import FIGURES, Row

WHAT = "records read with a full shuffle, in turns with the order of the file; cached, from a cold disk, and from 20,000 files"
PROGRAMS = ()  # beside those of all rows
SEQUENTIAL, SHUFFLED, ONE, MANY = "in the order of the file", "full shuffle", "one file", "20,000 files"
ROW = Row("records of files, nothing done with them, default shard sizes", "read", ("records_per_second", "bytes_per_second", "worker_cpu_share"))
# kind: (in words, the other side and the measured one: (name, files, shuffle), records, bytes of a record, cold)
KINDS = {
    "cached": ("one file in the kernel's cache", ((SEQUENTIAL, 1, False), (SHUFFLED, 1, True)), 4_000_000, 64, False),
    "cold": ("one file that is in no cache when the window begins", ((SEQUENTIAL, 1, False), (SHUFFLED, 1, True)), 8_000_000, 256, True),
    "files": ("files in the kernel's cache, full shuffle", ((ONE, 1, True), (MANY, 20_000, True)), 4_000_000, 64, False),
}
SMOKE_RECORDS, SMOKE_FILES = 20_000, 100


def write(options, folder, kind, files):
    """The dataset's files; they are on the disk afterwards."""
    _, _, records, length, _ = KINDS[kind]
    if options.smoke:
        records, files = SMOKE_RECORDS, min(files, SMOKE_FILES)
    ours.write_files(folder, records, files, length)
    os.sync()


def evict(folder):
    """The kernel forgets what it has of the files."""
    for name in os.listdir(folder):
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def run(options, kind, side, lines, folder):
    _, _, shuffle = side
    cold = KINDS[kind][4]

    def watch(_, end):
        if cold:
            evict(lines)
        ours.sleep_until(end)
    inputs = {"lines": os.path.join(lines, "*"), "dataset": {"shuffle": shuffle}}
    return ours.run(options, ROW, inputs, folder, watch)


def summaries(kind, rounds):
    """{figure: {side: summary, "ratio": summary}} of [{side: figures}]; a ratio above 1: the second side is better."""
    other, measured = (side[0] for side in KINDS[kind][1])
    return {name: {side: figures.summary([one[side][name] / FIGURES[name].scale for one in rounds]) for side in (other, measured)}
            | {"ratio": compare.ratios(name, [one[measured] for one in rounds], [one[other] for one in rounds])} for name in ROW.figures}


def measure(options, folder):
    os.makedirs(folder)
    rounds = {}
    for kind, (_, sides, *_) in KINDS.items():
        lines = {}
        for files in {side[1] for side in sides}:
            lines[files] = os.path.join(folder, f"{kind}-lines-{files}")
            write(options, lines[files], kind, files)
        by_name = {side[0]: side for side in sides}

        def one(name, run_folder, kind=kind, lines=lines, by_name=by_name):
            return run(options, kind, by_name[name], lines[by_name[name][1]], run_folder)
        rounds[kind] = turns.rounds(options, os.path.join(folder, kind), f"shuffle, {kind}", tuple(by_name), one,
                                    lambda found: compare.shown("records_per_second", found["records_per_second"]))
        for path in lines.values():
            shutil.rmtree(path)
    return {"row": "shuffle", "what": WHAT, "rounds": rounds, "kinds": {kind: summaries(kind, rounds[kind]) for kind in KINDS}}


def text(found):
    yield f"shuffle: {found['what']}"
    for kind, named in found["kinds"].items():
        yield f"  {kind}: {KINDS[kind][0]}, {KINDS[kind][3]} bytes a record"
        for name, values in named.items():
            figure = FIGURES[name]
            for side, *_ in KINDS[kind][1]:
                yield f"    {side:25} {figures.line(figure.label, values[side], figure.unit, figure.digits)}"
        side = KINDS[kind][1][1][0]
        yield f"    {'ratio':25} {figures.line('rate', named['records_per_second']['ratio'], f'times as good: {side}', 2)}"
