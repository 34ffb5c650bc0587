#!/usr/bin/env python3
"""Jobs whose connections are TLS, on loopback: real binaries, Python's TLS as the stranger. Python's standard library only."""

import json
import os
import random
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import unittest

import counter_job
import rest_client
from counter_job import processes

options = None


def wait_for(what, condition):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if (found := condition()) is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within 60 s")


def rest_of(job):
    """The REST interface, once the scaler serves."""
    def find():
        try:
            return rest_client.RestClient(job.path(job.state))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
    return wait_for("the scaler serves", find)


def said_to(address, directory, role, versions):
    """How a handshake ends that Python begins as `role`, with these (oldest, newest) versions of TLS: "" if it succeeds."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # of the address; the certificate's own name is checked by Muster's clients
    context.load_verify_locations(os.path.join(directory, "ca.crt"))
    context.load_cert_chain(os.path.join(directory, role + ".crt"), os.path.join(directory, role + ".key"))
    context.set_alpn_protocols(["h2"])
    context.minimum_version, context.maximum_version = versions
    try:
        with socket.create_connection(address, timeout=20) as plain, context.wrap_socket(plain) as tls:
            tls.recv(1)  # under TLS 1.3, a server's refusal of a certificate comes here
            return ""
    except (ssl.SSLError, ConnectionError) as error:
        return str(error) or "closed"


class TlsTest(unittest.TestCase):
    def job(self, **arguments):
        job = counter_job.CounterJob(options, **arguments)
        job.spec["security"] = {"tls": "always"}
        job.write_data(random.Random(31))
        job.write_job()
        return job

    def test_control_plane(self):
        with self.job(seed=31, records=40000) as job:  # it is cancelled
            run = job.start()
            wait_for("the master answers", job.status)
            tls = job.path(job.state, "tls")
            self.assertEqual(stat.S_IMODE(os.stat(tls).st_mode), 0o700)
            for name in os.listdir(tls):
                if name.endswith(".key"):
                    self.assertEqual(stat.S_IMODE(os.stat(os.path.join(tls, name)).st_mode), 0o600, name)

            rest = rest_of(job)
            self.assertIsNotNone(rest.tls, "the interface is HTTPS")
            wait_for("the scaler knows the job", lambda: rest.get("job")["name"] == "closed-form" or None)
            shown = subprocess.run([job.muster, "dashboard", "job.yaml"], cwd=job.folder, text=True, capture_output=True, check=True)
            self.assertIn(f"https://127.0.0.1:{rest.port}/#token=", shown.stdout)
            job.ask("events", "job.yaml")

            with open(job.path(job.state, "run", "endpoint.json"), encoding="utf-8") as file:
                host, port = json.load(file)["master"].split(":")
            master = (host, int(port))
            tls13, tls12 = [(version, version) for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2)]
            self.assertEqual(said_to(master, tls, "worker", tls13), "")
            self.assertNotEqual(said_to(master, tls, "worker", tls12), "")
            with self.job(seed=32, records=100) as other:
                stranger = other.start()
                wait_for("the other master answers", other.status)
                self.assertNotEqual(said_to(master, other.path(other.state, "tls"), "worker", tls13), "")
                other.ask("cancel", "job.yaml")
                other.wait(stranger, 4)

            for victim in ("master", "scaler"):
                def running():
                    return processes.nodes(run.pid, os.path.basename(job.trainer))[victim] or None
                pid = wait_for(f"a {victim}", running)[0]
                self.assertTrue(processes.send(pid, signal.SIGKILL))
                wait_for(f"another {victim}", lambda: (pids := running()) and pid not in pids or None)
            wait_for("the master answers", job.status)
            job.ask("cancel", "job.yaml")
            job.wait(run, 4)

    def test_files_that_cannot_be_used(self):
        with self.job(seed=33, records=100) as job:
            run = job.start()
            wait_for("the master answers", job.status)
            job.ask("cancel", "job.yaml")
            job.wait(run, 4)
            key = job.path(job.state, "tls", "ps.key")
            os.chmod(key, 0o644)
            job.wait(job.start(), 2)
            self.assertIn(f"{key}: the key has mode 0644", job.said())
            os.chmod(key, 0o600)
            os.remove(job.path(job.state, "tls", "ca.key"))
            job.wait(job.start(), 2)
            self.assertIn("ca.key: it is missing", job.said())

    def test_exact(self):
        with self.job(seed=34, records=8000, epochs=2) as job:
            run = job.start()
            job.wait_progress(run, 0.2)
            pids = processes.nodes(run.pid, os.path.basename(job.trainer))["master"]
            self.assertTrue(processes.send(pids[0], signal.SIGKILL))
            job.wait_progress(run, 0.5)
            self.assertGreaterEqual(job.finish(run)["restarts"]["master"], 1)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "tls_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
