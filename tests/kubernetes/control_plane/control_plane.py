#!/usr/bin/env python3
"""A real Kubernetes control plane on this machine, for tests (--help). Python's standard library only.

  control_plane.py build             builds the program into the cache, once: about 11 CPU minutes, 3.2 GB of memory
  control_plane.py find              says where the program is
  control_plane.py start FOLDER      starts etcd, the API server, the controllers, the scheduler and two nodes, on loopback
  control_plane.py stop FOLDER       ends them
  control_plane.py kill FOLDER PART  ends one part with SIGKILL (apiserver, etcd, controller-manager, scheduler, kubelet)
  control_plane.py again FOLDER PART starts that part again, and waits until the API server answers
  control_plane.py kubectl FOLDER .. runs kubectl as an administrator
  control_plane.py fault FOLDER PATH asks the stand-in kubelet (/node/n1/lose); /pods lists pods and their processes
  control_plane.py compact FOLDER    makes etcd forget all old versions

The cache is $XDG_CACHE_HOME/muster-kubernetes, or ~/.cache/muster-kubernetes; each version of the sources has a folder in it.
A build removes those that no clone has used for a day. Exit code 77: something is missing that a package would bring.
The build needs Go, at least the version that go.mod names (Debian 12's is too old); it takes modules from Go's proxy.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("etcd", "apiserver", "controller-manager", "scheduler", "kubelet")
NODES = ("n1", "n2")
# Two busy cores need up to 30 s.
START_SECONDS = 120
TOOLS = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# A program that was found or built in this time may be some other clone's.
KEPT_SECONDS = 24 * 3600
# What CTest and Automake take for "skipped".
EXIT_MISSING = 77
# Networks of 4094 addresses for pods, in 10.64.0.0/10.
NETWORKS = 1024
PORTS = ("api", "etcd", "peer", "controller-manager", "scheduler", "logs", "control")


class Missing(Exception):
    """Something is not there; the text says what, and how to get it."""


def sources():
    names = sorted(name for name in os.listdir(HERE) if name.endswith(".go") or name in ("go.mod", "go.sum"))
    return [os.path.join(HERE, name) for name in names]


def cached_program():
    """Where the program of these sources is, or will be."""
    digest = hashlib.sha256()
    for path in sources():
        with open(path, "rb") as file:
            digest.update(os.path.basename(path).encode() + b"\0" + file.read() + b"\0")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "muster-kubernetes", digest.hexdigest()[:16], "control-plane")


def find():
    """The program; raises Missing unless it and openssl are there."""
    program = cached_program()
    if not os.path.exists(program):
        raise Missing(f"no control plane in {os.path.dirname(program)}: tests/kubernetes/control_plane/control_plane.py build")
    os.utime(os.path.dirname(program))
    for tool, package in (("openssl", "openssl"), ("ip", "iproute2")):
        if shutil.which(tool, path=TOOLS) is None:
            raise Missing(f"no {tool}: install the package {package}")
    return program


def find_go():
    with open(os.path.join(HERE, "go.mod"), encoding="utf-8") as file:
        wanted = re.search(r"^go (\d+)\.(\d+)", file.read(), re.M)
    found = []
    for go in (shutil.which("go"), "/usr/local/go/bin/go"):
        if go and os.path.exists(go):
            version = re.search(r"go(\d+)\.(\d+)", subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout)
            if version and tuple(map(int, version.groups())) >= tuple(map(int, wanted.groups())):
                return go
            found.append(go)
    raise Missing(f"Go {'.'.join(wanted.groups())} or newer is needed to build the control plane" + (f"; too old: {', '.join(found)}" if found else ""))


def remove_unused(program):
    """Removes programs of other sources that nobody has used for KEPT_SECONDS."""
    own, cache = os.path.dirname(program), os.path.dirname(os.path.dirname(program))
    for name in os.listdir(cache):
        folder = os.path.join(cache, name)
        if folder != own and re.fullmatch("[0-9a-f]{16}", name) and time.time() - os.stat(folder).st_mtime > KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def build():
    """Builds the program unless it is in the cache. Returns its path and the seconds that the build took."""
    program = cached_program()
    if os.path.exists(program):
        os.utime(os.path.dirname(program))
        remove_unused(program)
        return program, 0.0
    go = find_go()
    os.makedirs(os.path.dirname(program), exist_ok=True)
    with open(os.path.join(HERE, "go.mod"), encoding="utf-8") as file:
        version = re.search(r"k8s.io/kubernetes (v\S+)", file.read()).group(1)
    began = time.monotonic()
    temporary = f"{program}.{os.getpid()}"
    try:
        # Last of all processes: this runs beside other work, and takes what that leaves. Inlined calls and debug information
        # cost a third of the compiler's time; debug information would be stripped by the linker.
        subprocess.run(["nice", "-n", "10", go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-l -dwarf=false",
                        "-ldflags", f"-s -w -X k8s.io/component-base/version.gitVersion={version}", "-o", temporary, "."],
                       cwd=HERE, check=True, env=dict(os.environ, GOTOOLCHAIN="local", GOFLAGS=""))
        os.replace(temporary, program)
        remove_unused(program)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)
    return program, time.monotonic() - began


def free_ports(count):
    """Below the ephemeral range: a port in it may become some client's before its server takes it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="utf-8") as file:
        end = int(file.read().split()[0])
    ports = []
    for port in random.sample(range(10000, end), end - 10000):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"no {count} free ports below {end}")


