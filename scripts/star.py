"""Hosts of their own on this machine (bench/netlab: network namespaces), one for each process of a swarm.

Only Debian's python3 and iproute2; needs root and /dev/net/tun.
"""
import argparse
import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

from local_swarm import LIBC, ROOT, SwarmError

NETLAB = os.path.join(ROOT, "bench/netlab")
TCP_PORT = 4800
PREFIX = "10.77.0"
CLONE_NEWNET = 0x40000000
RECEIVE = """
import socket, sys, time
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
stream, _ = server.accept()
seconds, skip = float(sys.argv[2]), float(sys.argv[3])
begin, counted, since = time.monotonic(), 0, None
while time.monotonic() - begin < skip + seconds:
    got = len(stream.recv(1 << 20))
    if since is not None:
        counted += got
    elif time.monotonic() - begin >= skip:
        since = time.monotonic()
print(counted / (time.monotonic() - since), flush=True)
"""
SEND = """
import socket, sys
stream = socket.create_connection((sys.argv[1], int(sys.argv[2])))
block = bytes(1 << 18)
try:
    while True:
        stream.sendall(block)
except OSError:
    pass
"""


def missing():
    """Why there can be no network of our own here; None when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun is not there"
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    return None


def bits_per_s(rate):
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * factor
    raise ValueError(f"{rate} is no rate")


def line_of(text):
    """(rate, ms one way) of RATE,MS; the type of an argument."""
    try:
        rate, delay_ms = text.split(",")
        bits_per_s(rate)
        return rate, float(delay_ms)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not RATE,MS. HINT: 20mbit,50") from None


def address_of(host, prefix=PREFIX):
    return f"{prefix}.{host + 1}"


def enter(namespace):
    """This thread goes there."""
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Star:
    """The hosts, by numbers from 0 on (address_of). What `with` makes is taken down with its block; else its maker does that."""

    def __init__(self, hosts, bw, delay_ms, seconds, more=(), prefix=PREFIX):
        self.prefix = prefix
        words = [NETLAB, "up", "--hosts", str(hosts), "--prefix", prefix, "--bw", bw, "--delay", f"{delay_ms / 2}ms", "--ttl", f"{seconds:.0f}s",
                 *more]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SwarmError(f"netlab: {done.stderr.strip()}")
        self.name = done.stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def in_host(self, host, words):
        return [NETLAB, "exec", self.name, str(host), "--"] + words

    def namespace(self, host):
        return f"wl{self.name}-h{host}"

    def socket(self, host, family=socket.AF_INET):
        """A TCP socket of that host, which it stays while this process is where it was."""
        with open("/proc/self/ns/net") as here, open(f"/run/netns/{self.namespace(host)}") as there:
            enter(there)
            try:
                return socket.socket(family, socket.SOCK_STREAM)
            finally:
                enter(here)

    def stats(self):
        return json.loads(subprocess.run([NETLAB, "stats", self.name], stdout=subprocess.PIPE, check=True).stdout)

    def cut(self, a, b, one_way=False):
        """What a sends to b is dropped, and unless `one_way` what b sends to a."""
        self.set_pair(f"{a}>{b}" if one_way else f"{a}-{b}", "down")

    def mend(self, a, b):
        self.set_pair(f"{a}-{b}", "up")

    def set_pair(self, pair, link):
        subprocess.run([NETLAB, "set", self.name, pair, f"link={link}"], check=True)

    def set_host(self, host, link):
        """A host's link, as bench/netlab names it: bw=8mbit."""
        subprocess.run([NETLAB, "set", self.name, str(host), link], check=True)

    def down(self):
        subprocess.run([NETLAB, "down", self.name], check=False)


def started(star, host, words, **pipes):
    return subprocess.Popen(star.in_host(host, words), stdout=subprocess.PIPE, text=True, **pipes)


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def sockets(star, host, which):
    """The kernel's words about the established connections of a host that `which` picks (ss): {name: number} of each."""
    words = ["ss", "-tinHOn", "state", "established", which]
    shown = subprocess.run(star.in_host(host, words), stdout=subprocess.PIPE, text=True, check=True).stdout
    return [{name: float(value) for name, value in re.findall(r"\b([a-z_]+):([0-9.]+)", line)} for line in shown.splitlines()]


def lane_bytes(star, hosts):
    """(bytes that the sockets of these hosts had acknowledged, [control, bulk], bytes on the lines, the time of it).

    A listener has two ports in a row, and the first is control's.
    """
    begin = time.time()
    asked = [started(star, host, ["ss", "-tainHOn"]) for host in range(hosts)]
    on_lines = sum(star.stats()["hosts"]["tx_bytes"])
    shown = [[line.split(None, 5) for line in process.communicate()[0].splitlines()] for process in asked]
    listening = {(host, port_of(words[3])) for host, lines in enumerate(shown) for words in lines if words[0] == "LISTEN"}
    lanes = {(host, port + lane): lane for host, port in listening if (host, port + 1) in listening and (host, port - 1) not in listening
             for lane in (0, 1)}
    sums = [0, 0]
    for host, lines in enumerate(shown):
        for words in lines:
            acked = re.search(r"\bbytes_acked:(\d+)", words[-1])
            lane = lanes.get((host, port_of(words[3])), lanes.get((host_at(words[4], star.prefix), port_of(words[4]))))
            if acked and lane is not None:
                sums[lane] += int(acked[1])
    return sums, on_lines, (begin + time.time()) / 2


def port_of(address):
    text = address.rsplit(":", 1)[1]
    return int(text) if text.isdigit() else 0


def host_at(address, prefix):
    found = re.search(rf"\b{re.escape(prefix)}\.(\d+)", address)
    return int(found[1]) - 1 if found else None


def plain_tcp(star, a, b, seconds):
    """(bytes a second, round trip in ms under way) of one TCP connection from host a to host b, behind a warm-up."""
    receiver = started(star, b, [sys.executable, "-c", RECEIVE, str(TCP_PORT), str(seconds), str(0.3 * seconds)])
    receiver.stdout.readline()
    sender = started(star, a, [sys.executable, "-c", SEND, address_of(b, star.prefix), str(TCP_PORT)])
    try:
        time.sleep(0.8 * seconds)
        seen = sockets(star, a, f"dport = :{TCP_PORT}")
        text = receiver.communicate(timeout=seconds + 60)[0]
        return float(text), seen[0].get("rtt", 0.0) if seen else 0.0
    finally:
        end(receiver, sender)
