#!/usr/bin/env python3
"""Runs a test program beside an S3 server and the proxy that makes faults; skips, visibly, where moto is missing.

  with_s3.py PROGRAM [ARGUMENT ...]

The program finds the proxy's URL in MUSTER_TEST_S3, and the bucket "tests".
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "lib"))
import s3_proxy  # noqa: E402
import s3_server  # noqa: E402

SKIPPED = 77


def main():
    try:
        server = s3_server.Server()
    except s3_server.Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    with server, s3_proxy.Proxy(server.port, s3_server.KEYS["AWS_SECRET_ACCESS_KEY"]) as proxy:
        server.make_bucket("tests")
        return subprocess.run(sys.argv[1:], env=os.environ | s3_server.KEYS | {"MUSTER_TEST_S3": proxy.endpoint}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
