"""Ports of loopback for servers that tests and demos start."""

import random
import socket


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
    raise RuntimeError(f"there are no {count} free ports below {end}")
