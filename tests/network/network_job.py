"""The counter job of tests/integration over several hosts: `muster run` on host "run", `muster join` on the others."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

INTEGRATION = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration")
sys.path[:0] = [INTEGRATION, os.path.join(INTEGRATION, "groups")]
import counter_job  # noqa: E402
import hosts  # noqa: E402

MASTER_PORT = 26500
REST_PORT = 26501


class NetworkJob(counter_job.CounterJob):
    """Data and snapshots lie in a folder that all hosts see; everything else of a host is its own (the folder `home`)."""

    def __init__(self, options, **more):
        super().__init__(options, **more)
        os.mkdir(self.path("home"))
        self.state = self.path("home", "state")
        self.network, self.joins = None, {}

    def connect(self, names, ipv6=False, wires=None, advertise=None, insecure=False):
        """Makes the hosts and the job file. `advertise`: the master's name, which has no address until name_master().

        `insecure`: plain text instead of TLS.
        """
        self.insecure = insecure
        self._write("hosts", ["127.0.0.1 localhost"])
        self.network = hosts.Network(self.path("home"), self.path("hosts"))
        for name in names:
            self.network.add(name, (wires or {}).get(name))
        run = self.network.hosts["run"]
        self.master = f"[{run.address6}]:{MASTER_PORT}" if ipv6 else f"{run.address}:{MASTER_PORT}"
        self.named = f"{run.address} {advertise}"
        self.wrapper = run.wrap([], self.folder)
        self.spec |= {"master": {"address": self.master}, "security": {"insecure": insecure},
                      "scaler": {"host": run.address, "advertise": "dashboard.example", "port": REST_PORT}}
        if advertise is not None:
            self.spec["master"]["advertise"] = advertise
            self.master = f"{advertise}:{MASTER_PORT}"
        self.ps = {"replicas": 2, "joined": 1} | self.ps
        self.worker = {"replicas": 1} | self.worker
        self.snapshots |= {"directory": "snapshots"}
        self.write_job()

    def __exit__(self, kind, *rest):
        if self.network is not None:
            if kind is not None:
                self.keep_logs()
            self.network.__exit__()
        super().__exit__(kind, *rest)

    def keep_logs(self):
        """Of a test that failed: the hosts' own folders vanish with them."""
        for name, host in self.network.hosts.items():
            target = self.path(f"logs-{name}")
            subprocess.run(["cp", "-r", f"/proc/{host.init}/root{self.path('home')}", target], check=False, stderr=subprocess.DEVNULL)

    def start_job(self):
        """`muster run`, until its master can be asked for a place."""
        run = self.start()
        tokens = f"/proc/{self.network.hosts['run'].init}/root{self.state}/scaler"
        names = ("token", "join-worker", "join-ps")
        hosts.wait_for("the job's tokens",
                       lambda: all(os.path.exists(f"{tokens}/{name}") for name in names) or run.poll() is not None, 20)
        for name in names:
            with open(f"{tokens}/{name}", encoding="ascii") as source, open(self.path(name), "w", encoding="ascii") as copy:
                copy.write(source.read())
            os.chmod(self.path(name), 0o600)
        if not self.insecure:
            self._copy_certificates(run)
        return run

    def _copy_certificates(self, run):
        """What a user copies to the other machines: what joined workers and servers need."""
        made = f"/proc/{self.network.hosts['run'].init}/root{self.state}/tls"
        files = ["ca.crt"] + [f"{role}.{kind}" for role in ("ps", "worker") for kind in ("crt", "key")]
        hosts.wait_for("the job's certificates",
                       lambda: all(os.path.exists(f"{made}/{name}") for name in files) or run.poll() is not None, 20)
        os.makedirs(self.path("tls"), mode=0o700, exist_ok=True)
        for name in files:
            shutil.copy2(f"{made}/{name}", self.path("tls", name))

    def join(self, host, role, *arguments, name=None):
        """`muster join` on that host, in the background."""
        command = [self.muster, "join", self.master, "--role", role, "--token-file", self.path(f"join-{role}"), "--state-dir",
                   self.path("home", f"join-{name or role}")]
        command += ["--name", name] if name else []
        if not self.insecure:
            command += ["--tls", self.path("tls")]
        else:
            command.append("--insecure")
        command += arguments if role == "ps" else [*arguments, "--", *self.command]
        with open(self.path(f"join-{host}-{role}.log"), "a", encoding="utf-8") as output:
            join = subprocess.Popen(self.network.hosts[host].wrap(command, self.folder), stdout=output, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL)
        self.runs.append(join)
        self.joins[host] = join
        return join

    def get(self, host, path, named):
        """The answer of the REST interface to a request from that host, which calls it `named`: (HTTP status, body)."""
        with open(self.path("token"), encoding="ascii") as file:
            token = file.read().strip()
        connection = "HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=20)"
        if not self.insecure:
            connection = ("HTTPSConnection(sys.argv[1], int(sys.argv[2]), timeout=20, "
                          f"context=ssl.create_default_context(cafile={self.path('tls', 'ca.crt')!r}))")
        fetch = (f"import http.client, ssl, sys; c = http.client.{connection}; "
                 "c.request('GET', sys.argv[3], headers={'Host': sys.argv[4], 'Authorization': 'Bearer ' + sys.argv[5]}); "
                 "r = c.getresponse(); print(r.status); print(r.read().decode())")
        said = self.network.hosts[host].run(sys.executable, "-c", fetch, self.network.hosts["run"].address, REST_PORT, path,
                                            f"{named}:{REST_PORT}", token)
        status, body = said.split("\n", 1)
        return int(status), body

    def name_master(self):
        with open(self.path("hosts"), "a", encoding="ascii") as file:
            file.write(self.named + "\n")

    def join_said(self, host, role):
        with open(self.path(f"join-{host}-{role}.log"), encoding="utf-8") as file:
            return file.read()

    def ask(self, *arguments):
        subprocess.run([*self.wrapper, self.muster, *arguments], check=True, timeout=60, stdout=subprocess.DEVNULL)

    def try_to_ask(self, *arguments):
        """(exit code, what it said)."""
        done = subprocess.run([*self.wrapper, self.muster, *arguments], check=False, timeout=60, text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr

    def status(self):
        done = subprocess.run([*self.wrapper, self.muster, "status", "job.yaml", "--output", "json"], text=True, capture_output=True,
                              check=False, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def node(self, name):
        """The node as the master sees it; None: not known, or the master does not answer."""
        status = self.status()
        return next((node for node in status["nodes"] if node["name"] == name), None) if status else None

    def wait_state(self, name, state, seconds=30):
        return hosts.wait_for(f"{name} is {state}", lambda: (node := self.node(name)) is not None and node["state"] == state, seconds)

    def wait_more(self, run, seconds=60):
        """The seconds until more records are done than now."""
        before = self.progress() or (0, 0)

        def more():
            if run.poll() is not None:
                raise AssertionError(f"the run ended with {run.poll()}\n{self.last_words()}")
            now = self.progress()
            return now is not None and now[0] > before[0]

        return hosts.wait_for("progress", more, seconds)

    def finish(self, run, seconds=120):
        """At full speed to the end; everything is exact, and every join has ended well."""
        if os.path.exists(self.path(counter_job.SLOW)):
            self.hurry()
        began = time.monotonic()
        try:
            code = run.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"muster run did not end within {seconds} s\n{self.last_words()}") from None
        if code != 0:
            raise AssertionError(f"muster run ended with {code}\n{self.last_words()}")
        for host, join in self.joins.items():
            try:
                ended = join.wait(timeout=max(1.0, 60 - (time.monotonic() - began)))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"the join on {host} did not end after the job") from None
            if ended != 0:
                raise AssertionError(f"the join on {host} ended with {ended}")
        self.require_complete()
        self.require_closed_form(self.path("export"))

    def summary(self):
        return json.loads(self.network.hosts["run"].run("cat", f"{self.state}/summary.json"))

    def stop(self, host):
        """SIGINT to the join of that host: its node leaves."""
        self.signal(self.joins[host], signal.SIGINT)

    @staticmethod
    def signal(process, number):
        """Of a process on a host: `process` is only the nsenter that waits for it."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read().split()[0]), number)