def ip(*arguments, check=True):
    """Runs iproute2; says whether it worked."""
    return subprocess.run([shutil.which("ip", path=TOOLS), *arguments], capture_output=True, text=True, check=check).returncode == 0


def make_network(number):
    """A bridge, and addresses for its pods, of which the first one is this machine's. None if there is a bridge of this number."""
    bridge, first = f"mk{number}", f"10.{64 + number // 16}.{number % 16 * 16}"
    # A bridge takes the address of one of its ports, unless it has its own; then it would change with them.
    if not ip("link", "add", bridge, "address", f"02:4d:4b:00:{number // 256:02x}:{number % 256:02x}", "type", "bridge", check=False):
        return None
    ip("address", "add", f"{first}.1/20", "dev", bridge)
    ip("link", "set", bridge, "up")
    return {"number": number, "bridge": bridge, "prefix": f"{first}.0/20", "gateway": f"{first}.1"}


def new_network():
    """One that no other control plane has."""
    for number in random.sample(range(NETWORKS), NETWORKS):
        network = make_network(number)
        if network:
            return network
    raise RuntimeError(f"{NETWORKS} control planes have networks, or this is not root")


def remove_network(bridge):
    """Removes a bridge of pods, and those of the nodes."""
    links = json.loads(subprocess.run([shutil.which("ip", path=TOOLS), "-json", "link"], capture_output=True, text=True, check=True).stdout)
    for link in links:
        if re.fullmatch(bridge + r"([nutp]\d+)?", link["ifname"]):
            ip("link", "delete", link["ifname"], check=False)  # the other end of a cable may be gone with the first


