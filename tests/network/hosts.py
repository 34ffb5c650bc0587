"""Hosts of a virtual network: each has its own network, processes, mounts, name and shared memory, as a machine has.

A host is a set of kernel namespaces that one process holds (its init). A bridge in a namespace of its own, the switch,
connects them. Everything disappears with the holding processes, also when this process is killed. Needs root, and the
programs of Debian's iproute2, nftables and util-linux.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
NETWORK = "10.77.0"
NETWORK6 = "fd77::"


def why_not():
    """What is missing to make hosts here; None: nothing."""
    if os.geteuid() != 0:
        return "it needs root"
    if missing := [tool for tool in ("ip", "tc", "nft", "unshare", "nsenter") if shutil.which(tool) is None]:
        return f"it needs {', '.join(missing)} (iproute2, nftables, util-linux)"
    made = subprocess.run(["unshare", "-nmpui", "--fork", "--mount-proc", "sh", "-c",
                           "ip link add name br0 type bridge && ip link add name v0 type veth peer name v1 && nft add table bridge t"],
                          capture_output=True, text=True, check=False)
    return None if made.returncode == 0 else f"namespaces cannot be made here: {made.stderr.strip()}"


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Namespace:
    """The namespaces of one host or switch."""

    def __init__(self, name, private_folder=None, names=None):
        self.name = name
        setup = f"mount --make-rprivate / && hostname {name} && ip link set lo up"
        if private_folder is not None:
            setup += f" && mount -t tmpfs tmpfs {private_folder}"
        if names is not None:
            setup += f" && mount --bind {names} /etc/hosts"
        self._holder = subprocess.Popen(
            ["unshare", "-nmpui", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-c", f"set -e; {setup} && echo ready && exec sleep infinity"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)
        with self._holder.stdout as said:
            ready = said.readline() == b"ready\n"
        if not ready:
            raise RuntimeError(f"the namespaces of {name} cannot be made")
        with open(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children", encoding="ascii") as file:
            self.init = int(file.read().split()[0])

    def wrap(self, command, folder="/"):
        """The command line that runs `command` on this host, in that folder."""
        return ["nsenter", "-t", str(self.init), "-n", "-m", "-p", "-u", "-i", "--", "sh", "-c", 'cd "$0" && exec "$@"', folder, *command]

    def run(self, *command, **options):
        return subprocess.run(self.wrap([str(each) for each in command]), check=True, text=True, capture_output=True, **options).stdout

    def power_off(self):
        """Every process of the host dies at once, and its interfaces are gone."""
        if self._holder.poll() is None:
            try:
                os.kill(self.init, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._holder.wait()


class Network:
    """Hosts on one switch. `with` removes it. A host's `address` is IPv4, `address6` IPv6."""

    def __init__(self, private_folder, names):
        """`names`: the file that is /etc/hosts on every host."""
        self._private, self._names = private_folder, names
        self.switch = Namespace("switch")
        self.hosts = {}
        self.wires = []
        self.switch.run("ip", "link", "add", "br0", "type", "bridge")
        self.switch.run("ip", "link", "set", "br0", "up")
        self.switch.run("nft", "add table bridge faults")
        self.switch.run("nft", "add chain bridge faults forward { type filter hook forward priority 0 ; }")

    def add(self, name, wire=None):
        """A host; `wire`: arguments of wire.py, through which everything goes to and from it."""
        host = Namespace(name, self._private, self._names)
        number = len(self.hosts) + 1
        host.port = f"p{number}"
        host.address, host.address6 = f"{NETWORK}.{number}", f"{NETWORK6}{number}"
        if wire is None:
            subprocess.run(["ip", "link", "add", "eth0", "netns", str(host.init), "type", "veth", "peer", "name", host.port,
                            "netns", str(self.switch.init)], check=True)
        else:
            self.wires.append(subprocess.Popen(
                ["python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py"), "--ends", f"{host.init}:eth0",
                 f"{self.switch.init}:{host.port}", *wire], stdout=subprocess.PIPE, preexec_fn=_die_with_parent))
            with self.wires[-1].stdout as said:
                ready = said.readline() == b"ready\n"
            if not ready:
                raise RuntimeError("the wire cannot be made")
        self.switch.run("ip", "link", "set", host.port, "master", "br0", "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "address", "add", f"{host.address6}/64", "dev", "eth0", "nodad")
        host.run("ip", "link", "set", "eth0", "up")
        self.hosts[name] = host
        return host

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for wire in self.wires:
            wire.kill()
            wire.wait()
        for host in [*self.hosts.values(), self.switch]:
            host.power_off()

    # Faults. They last until heal().

    def drop(self, what):
        """Drops frames that match: 'iifname "p1"' comes from host 1."""
        self.switch.run("nft", f"add rule bridge faults forward {what} drop")

    def cut(self, host):
        """Nothing goes to or from the host, and nobody is told."""
        self.drop(f'iifname "{host.port}"')
        self.drop(f'oifname "{host.port}"')

    def cut_one_way(self, sender, receiver):
        self.drop(f'iifname "{sender.port}" oifname "{receiver.port}"')

    def forget_connections(self, host):
        """What a NAT does that has forgotten idle connections: their packets vanish, new connections work."""
        forgotten = 0
        for line in host.run("ss", "-tnH", "state", "established").splitlines():
            here, there = line.split()[2:4]
            (_, port), (_, other) = here.rsplit(":", 1), there.rsplit(":", 1)
            if here.startswith("127.") or here.startswith("[::ffff:127"):
                continue
            self.drop(f'iifname "{host.port}" tcp sport {port} tcp dport {other}')
            self.drop(f'oifname "{host.port}" tcp sport {other} tcp dport {port}')
            forgotten += 1
        return forgotten

    def heal(self):
        self.switch.run("nft", "flush chain bridge faults forward")

    def limit_rate(self, host, rate):
        """Both directions: "10mbit"."""
        self.switch.run("tc", "qdisc", "add", "dev", host.port, "root", "tbf", "rate", rate, "burst", "32kb", "latency", "100ms")
        host.run("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "32kb", "latency", "100ms")


def wait_for(what, condition, seconds):
    """The seconds until `condition()` is true; AssertionError after `seconds`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)
    return time.monotonic() - began
