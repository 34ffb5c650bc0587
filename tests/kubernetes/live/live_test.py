#!/usr/bin/env python3
"""Runs kubernetes_live_test against a real control plane; skipped, with the reason, where that was not built.

With --folder, the control plane of that folder is used, and stays.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLANE = os.path.join(os.path.dirname(HERE), "control_plane")
sys.dont_write_bytecode = True
sys.path.insert(0, PLANE)
import control_plane  # noqa: E402


def run(program, folder, more):
    environment = dict(os.environ, MUSTER_PLANE=folder, MUSTER_PLANE_PROGRAM=control_plane.find(),
                       MUSTER_PLANE_SCRIPT=os.path.join(PLANE, "control_plane.py"))
    return subprocess.run([program, *more], env=environment, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--folder", help="of a control plane that runs")
    options, more = parser.parse_known_args()
    try:
        control_plane.find()
    except control_plane.Missing as missing:
        print(f"{missing}\nskipped=1")
        return 0
    if os.geteuid() != 0:
        print("the stand-in kubelet mounts volumes, so it needs root\nskipped=1")
        return 0
    if options.folder:
        return run(options.program, options.folder, more)
    with tempfile.TemporaryDirectory(prefix="muster-kubernetes-") as folder:
        with control_plane.ControlPlane(folder):
            return run(options.program, folder, more)


if __name__ == "__main__":
    sys.exit(main())