class ControlPlane:
    """A control plane whose files are in `folder`; several processes may use the same one, by its files."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        os.makedirs(self._path("pki"), exist_ok=True)
        if not os.path.exists(self._path("plane.json")):
            self._write("plane.json", json.dumps({"program": find(), "ports": dict(zip(PORTS, free_ports(len(PORTS)))),
                                                  "network": new_network()}))
        with open(self._path("plane.json"), encoding="utf-8") as file:
            plane = json.load(file)
        # The one that was started, also if the sources have changed since.
        self.program, self.ports, self.network = plane["program"], plane["ports"], plane["network"]

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    # Certificates.

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self._path("pki"), check=True, capture_output=True)

    def _certificates(self):
        if os.path.exists(self._path("pki/ca.crt")):
            return
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
        self._openssl("ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        self._openssl("req", "-x509", *key, "-days", "30", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt")
        for name, subject, other_names in (
            ("apiserver", "/CN=kube-apiserver", f"IP:127.0.0.1,IP:10.0.0.1,IP:{self.network['gateway']},DNS:localhost,DNS:kubernetes.default.svc"),
            ("admin", "/O=system:masters/CN=admin", "DNS:admin"),
            ("controller-manager", "/CN=system:kube-controller-manager", "DNS:controller-manager"),
            ("scheduler", "/CN=system:kube-scheduler", "DNS:scheduler"),
        ):
            self._openssl("req", *key, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
            self._write(f"pki/{name}.ext", f"subjectAltName={other_names}\nextendedKeyUsage=serverAuth,clientAuth\n")
            self._openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                          "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    def _kubeconfig(self, name):
        cluster = {"server": f"https://127.0.0.1:{self.ports['api']}", "certificate-authority": "pki/ca.crt"}
        user = {"client-certificate": f"pki/{name}.crt", "client-key": f"pki/{name}.key"}
        # JSON is YAML.
        self._write(f"{name}.kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}], "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}]}))
        return self._path(f"{name}.kubeconfig")

    # Processes.

    def _arguments(self, part):
        ports, pki = self.ports, self._path("pki")
        client, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['peer']}"
        return {
            "etcd": ["--data-dir", self._path("etcd"), "--listen-client-urls", client, "--advertise-client-urls", client,
                     "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                     "--unsafe-no-fsync", "--logger", "zap", "--log-level", "warn"],
            "apiserver": [f"--etcd-servers={client}", "--bind-address=0.0.0.0", "--advertise-address=127.0.0.1",
                          "--endpoint-reconciler-type=none", f"--secure-port={ports['api']}",
                          f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key",
                          f"--client-ca-file={pki}/ca.crt", "--authorization-mode=RBAC",
                          "--service-account-issuer=https://kubernetes.default.svc",
                          f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key",
                          "--service-cluster-ip-range=10.0.0.0/24", "--kubelet-preferred-address-types=InternalIP",
                          "--allow-privileged=true",
                          # A lost node is given up after seconds, so that tests are short.
                          "--default-not-ready-toleration-seconds=3", "--default-unreachable-toleration-seconds=3"],
            "controller-manager": ["--kubeconfig", self._path("controller-manager.kubeconfig"), "--use-service-account-credentials",
                                   "--leader-elect=false", f"--service-account-private-key-file={pki}/sa.key",
                                   f"--root-ca-file={pki}/ca.crt", "--bind-address=127.0.0.1",
                                   f"--secure-port={ports['controller-manager']}", "--node-monitor-period=1s",
                                   "--node-monitor-grace-period=8s", "--terminated-pod-gc-threshold=1000"],
            "scheduler": ["--kubeconfig", self._path("scheduler.kubeconfig"), "--leader-elect=false", "--bind-address=127.0.0.1",
                          f"--secure-port={ports['scheduler']}"],
            "kubelet": ["--kubeconfig", self._path("admin.kubeconfig"), "--nodes", ",".join(NODES), "--root", self._path("kubelet"),
                        "--port", str(ports["logs"]), "--control", f"127.0.0.1:{ports['control']}", "--lease", "2",
                        "--bridge", self.network["bridge"], "--network", self.network["prefix"], "--images", self._path("images.json")],
        }[part]

    def launch(self, part):
        with open(self._path(f"{part}.log"), "ab") as log:
            process = subprocess.Popen([self.program, part, *self._arguments(part)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True)
        self._write(f"{part}.pid", str(process.pid))
        # For a moment after it began, a process has no command line that pid() could compare.
        self._until(lambda: self.pid(part) is not None or process.poll() is not None, f"the {part} to begin")

    def pid(self, part):
        """Of a part that runs; None if it does not."""
        try:
            with open(self._path(f"{part}.pid"), encoding="utf-8") as file:
                pid = int(file.read())
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return pid if file.read().startswith(self.program.encode() + b"\0" + part.encode() + b"\0") else None
        except (OSError, ValueError):
            return None

    def kill(self, part):
        pid = self.pid(part)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._until(lambda: self.pid(part) is None, f"the {part} to end")

    def _until(self, done, what):
        end = time.monotonic() + START_SECONDS
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"waited {START_SECONDS} s in vain for {what}; see the logs in {self.folder}")
            time.sleep(0.1)

    def kubectl(self, *arguments, text=None, check=True):
        return subprocess.run([self.program, "kubectl", "--kubeconfig", self._path("admin.kubeconfig"), *arguments], input=text,
                              capture_output=True, text=True, check=check, timeout=60).stdout

    def kubectl_begun(self, *arguments):
        """A kubectl that lasts, such as a watch; its stdout is a pipe, and whoever calls this ends it."""
        return subprocess.Popen([self.program, "kubectl", "--kubeconfig", self._path("admin.kubeconfig"), *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def fault(self, path):
        """Asks the stand-in kubelet; returns its answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['control']}{path}", data=None if path == "/pods" else b"")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def compact(self):
        version = json.loads(self.kubectl("get", "--raw", "/api/v1/namespaces"))["metadata"]["resourceVersion"]
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['etcd']}/v3/kv/compaction",
                                         data=json.dumps({"revision": version, "physical": True}).encode())
        urllib.request.urlopen(request, timeout=30).close()

    def wait_for_api(self):
        def is_ready():
            if self.pid("apiserver") is None:
                with open(self._path("apiserver.log"), encoding="utf-8", errors="replace") as log:
                    raise RuntimeError(f"the API server has ended: {''.join(log.readlines()[-5:])}")
            return self.kubectl("get", "--raw", "/readyz", check=False) == "ok"
        self._until(is_ready, "the API server")

    def start(self):
        make_network(self.network["number"])  # it is there, unless stop() removed it
        self._certificates()
        for name in ("admin", "controller-manager", "scheduler"):
            self._kubeconfig(name)
        self.launch("etcd")
        self.launch("apiserver")
        self.wait_for_api()
        for part in PARTS[2:]:
            self.launch(part)
        ready = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        self._until(lambda: self.kubectl("get", "nodes", "-o", ready, check=False).split() == ["True"] * len(NODES), "the nodes")
        self._until(lambda: self.kubectl("get", "serviceaccount", "default", check=False), "the default service account")

    def stop(self):
        for part in reversed(PARTS):
            if part == "kubelet":
                self._end_pods()
            self.kill(part)
        remove_network(self.network["bridge"])

    def _end_pods(self):
        """Pods are processes of this machine: they would stay. Each has the hosts file of its pod mounted."""
        self.kill("kubelet")
        try:
            pods = set(os.listdir(self._path("kubelet")))
        except FileNotFoundError:
            return
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="replace") as file:
                    found = re.search(r"/kubelet/([0-9a-f-]+)/hosts /", file.read())
                if found and found.group(1) in pods:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:  # it has ended
                continue


