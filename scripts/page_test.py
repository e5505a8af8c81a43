"""The page in a real browser: headless Chromium, driven by chromedriver through Selenium (all Debian's).

  /usr/bin/python3 scripts/page_test.py --build build/release      (scripts/setup --page-tests installs what it needs)

A scripted swarm of real processes trains, one of its peers is killed, and it ends. Held to: the figures on the page are
those of snapshot.json, the killed peer is shown, other sites are refused, the replay of the swarm's event files has the
sums of `shoal audit`, a moment of it is that moment, no name is run as markup, nothing is said on the console, nothing
comes from elsewhere, and it is drawn in light and dark and on a phone. Pictures stay in the folder of --out.
Exit code 77: no Chromium, chromedriver or Selenium is here. GTEST_OUTPUT=json:FILE: a report as GoogleTest's.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from cases import Cases
from local_swarm import ROOT, Swarm, make_text, run_file, say
from page_browser import DESK, PATIENCE_S, PHONE, Browser, HostileSite, missing

SKIPPED = 77
SUITE = "BrowserTest"
PEER_NAME = "Zoe's 4090"


def read(address, path):
    with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as answer:
        return answer.read()


def read_json(address, path):
    return json.loads(read(address, path))


def page_in(said):
    found = re.search(r"page (http://127\.0\.0\.1:\d+/)", said)
    return found and found.group(1)


class Watch:
    """`shoal watch` of a folder, on a port of its own."""

    def __init__(self, shoal, folder, options=()):
        self.process = subprocess.Popen([shoal, "watch", folder, "--page=0", *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:  # it says little more
            said.append(line)
            self.address = page_in(line)
            if self.address:
                return
        raise RuntimeError(f"watch ended: {''.join(said)[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


class PageTest:
    def __init__(self, arguments, work):
        self.cases = Cases(SUITE)
        self.build = pathlib.Path(arguments.build).resolve()
        self.shoal = str(self.build / "bin/shoal")
        self.out = pathlib.Path(arguments.out or self.build / "page-pictures")
        self.out.mkdir(parents=True, exist_ok=True)
        self.work, self.events, self.browser, self.swarm = work, arguments.events, None, None
        self.watch_options = ["--run", arguments.run] if arguments.run else []

    def run(self):
        self.browser = Browser()
        try:
            self.cases.run("WhatAnybodyWroteIsText", self.hostile_names)
            if not self.events:
                self.live()
            self.replay()
        finally:
            self.browser.end()

    # ---- judged of every page ----
    def judge(self, address):
        said = self.browser.driver.get_log("browser")
        self.cases.holds("nothing is said on the console", not said, said[:5])
        asked = {m["params"]["request"]["url"] for m in self.browser.messages() if m["method"] == "Network.requestWillBeSent"}
        self.cases.equal("nothing comes from elsewhere", [url for url in asked if not url.startswith((address, "data:"))], [])
        wide = self.browser.ask("return document.documentElement.scrollWidth - window.innerWidth")
        self.cases.holds("nothing sticks out", wide <= 0, f"{wide} pixels")

    def judge_figures(self, moment, shown):
        tiles = shown["tiles"]
        self.cases.equal("counted twice", tiles["Counted twice"].split()[0], str(moment["count"]["twice"]))
        newest = moment["loss"]["newest"]
        self.cases.equal("loss", tiles["Loss"], "–" if newest is None else f"{newest:.3f}")
        self.cases.equal("faults", tiles["Faults"], str(moment["faults"]))
        self.cases.equal("peers", tiles["Peers"].split()[0], str(sum(stage["serving"] for stage in moment["stages"])))
        self.cases.equal("a dot for each member", shown["dots"], len(moment["members"]))

    def picture(self, name):
        path = self.out / f"{name}.webp"
        path.write_bytes(self.browser.picture())
        self.cases.holds(f"the picture {name}", path.stat().st_size > 10_000, "is empty")

    # ---- what a line says is text, whatever it is ----
    def hostile_names(self):
        folder = self.work / "hostile"
        folder.mkdir()
        key, peer = "ab" * 32, "1111111111111111.0000000000000001"
        head = {"role": "trainer", "run": key, "peer": key, "session": "abababababababab.0000000000000001"}
        evil = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
        lines = [
            {"time": 1.0e9, "event": "start", **head},
            {"time": 1.0e9 + 1, "event": "member", **head, "stage": 0, "about": peer, "state": "joined", "cause": evil},
            {"time": 1.0e9 + 2, "event": "session_over", **head, "stage": 0, "about": peer, "cause": evil},
            {"time": 1.0e9 + 3, "event": "unreachable", **head, "about": peer, "cause": evil},
        ]
        (folder / "launch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with Watch(self.shoal, str(folder)) as watch:
            self.browser.look()
            self.browser.open(watch.address)
            self.browser.ask("document.getElementById('all-tales').click()")
            self.cases.holds("it is shown", evil in self.browser.text("tales"), self.browser.text("tales"))
            self.cases.equal("it makes no element", self.browser.count("main img, main script"), 0)
            self.cases.holds("it is not run", self.browser.driver.title != "run", self.browser.driver.title)
            self.judge(watch.address)

    # ---- a run that trains ----
    def live(self):
        text = self.work / "text"
        make_text(text)
        folder = self.work / "swarm"
        folder.mkdir()
        with Swarm(str(self.build / "bin"), str(folder), run_file(text, "diloco", 2, 2), launch_options=["--page=0"]) as swarm:
            self.swarm = swarm
            swarm.start_launch()
            for peer in range(4):
                swarm.add_peer(stage=peer % 2, options=["--page=0", "--name", PEER_NAME] if peer == 1 else ())
            swarm.until(lambda: page_in(swarm.launch.said()), PATIENCE_S, "the page's address")
            address = page_in(swarm.launch.said())
            self.cases.run("ARunIsShownWhileItTrains", lambda: self.training(address))
            self.cases.run("APeersPageHasWhatItIsTold", self.peers_page)
            self.cases.run("AKilledPeerIsShown", lambda: self.killed(address))
            self.cases.run("OtherSitesAreRefused", lambda: self.other_sites(address))
            self.cases.run("TheEndIsShown", lambda: self.end(address))
            self.events = swarm.events

    def training(self, address):
        swarm = self.swarm
        swarm.until(lambda: len(swarm.commits) > 50 and all(peer.serving for peer in swarm.peers), PATIENCE_S, "a swarm that trains")
        self.browser.open(address)
        print(f"first paint of a run that trains: {self.browser.paints()}")
        first = self.browser.drawn()
        self.browser.until("the next moment", lambda: self.browser.drawn() > first)
        self.browser.until("peers that serve", lambda: self.browser.figures()["tiles"]["Peers"].split()[0] == "4")
        moment, shown = self.browser.until("the moment that snapshot.json has, too", lambda: self.same_moment(address))
        self.judge_figures(moment, shown)
        self.cases.equal("nothing is counted twice", moment["count"]["twice"], 0)
        self.cases.equal("its health", read(address, "healthz"), b"ok\n")
        self.judge(address)

    def peers_page(self):
        swarm = self.swarm
        peer = swarm.peers[1]
        swarm.until(lambda: page_in(peer.process.said()), PATIENCE_S, "the address of a peer's page")
        address = page_in(peer.process.said())
        self.browser.open(address)

        def own_row():
            moment = read_json(address, "snapshot.json")["moment"]
            rows = [member for member in moment["members"] if member["peer"] == peer.session[:8] == moment["seen_by"]["peer"]]
            return rows and rows[0]["microbatches"] and rows[0]["sent"] and moment

        moment = self.browser.until("its work and its bytes", own_row)
        self.cases.equal("no count is claimed", (moment["count"], moment["faults"]), (None, None))
        self.cases.equal("its members", sum(stage["serving"] for stage in moment["stages"]), 4)
        self.browser.until("loss and rate", lambda: self.browser.figures()["tiles"]["Loss"] != "–" and self.browser.figures()["tiles"]["Tokens a second"] != "0")
        self.cases.holds("its name", PEER_NAME in self.browser.text("work"), self.browser.text("work"))
        self.cases.holds("no tile says what it does not see", "Counted twice" not in self.browser.figures()["tiles"], self.browser.figures())
        self.picture("peer")
        self.judge(address)

    def same_moment(self, address):
        """Each says a moment twice a second: until they said the same one."""
        moment, shown = read_json(address, "snapshot.json")["moment"], self.browser.figures()
        return abs(moment["time"] - shown["time"]) < 1e-6 and (moment, shown)

    def killed(self, address):
        swarm = self.swarm
        victim = swarm.peers[0]
        dot = f"#map .dot[aria-label^='Peer {victim.session[:8]} '].dot"
        self.browser.open(address)
        self.browser.until("its dot", lambda: self.browser.count(dot))
        self.cases.equal("it has a dot", self.browser.count(dot), 1)
        swarm.kill(victim)
        begin = time.monotonic()
        self.browser.until("a dot that is silent or lost", lambda: self.browser.ask(
            "return ['silent', 'lost'].some((look) => document.querySelector(arguments[0]).classList.contains(look))", dot))
        print(f"a killed peer is shown after {time.monotonic() - begin:.2f} s")
        self.browser.until("its fault in words", lambda: f"Peer {victim.session[:8]} of stage 0 was lost" in self.browser.text("tales"))
        self.cases.holds("faults", int(self.browser.figures()["tiles"]["Faults"]) > 0, self.browser.figures())
        self.cases.holds("a name beside a key", PEER_NAME in self.browser.text("work"), self.browser.text("work"))
        self.picture("live")
        self.judge(address)

    # What the browser itself sends for other sites, and under a foreign name.
    def other_sites(self, address):
        driver, port = self.browser.driver, int(address.rstrip("/").rpartition(":")[2])
        refused = 0
        with HostileSite(address) as site:
            for host in "127.0.0.1", "evil.example":  # another origin of the same site, and another site
                driver.get(f"http://{host}:{site.port}/")
                self.browser.messages()
                heard, run = driver.execute_async_script("attack().then(arguments[0])")
                self.cases.equal(f"{host} hears nothing", [text for _, text in heard if text], [])
                self.cases.equal(f"{host} runs nothing of ours", run, "undefined")
                answers = self.answers_of(address)
                self.cases.equal(f"{host} is refused", [answer for answer in answers if answer not in (403, 405)], [])
                refused += len(answers)
            driver.get(f"http://evil.example:{port}/")
            self.cases.holds("a name that was bound to this machine", "not the host" in driver.page_source, driver.page_source[:200])
            refused += 1
        print(f"{refused} requests of other sites were answered, each with a refusal")
        self.cases.holds("other sites asked", refused > 20, refused)

    def answers_of(self, address):
        """Each status that came from there, whether or not the browser gave it to the page that had asked."""
        messages = [(m["method"], m["params"]) for m in self.browser.messages()]
        ours = {m["requestId"] for method, m in messages if method == "Network.requestWillBeSent" and m["request"]["url"].startswith(address)}
        return [m["statusCode"] for method, m in messages if method == "Network.responseReceivedExtraInfo" and m["requestId"] in ours]

    def end(self, address):
        self.browser.open(address)
        self.swarm.kill(self.swarm.peers[0])
        self.swarm.peers.pop(0)  # of those that live each must end in order
        self.cases.equal("each process ends in order", self.swarm.finish(PATIENCE_S), [])
        self.browser.until("a page that says so", lambda: re.search("ended|has gone", self.browser.text("state")))

    # ---- the same, from its files ----
    def replay(self):
        audit = json.loads(subprocess.run([self.shoal, "--json", "audit", self.events], stdout=subprocess.PIPE, check=False).stdout)
        with Watch(self.shoal, self.events, self.watch_options) as watch:
            address = watch.address
            snapshot = read_json(address, "snapshot.json")
            if shutil.which("promtool"):
                self.cases.run("PromtoolReadsTheMetrics", lambda: self.promtool(address))
            else:
                self.cases.skip("PromtoolReadsTheMetrics", "promtool is not installed (Debian: prometheus)")
            self.cases.run("AReplayHasTheSumsOfTheAudit", lambda: self.sums(audit, snapshot["moment"]["count"]))
            for name, dark, size in [("light", False, DESK), ("dark", True, DESK), ("phone", False, PHONE)]:
                self.cases.run(f"AReplayIsDrawnIn{name.title()}" if name != "phone" else "AReplayIsDrawnOnAPhone",
                               lambda: self.drawn(address, snapshot, name, dark, size))
            self.browser.look()
            self.browser.open(address)
            self.cases.run("AMomentIsThatMoment", lambda: self.middle(address, snapshot))
            self.cases.run("TheKeyboardChoosesAPeer", self.keyboard)
            self.cases.run("AReplayGoesOn", self.play)

    def sums(self, audit, count):
        for ours, theirs in [("issued", "issued"), ("committed", "committed"), ("committed_tokens", "committed_tokens"), ("lost", "lost"), ("secured", "secured"),
                             ("twice", "counted_twice"), ("taken_back", "taken_back")]:
            if theirs in audit:
                self.cases.equal(ours, count[ours], audit[theirs])
        self.cases.holds("something was committed", count["committed"] > 0, count)

    def promtool(self, address):
        told = subprocess.run(["promtool", "check", "metrics"], input=read(address, "metrics"), capture_output=True, check=False)
        self.cases.equal("its code", told.returncode, 0)
        self.cases.equal("what it says", told.stderr.decode(), "")

    def drawn(self, address, snapshot, name, dark, size):
        self.browser.look(dark, size)
        self.browser.open(address)
        self.browser.until("the end of the run", lambda: abs(self.browser.drawn() - snapshot["moment"]["time"]) < 0.01)
        print(f"first paint of a replay: {self.browser.paints()}")
        self.judge_figures(snapshot["moment"], self.browser.figures())
        faults = sum(tale["fault"] for tale in snapshot["story"]["tales"])
        self.cases.equal("each fault in words", self.browser.count("#tales li.fault"), min(faults, 100))
        self.cases.holds("curves are drawn", self.browser.count(".curve canvas") >= 2, self.browser.count(".curve canvas"))
        self.picture(f"replay-{name}")
        self.judge(address)

    def middle(self, address, snapshot):
        span = snapshot["replay"]
        middle = (span["from"] + span["to"]) / 2
        self.browser.ask("const s = document.getElementById('slider'); s.value = 500; s.dispatchEvent(new Event('input'));")
        self.browser.until("the middle", lambda: abs(self.browser.drawn() - middle) < (span["to"] - span["from"]) / 20)
        then = read_json(address, f"moment.json?at={middle}")
        self.judge_figures(then, self.browser.figures())
        self.cases.holds("fewer were committed", then["count"]["committed"] < snapshot["moment"]["count"]["committed"], then["count"])
        self.picture("replay-middle")

    def keyboard(self):
        from selenium.webdriver.common.keys import Keys

        self.browser.ask("document.querySelector('#map .dot[role=button]').focus()")
        self.browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.cases.holds("its figures are told", "microbatches accepted" in self.browser.text("peer"), self.browser.text("peer"))

    def play(self):
        self.browser.ask("document.getElementById('speed').value = '300'; document.getElementById('play').click();")
        at = self.browser.drawn()
        self.browser.until("a later moment", lambda: self.browser.drawn() > at)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), metavar="DIR", help="folder of the build")
    parser.add_argument("--events", metavar="DIR", help="event files to replay, in the place of a swarm of its own")
    parser.add_argument("--run", metavar="RUN.toml", help="of these events")
    parser.add_argument("--out", metavar="DIR", help="folder for pictures (default: BUILD/page-pictures)")
    arguments = parser.parse_args()
    report = os.environ.pop("GTEST_OUTPUT", "")
    lacks = missing()
    if lacks:
        cases = Cases(SUITE)
        cases.skip("ThePageInABrowser", lacks)
        cases.report(report)
        return SKIPPED
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        test = PageTest(arguments, pathlib.Path(name))
        try:
            test.run()
        finally:
            test.cases.report(report)
    failed = sum(bool(failures) for _, failures in test.cases.done)
    skipped = sum(failures is None for _, failures in test.cases.done)
    say(f"pictures in {test.out}")
    print(f"{len(test.cases.done) - failed - skipped} passed, {failed} failed, {skipped} skipped in {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
