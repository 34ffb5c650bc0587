#!/usr/bin/env python3
"""Checks with clang that what MUSTER_GUARDED_BY and its kin (base/mutex.h) say is kept. Python's standard library only.

GCC ignores the annotations, so a build says nothing about them. Reads the compile commands of a configured build folder,
and looks at every source of the project, tests included, that sees base/mutex.h.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

CLANG = "clang++-19"


def sees_mutex(path, root, known):
    """Whether `path` includes base/mutex.h, itself or through headers of the project."""
    if path not in known:
        known[path] = False  # a cycle of includes adds nothing
        try:
            with open(path, encoding="utf-8") as file:
                names = re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read(), re.M)
        except OSError:
            return False  # a generated header
        known[path] = "base/mutex.h" in names or any(sees_mutex(os.path.join(root, n), root, known) for n in names)
    return known[path]


def arguments(command):
    """Include paths, definitions and language of a compile command; the rest is for another compiler."""
    kept = []
    words = iter(shlex.split(command))
    for word in words:
        if word == "-isystem":
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D", "-std=")):
            kept.append(word)
    return kept


def check(entry):
    """What clang has to say about one source, empty if nothing."""
    command = [CLANG, "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror", *arguments(entry["command"]), entry["file"]]
    result = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: tests/tidy/thread_safety.py build/dev")
    parser.add_argument("build", help="a configured build folder")
    options = parser.parse_args()
    if shutil.which(CLANG) is None:
        print(f"thread_safety: {CLANG} is not installed; scripts/install --all installs it", file=sys.stderr)
        return 2
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(options.build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    known = {}
    entries = [e for e in entries if sees_mutex(e["file"], root, known)]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for said in pool.map(check, entries):
            wrong += bool(said)
            print(said, end="")
    print(f"thread_safety: {len(entries)} sources, {wrong} with findings")
    return 1 if wrong or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
