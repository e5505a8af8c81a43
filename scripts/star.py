"""Hosts of their own on this machine (bench/netlab: network namespaces), one for each process of a swarm.

Only Debian's python3 and iproute2; needs root and /dev/net/tun.
"""
import json
import os
import shutil
import subprocess

from local_swarm import ROOT, SwarmError

NETLAB = os.path.join(ROOT, "bench/netlab")


def missing():
    """Why there can be no network of our own here; None when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun is not there"
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    return None


class Star:
    """The hosts, whose addresses are 10.77.0.1 and on; who made it takes it down."""

    def __init__(self, hosts, bw, delay_ms, seconds):
        words = [NETLAB, "up", "--hosts", str(hosts), "--bw", bw, "--delay", f"{delay_ms / 2}ms", "--ttl", f"{seconds:.0f}s"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SwarmError(f"netlab: {done.stderr.strip()}")
        self.name = done.stdout.strip()

    def in_host(self, host, words):
        return [NETLAB, "exec", self.name, str(host), "--"] + words

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
