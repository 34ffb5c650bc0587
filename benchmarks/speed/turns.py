"""Measurements of several ways to do the same, in turns."""

import os
import shutil

from scaling import job as jobs


def rounds(options, folder, name, ways, run, shown):
    """[{way: figures}], one for each of --rounds. `run(way, folder)` measures one way; `shown(figures)` is its progress in words.

    Whoever comes first in one round comes last in the next: what changes with time strikes all."""
    found = []
    for number in range(options.rounds):
        found.append({})
        for turn, way in enumerate(ways if number % 2 == 0 else ways[::-1]):
            run_folder = os.path.join(folder, f"{number}-{turn}")
            found[-1][way] = run(way, run_folder)
            if not options.keep:
                shutil.rmtree(run_folder, ignore_errors=True)
        jobs.say(f"{number + 1}/{options.rounds} {name}: " + ", ".join(f"{way} {shown(found[-1][way])}" for way in ways))
    return found