def run(what, folder, words):
    """A subcommand that needs a folder."""
    plane = ControlPlane(folder)
    if what == "start":
        plane.start()
        print(os.path.join(plane.folder, "admin.kubeconfig"))
    elif what == "stop":
        plane.stop()
    elif what == "kill":
        plane.kill(words[0])
    elif what == "again":
        plane.launch(words[0])
        plane.wait_for_api()
    elif what == "kubectl":
        text = None if sys.stdin.isatty() else sys.stdin.read()
        print(plane.kubectl(*words, text=text), end="")
    elif what == "fault":
        print(plane.fault(words[0]), end="")
    else:
        plane.compact()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "find", "start", "stop", "kill", "again", "kubectl", "fault", "compact"))
    parser.add_argument("folder", nargs="?")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="a part, a path, or kubectl's arguments")
    options = parser.parse_args()
    # So that a build that is told to end takes the compiler with it, and its temporary file.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.what not in ("build", "find") and not options.folder:
        parser.error(f"{options.what} needs a folder")
    if options.what in ("kill", "again") and options.words[:1] not in [[part] for part in PARTS]:
        parser.error(f"{options.what} needs one of {', '.join(PARTS)}")
    if options.what == "fault" and len(options.words) != 1:
        parser.error("fault needs a path")
    try:
        if options.what == "build":
            program, seconds = build()
            print(f"{program} ({seconds:.0f} s)")
        elif options.what == "find":
            print(find())
        else:
            run(options.what, options.folder, options.words)
    except Missing as missing:
        print(f"control_plane.py: {missing}", file=sys.stderr)
        return EXIT_MISSING
    except subprocess.CalledProcessError as error:
        print(f"control_plane.py: {error}\n{error.stderr or ''}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
