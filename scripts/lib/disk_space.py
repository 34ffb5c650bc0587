#!/usr/bin/env python3
"""Is there enough disk space for scripts/test? Without it, a run fails late, and its errors speak of other things.

  disk_space.py default|ci|all   run in the root of the clone; prints what is needed and free on each file system;
                                 exit code 3: not enough
"""

import os
import shutil
import subprocess
import sys
import tempfile

EXIT_FULL = 3
# GB on disk after a run with an empty ccache. What a build folder has already is not needed again.
BUILDS = {
    "default": {"dev": 3.5},
    "ci": {"dev": 3.5, "asan-ubsan": 9, "tsan": 4},
    "all": {"dev": 3.5, "asan-ubsan": 10, "tsan": 4, "release": 1.5},
}
CCACHE = {"default": 1, "ci": 3, "all": 3.5}
TEMPORARY = {"default": 1, "ci": 2, "all": 4}  # state directories of jobs; a control plane has half a GB
CONTROL_PLANE = 6  # modules of Go, what Go has compiled of them, and the program
PYTORCH = 7  # what pip installs
GB = 1e9


def cache_folder(name):
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), name)


def size_gb(folder):
    """What a folder takes on disk; 0 if it is not there."""
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total / GB


def needs(level, has_control_plane, size=size_gb):
    """[(folder, GB that it will grow by)] of a level of scripts/test."""
    result = [(f"build/{preset}", max(0, gb - size(f"build/{preset}"))) for preset, gb in BUILDS[level].items()]
    result.append((tempfile.gettempdir(), TEMPORARY[level]))
    if shutil.which("ccache"):
        ccache = os.environ.get("CCACHE_DIR") or cache_folder("ccache")
        result.append((ccache, max(0, CCACHE[level] - size(ccache))))
    if level != "default" and not has_control_plane:
        result.append((cache_folder("go-build"), CONTROL_PLANE))
    if level != "default" and not os.path.exists(os.path.join(cache_folder("muster-peers"), "torch")):
        result.append((cache_folder("muster-peers"), PYTORCH))
    return result


def by_file_system(wanted, device, free):
    """[(folders, GB needed, GB free)] of each file system. `device` and `free` take a folder."""
    groups = {}
    for folder, gb in wanted:
        group = groups.setdefault(device(folder), [[], 0.0, free(folder)])
        group[0].append(folder)
        group[1] += gb
    return [tuple(group) for group in groups.values()]


def existing(folder):
    """The folder, or the nearest one above it that is there."""
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return folder


def free_gb(folder):
    place = os.statvfs(existing(folder))
    return place.f_bavail * place.f_frsize / GB


def main():
    if sys.argv[1:] not in [[level] for level in BUILDS]:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found = subprocess.run(["tests/kubernetes/control_plane/control_plane.py", "find"], capture_output=True, check=False)
    wanted = needs(sys.argv[1], found.returncode == 0)
    status = 0
    for folders, needed, free in by_file_system(wanted, lambda folder: os.stat(existing(folder)).st_dev, free_gb):
        text = f"disk: {needed:.1f} GB needed, {free:.1f} GB free ({', '.join(folders)})"
        if free < needed:
            print(f"scripts/test: not enough {text}; make room, or set TMPDIR or CCACHE_DIR to another disk", file=sys.stderr)
            status = EXIT_FULL
        else:
            print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
