#!/usr/bin/env python3
"""Jobs whose workers reach their servers over TCP with TLS: kills, renewed certificates, strangers. Python's standard library only."""

import argparse
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

# Below a folder with so long a name, no UNIX socket has a path that fits, so servers listen on TCP alone.
TCP_ONLY = "tcp-only-because-every-path-of-a-socket-below-this-folder-is-longer-than-the-path-of-a-unix-socket-may-be"
options = None


def listening_ports(pid):
    """TCP ports on which the process listens on loopback."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def hosts_of(port, tls, role):
    """The host names in the certificate of the lane at `port`, as a client of this role gets to know it; None if it refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # lanes are known by their job and role
    context.load_verify_locations(os.path.join(tls, "ca.crt"))
    context.load_cert_chain(os.path.join(tls, f"{role}.crt"), os.path.join(tls, f"{role}.key"))
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, context.wrap_socket(plain) as connection:
            connection.sendall(b"no frame, and as long as the header of one, so that the lane answers it")
            if not connection.recv(4):  # a refusal of the certificate comes here
                return None
            return [value for kind, value in connection.getpeercert()["subjectAltName"] if kind == "DNS"]
    except (ssl.SSLError, ConnectionError):
        return None


class DataPlaneTest(unittest.TestCase):
    def job(self, **arguments):
        job = counter_job.CounterJob(options, **arguments)
        job.state = TCP_ONLY
        job.spec["security"] = {"tls": "always"}
        job.write_data(random.Random(41))
        job.write_job()
        return job

    def kill(self, job, run, role):
        pids = processes.nodes(run.pid, os.path.basename(job.trainer))[role]
        self.assertTrue(processes.send(pids[0], signal.SIGKILL))

    def lane(self, job, run):
        """A port of a server's lane, once it listens."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for pid in processes.nodes(run.pid, os.path.basename(job.trainer))["ps"]:
                if ports := listening_ports(pid):
                    return ports[0]
            time.sleep(0.02)
        raise AssertionError("no server listens on TCP")

    def test_kills(self):
        with self.job(seed=41, records=8000, epochs=2) as job:
            run = job.start()
            for share, role in ((0.1, "worker"), (0.2, "ps"), (0.3, "worker"), (0.4, "ps")):
                job.wait_progress(run, share)
                self.kill(job, run, role)
            summary = job.finish(run)
            self.assertGreaterEqual(summary["restarts"]["worker"], 2)
            self.assertGreaterEqual(summary["restarts"]["ps"], 2)

    def test_renewal(self):
        with self.job(seed=42, records=8000, epochs=2) as job:
            run = job.start()
            job.wait_progress(run, 0.1)
            tls = job.path(job.state, "tls")
            port = self.lane(job, run)
            self.assertNotIn("renewed.example", hosts_of(port, tls, "worker"))
            subprocess.run([options.certificate_tool, tls, "renewed.example"], check=True, timeout=60)
            end = time.monotonic() + 60
            while "renewed.example" not in hosts_of(port, tls, "worker"):
                self.assertLess(time.monotonic(), end, "the lane keeps the old certificate")
                time.sleep(0.1)
            for share, role in ((0.2, "worker"), (0.3, "ps")):
                job.wait_progress(run, share)
                self.kill(job, run, role)
            job.finish(run)

    def test_strangers(self):
        with self.job(seed=43, records=4000) as job:
            run = job.start()
            job.wait_progress(run, 0.1)
            port = self.lane(job, run)
            for role in ("operator", "scaler", "ps"):
                self.assertIsNone(hosts_of(port, job.path(job.state, "tls"), role), role)
            with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
                plain.sendall(b"a frame of the data plane in plain text, long enough to be the header of one" + bytes(64))
                while plain.recv(4096):
                    pass  # an alert, in which nothing of the job stands
            job.finish(run)


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: tls_data_plane_test.py --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker "
               "--certificate-tool build/dev/tests/integration/certificate_tool",
    )
    counter_job.add_arguments(parser)
    parser.add_argument("--certificate-tool", required=True, type=os.path.abspath)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
