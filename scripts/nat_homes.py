"""Homes behind routers: kinds of routers as rules of nftables, hosts of a star made homes and routers, and what plain TCP meets there.

A home is a host whose own line is down and which a veth leads to its router, another host of the star (star.py): so delays and rates stay the
star's, which takes all of it down. Needs nft. The rows that only IPv6 can show lie on plain veth, since a star has none.
"""
import contextlib
import dataclasses
import os
import re
import select
import socket
import time

from harness import output_of
from local_swarm import Started

PREFIX = "203.0.113"        # RFC 5737: the program takes it for public
MAPPING_PREFIX = "5.6.7"    # miniupnpd maps nothing where the outer address is one of RFC 5737
HOME, CARRIER = "192.168.7", "100.64"
SIX_OUTER, SIX_HOME = "2001:db8:1:", "2001:db8:7:"
PORT, OTHER_PORT, HOME_PORT = 7000, 7002, 7001  # outside, and the home's own where none is forwarded
PASSES_S, SILENT_S = 5.0, 0.8
FORGETS_S, REST_S = 2, 3.5  # while what a router forgets is looked at


@dataclasses.dataclass(frozen=True)
class Kind:
    masquerade: str = "masquerade"
    refusal: str = "drop"       # of what comes unasked
    cone: bool = False          # whoever dials a mapped port is let in
    layers: int = 1             # routers in a row
    homes: int = 1
    behind: str = "some"        # peers beside others that can be dialled; "all" peers, each with a router of its own; "launch"
    only: int | None = None     # the one port let out
    forward: int | None = None  # this port and the next are the home's, as its owner told the router
    established_s: int = 0      # when a silent stream is forgotten; 0: as the kernel has it, days
    maps: bool = False          # ports for whoever asks, as miniupnpd does it
    prefix: str = PREFIX        # of the addresses outside
    six: bool = False           # no NAT: a firewall in front of public addresses


SYMMETRIC = "masquerade random,fully-random"
KINDS = {"port-restricted": Kind(), "symmetric": Kind(SYMMETRIC), "full-cone": Kind(cone=True),
         "rst": Kind(refusal="reject with tcp reset"), "double": Kind(layers=2), "cgnat": Kind(layers=2, homes=3),
         "forgetful": Kind(established_s=120), "ipv6-firewall": Kind(six=True), "only-443": Kind(only=443), "forwarded": Kind(forward=4700),
         "mapped": Kind(maps=True, prefix=MAPPING_PREFIX), "all-symmetric": Kind(SYMMETRIC, homes=5, behind="all"), "launch-home": Kind(SYMMETRIC, behind="launch")}
ALL = [name for name, kind in KINDS.items() if not kind.forward]
SHORT = ("symmetric", "rst", "cgnat", "ipv6-firewall", "all-symmetric")


FACTS = ("out", "from", "ports", "unasked", "back", "other", "idle", "busy")


def rules(kind, outer, home=None):
    """What nft reads. `outer`: the interface outwards; `home`: who gets what comes to a mapped port. An invalid packet would leave unmapped."""
    chains = {"input": f'type filter hook input priority filter; iifname "{outer}" ct state new,invalid {kind.refusal};',
              "forward": "type filter hook forward priority filter; ct state invalid drop;"
                         f' iifname "{outer}" ct state new ct status & dnat == 0 {kind.refusal};'}
    if not kind.six:
        chains["out"] = f'type nat hook postrouting priority srcnat; oifname "{outer}" {kind.masquerade};'
    if kind.only:
        chains["forward"] += f' oifname "{outer}" tcp dport {kind.only} accept; oifname "{outer}" drop;'
    if kind.cone or kind.forward:
        ports = "@mapped" if kind.cone else f"{kind.forward}-{kind.forward + 1}"
        chains["back"] = f'type nat hook prerouting priority dstnat; iifname "{outer}" tcp dport {ports} dnat ip to {home};'
    if kind.cone:
        chains["forward"] += f' oifname "{outer}" tcp flags syn add @mapped {{ tcp sport }};'
    mapped = ["set mapped { type inet_service; flags dynamic,timeout; timeout 2m; }"] if kind.cone else []
    table = ["table inet nat_run {", *mapped, *(f"chain {name} {{ {text} }}" for name, text in chains.items()), "}"]
    return "\n".join(table + ([MAPPED_TABLE] if kind.maps else []))


# Where miniupnpd writes what it maps, by the names that it has for these chains.
MAPPED_TABLE = """table inet filter {
chain miniupnpd { }
chain prerouting_miniupnpd { }
chain postrouting_miniupnpd { }
chain forward { type filter hook forward priority filter; jump miniupnpd; }
chain prerouting { type nat hook prerouting priority dstnat; jump prerouting_miniupnpd; }
chain postrouting { type nat hook postrouting priority srcnat; jump postrouting_miniupnpd; }
}"""


