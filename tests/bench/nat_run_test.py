#!/usr/bin/env python3
"""The kinds of routers of scripts/nat-run: their rules, what must be true of them, where the hosts are, and that it is skipped by name."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from cases import Cases  # noqa: E402
from nat_homes import ALL, FACTS, KINDS, SHORT, Places, at, rules, settings, truth, untrue  # noqa: E402

ADDRESS, HOME = "203.0.113.8", "192.168.7.2"


def nft(*words, rules=""):
    """In a network of its own."""
    done = subprocess.run(["unshare", "-n", "nft", *words], input=rules, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


class NatRunTest:
    def __init__(self):
        self.cases = Cases("NatRunTest")

    def words_of_rules(self):
        plain = rules(KINDS["port-restricted"], "eth0", HOME)
        self.cases.equal("the plain one", plain, "\n".join((
            "table inet nat_run {", 'chain input { type filter hook input priority filter; iifname "eth0" ct state new,invalid drop; }',
            'chain forward { type filter hook forward priority filter; ct state invalid drop;'
            ' iifname "eth0" ct state new ct status & dnat == 0 drop; }',
            'chain out { type nat hook postrouting priority srcnat; oifname "eth0" masquerade; }', "}")))
        own = { "full-cone": f"tcp dport @mapped dnat ip to {HOME};",
               "rst": "reject with tcp reset;",
               "only-443": 'oifname "eth0" tcp dport 443 accept; oifname "eth0" drop;', "forwarded": f"tcp dport 4700-4701 dnat ip to {HOME};"}
        for name, words in own.items():
            holders = [kind for kind in KINDS if words in rules(KINDS[kind], "eth0", HOME)]
            self.cases.equal(f"who has {words}", holders, [name])
        symmetric = [kind for kind in KINDS if "masquerade random,fully-random;" in rules(KINDS[kind], "eth0", HOME)]
        self.cases.equal("who is symmetric", symmetric, ["symmetric", "all-symmetric", "launch-home"])
        self.cases.holds("a firewall maps nothing", "nat hook" not in rules(KINDS["ipv6-firewall"], "six"))

    def forgetting(self):
        for name, kind in KINDS.items():
            values = settings(kind)
            self.cases.equal(f"{name} picks no stream up", values["net.netfilter.nf_conntrack_tcp_loose"], 0)
            forgets = values.get("net.netfilter.nf_conntrack_tcp_timeout_established")
            self.cases.equal(f"{name} forgets", forgets, 120 if name == "forgetful" else None)

    def truths(self):
        plain = dict(zip(FACTS, ("passes", f"{ADDRESS} of 1", "one", "silent", "silent", "passes", None, None)))
        other = {"symmetric": dict(ports="many"), "full-cone": dict(back="passes"), "rst": dict(unasked="reset", back="reset"),
                 "cgnat": {"from": f"{ADDRESS} of 3"}, "forgetful": dict(idle="forgotten", busy="kept"), "only-443": dict(other="silent"),
                 "all-symmetric": {"ports": "many", "from": f"{ADDRESS} of 5"}, "launch-home": dict(ports="many"),
                 "forwarded": dict(unasked="passes", back="passes")}
        for name, kind in KINDS.items():
            self.cases.equal(name, truth(kind, ADDRESS), {**plain, **other.get(name, {})})
            self.cases.equal(f"{name} as it is", untrue(kind, ADDRESS, truth(kind, ADDRESS)), [])
        found = untrue(KINDS["rst"], ADDRESS, plain)
        self.cases.equal("a silent router for a RST", found, ["unasked: silent, not reset", "back: silent, not reset"])

    def places(self):
        for name, kind in KINDS.items():
            places = Places(kind, 4)
            numbers = sorted([*places.outside, *places.homes, *places.routers, *places.inner])
            self.cases.equal(name, numbers, list(range(places.hosts)))
            self.cases.equal(f"the newcomer of {name}", places.newcomer in places.homes, name == "all-symmetric")
        self.cases.equal("hosts", [Places(KINDS[name], 4).hosts for name in ("rst", "double", "cgnat", "all-symmetric", "launch-home")],
                         [8, 9, 13, 13, 8])
        self.cases.equal("homes", [list(Places(KINDS[name], 4).homes) for name in ("rst", "cgnat", "all-symmetric", "launch-home")],
                         [[5], [5, 6, 7], [1, 2, 3, 4, 5], [0]])
        self.cases.equal("addresses", (at("100.64.2", 1), at("2001:db8:1:", 11)), ("100.64.2.1", "2001:db8:1::b"))
        self.cases.equal("kinds", (len(ALL), len(SHORT), set(SHORT) < set(ALL)), (12, 5, True))

    def accepted(self):
        for name, kind in KINDS.items():
            self.cases.equal(name, nft("-c", "-f", "-", rules=rules(kind, "eth0", HOME)), (0, ""))

    def skipped(self):
        with tempfile.TemporaryDirectory() as nothing:
            words = [sys.executable, ROOT / "scripts/nat-run", "--only-nat"]
            done = subprocess.run(words, env={"PATH": nothing}, capture_output=True, text=True, check=False)
        self.cases.equal("exit code", (done.returncode, done.stdout), (77, ""))
        self.cases.holds("why", done.stderr.startswith("nat-run: skipped: "), done.stderr)

    def run(self):
        for name, case in (("EachKindHasRulesOfItsOwn", self.words_of_rules), ("WhatIsForgottenIsNotPickedUp", self.forgetting),
                           ("WhatMustBeTrueFollowsFromTheKind", self.truths), ("HostsAreNumberedInARow", self.places),
                           ("ItIsSkippedByName", self.skipped)):
            self.cases.run(name, case)
        if os.geteuid() != 0 or not (shutil.which("nft") and shutil.which("unshare")) or nft("list", "tables") != (0, ""):
            self.cases.skip("NftReadsTheRules", "needs root, nft, unshare and a kernel with nf_tables")
        else:
            self.cases.run("NftReadsTheRules", self.accepted)
        return any(failures for _, failures in self.cases.done)


if __name__ == "__main__":
    report, test = os.environ.pop("GTEST_OUTPUT", ""), NatRunTest()
    try:
        sys.exit(int(test.run()))
    finally:
        test.cases.report(report)