def settings(kind):
    """Of a router's kernel. Without `tcp_loose` at 0 a forgotten stream is picked up again, and nothing is proved."""
    of = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1, "net.netfilter.nf_conntrack_tcp_loose": 0}
    return {**of, "net.netfilter.nf_conntrack_tcp_timeout_established": kind.established_s} if kind.established_s else of


def truth(kind, outer):
    """What plain TCP must meet, FACTS. `outer`: the addresses of the outermost routers, or of a home that needs none.

    `out`: a home dials outwards, and bytes go both ways; `from` there, how many homes; `ports`: by which one port of the home appears to two others;
    `unasked`: the home's listening port is dialled; `back`: the port that it appeared by, by a third; `other`: it dials another port; `idle`,
    `busy`: streams, behind the time after which a silent one is forgotten.
    """
    unasked, forgets = "reset" if "reset" in kind.refusal else "silent", kind.established_s > 0
    found = ("passes", f"{outer} of {kind.homes}", "many" if "random" in kind.masquerade else "one", "passes" if kind.forward else unasked,
             "passes" if kind.cone or kind.forward else unasked, "silent" if kind.only else "passes", "forgotten" if forgets else None,
             "kept" if forgets else None)
    return dict(zip(FACTS, found))


class Places:
    """Host numbers of a star. Launch is 0 and `peers` begin behind it, then a newcomer: so the swarm numbers its own. Which of these are homes, and
    which are outside, follows from the kind. Behind them: what else is outside (a relay; hosts that dial and are dialled), routers, the outermost first."""

    def __init__(self, kind, peers):
        joining = range(1, 1 + peers + (kind.homes if kind.behind == "some" else 0))
        self.newcomer = joining.stop
        self.homes = {"some": joining[peers:], "all": range(1, self.newcomer + 1), "launch": range(1)}[kind.behind]
        self.other = range(self.newcomer + 1, self.newcomer + 1 + {"some": 0, "all": 2, "launch": 1}[kind.behind])
        self.outside = [host for host in (*range(self.newcomer + 1), *self.other) if host not in self.homes]
        first = self.other.stop
        self.routers = range(first, first + (kind.homes if kind.behind == "all" else 1))
        self.inner = range(self.routers.stop, self.routers.stop + (kind.homes if kind.layers == 2 else 0))
        self.hosts = self.inner.stop


def at(net, number):
    return f"{net}:{number:x}" if ":" in net else f"{net}.{number}"


class Homes:
    """The places of a star made what they are."""

    def __init__(self, star, kind, places):
        self.star, self.kind, self.places = star, kind, places
        self.family = socket.AF_INET6 if kind.six else socket.AF_INET
        if kind.six:
            self.lay_six()
        for router in places.routers:
            self.become_router(router, "six" if kind.six else "eth0", at(HOME, 2))
        for number, home in enumerate(places.homes):
            router = places.routers[number % len(places.routers)]
            if kind.layers == 2:
                router = places.inner[number]
                self.link(router, places.routers[0], f"{CARRIER}.{number}")
                self.become_router(router, "wan")
            self.link(home, router, SIX_HOME if kind.six else HOME)

    def shell(self, host, *lines):
        return output_of(self.star.in_host(host, ["sh", "-ec", "\n".join(lines)]), f"setting up host {host}")

    def become_router(self, host, outer, home=None):
        values = " ".join(f"{name}={value}" for name, value in settings(self.kind).items())
        self.shell(host, f"sysctl -qw {values}", "nft -f - <<END", rules(self.kind, outer, home), "END")

    def link(self, below, above, net):
        """A veth is all that leads from `below` outwards: to `above`."""
        size, nodad, inner = 64 if ":" in net else 24, "nodad" if ":" in net else "", f"h{below}"
        self.shell(below, "ip addr flush dev eth0", "ip link set eth0 down",
                   f"ip link add wan type veth peer name {inner} netns {self.star.namespace(above)}",
                   f"ip addr add {at(net, 2)}/{size} dev wan {nodad}", "ip link set wan up", f"ip route add default via {at(net, 1)}")
        self.shell(above, f"ip addr add {at(net, 1)}/{size} dev {inner} {nodad}", f"ip link set {inner} up")

    def lay_six(self):
        """The outside by IPv6, beside the star: a bridge at the router, whose rules see only what it routes to homes."""
        router = self.places.routers[0]
        self.shell(router, "ip link add six type bridge", f"ip addr add {self.six(router)}/64 dev six nodad", "ip link set six up",
                   "sysctl -qw net.bridge.bridge-nf-call-ip6tables=0 2>&- || true")  # else what crosses the bridge is seen too
        members = self.places.outside
        for host in members:
            self.shell(host, f"ip link add six type veth peer name h{host} netns {self.star.namespace(router)}",
                       f"ip addr add {self.six(host)}/64 dev six nodad", "ip link set six up", f"ip route add default via {self.six(router)}")
        self.shell(router, *(f"ip link set h{host} master six up" for host in members))

    @staticmethod
    def six(host):
        return at(SIX_OUTER, host + 1)

    def address(self, host):
        return self.six(host) if self.kind.six else at(self.kind.prefix, host + 1)

    @property
    def outer(self):
        return at(SIX_HOME, 2) if self.kind.six else self.address(self.places.routers[0])

    @property
    def outers(self):
        return self.outer if self.kind.six else " ".join(sorted(map(self.address, self.places.routers)))

    # ---- what plain TCP meets ----
    def made(self, host, port=0):
        made = self.star.socket(host, self.family)
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        made.bind(("", port))
        return made

    def listening(self, host, port):
        listener = self.made(host, port)
        listener.listen()
        listener.settimeout(PASSES_S)
        return listener

    def dial(self, host, address, port, wanted, source=0):
        """How it went, and the stream. Silence is waited for shortly where it is `wanted`."""
        stream = self.made(host, source)
        stream.settimeout(PASSES_S if wanted == "passes" else SILENT_S)
        try:
            stream.connect((address, port))
            return "passes", stream
        except ConnectionRefusedError:
            return "reset", stream
        except TimeoutError:
            return "silent", stream
        except OSError as error:
            return error.strerror, stream

    def met(self):
        """As `truth` has it."""
        kind, places, wanted = self.kind, self.places, truth(self.kind, self.outers)
        one, two, third = places.outside[:3]
        found, port, own = dict.fromkeys(wanted), kind.only or PORT, kind.forward or HOME_PORT
        if kind.established_s:
            self.forget_after(FORGETS_S)
        with contextlib.ExitStack() as stack:
            keep = stack.enter_context
            first, second, _ = (keep(self.listening(host, port)) for host, port in ((one, port), (two, port), (one, OTHER_PORT)))
            keep(self.listening(places.homes[0], own))
            found["unasked"] = self.dial(third, self.outer, own, wanted["unasked"])[0]
            found["out"], stream = self.dial(places.homes[0], self.address(one), port, "passes", own)
            if found["out"] != "passes":
                return found
            accepted, seen = first.accept()
            carried = passes(stream, accepted) and passes(accepted, stream)
            found["out"] = "passes" if carried else "no bytes"
            keep(self.dial(places.homes[0], self.address(two), port, "passes", own)[1])
            found["ports"] = "one" if second.accept()[1][1] == seen[1] else "many"
            found["back"] = self.dial(third, self.outer, seen[1], wanted["back"])[0]
            found["other"] = self.dial(places.homes[0], self.address(one), OTHER_PORT, wanted["other"])[0]
            others = [word for word, _ in (self.dial(home, self.address(one), port, "passes") for home in places.homes[1:]) if word == "passes"]
            hosts = {seen[0], *(first.accept()[1][0] for _ in others)}
            found["from"] = f"{' '.join(sorted(hosts))} of {1 + len(others)}"
            if kind.established_s:
                busy = keep(self.dial(places.homes[0], self.address(one), port, "passes")[1])
                found.update(self.rested(stream, accepted, busy, keep(first.accept()[0])))
                self.forget_after(kind.established_s)
        return found

    def rested(self, idle, idle_end, busy, busy_end):
        until = time.monotonic() + REST_S
        kept, heard = True, []
        while kept and not heard and time.monotonic() < until:
            kept = passes(busy, busy_end)
            heard = select.select([idle_end], [], [], 0.3)[0]  # nothing is said on the idle one
        return {"idle": "kept" if passes(idle, idle_end, SILENT_S) else "forgotten", "busy": "kept" if kept else "forgotten"}

    def forget_after(self, seconds):
        self.shell(self.places.routers[0], f"sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established={seconds}")


class Mapper:
    """miniupnpd on the first home's router."""

    def __init__(self, homes, folder):
        self.star, self.router = homes.star, homes.places.routers[0]
        options = dict(ext_ifname="eth0", listening_ip=f"h{homes.places.homes[0]}", enable_natpmp="yes", enable_upnp="no", min_lifetime=120,
                       max_lifetime=86400, secure_mode="yes", allow="1024-65535 0.0.0.0/0 1024-65535")
        path = os.path.join(folder, "mapper.conf")
        with open(path, "w") as file:
            file.writelines(f"{name} {value}\n" if name == "allow" else f"{name}={value}\n" for name, value in options.items())
        self.process = Started(self.star.in_host(self.router, ["miniupnpd", "-d", "-f", path, "-P", path + ".pid"]), os.path.join(folder, "mapper"))

    def forwarded(self):
        words = ["nft", "list", "chain", "inet", "filter", "prerouting_miniupnpd"]
        return [int(port) for port in re.findall(r"dport (\d+) dnat", output_of(self.star.in_host(self.router, words), "listing what is mapped"))]


def passes(one, other, seconds=PASSES_S):
    """Whether a byte comes from one end of a stream to the other."""
    one.sendall(b"x")
    other.settimeout(seconds)
    try:
        return other.recv(1) == b"x"
    except OSError:
        return False


def untrue(kind, outer, found):
    """Where the routers are not what their kind says."""
    return [f"{name}: {found[name]}, not {wanted}" for name, wanted in truth(kind, outer).items() if found[name] != wanted]
