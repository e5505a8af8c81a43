"""The page in a real browser: headless Chromium, driven by chromedriver through Selenium (all Debian's).

  /usr/bin/python3 scripts/page_test.py --build build/release      (scripts/setup --page-tests installs what it needs)

What it holds the page to: the figures on it are those of snapshot.json, a moment of a replay is that moment, the end has
the sums of `shoal audit`, no name is run as markup, nothing is said on the console, nothing comes from elsewhere, it is
drawn in light and dark and on a phone, and a killed peer of a live run is shown. Pictures stay in the folder of --out.
Exit code 77: no Chromium, chromedriver or Selenium is here.
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

SKIPPED = 77
PATIENCE_S = 60

failures = []
passed = 0


def check(what, holds, detail=""):
    global passed
    if holds:
        passed += 1
        return
    failures.append(f"{what}: {detail}")
    print(f"FAILED {what}: {detail}", file=sys.stderr)


def read_json(address, path):
    with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def until(what, done):
    """Asks again until it holds; the time is a bound on a machine that hangs and decides nothing."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        time.sleep(0.05)
    raise RuntimeError(f"{what} did not come within {PATIENCE_S} s")


class Program:
    """A shoal process whose lines on stderr name its page."""

    def __init__(self, words, log):
        self.log = log
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=open(log, "wb"))

    def address(self):
        def look():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.process.args} ended: {pathlib.Path(self.log).read_text()[-2000:]}")
            found = re.search(r"page (http://127\.0\.0\.1:\d+/)", pathlib.Path(self.log).read_text())
            return found and found.group(1)

        return until("the page's address", look)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()


def open_browser(dark=False, size=(1280, 1500)):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for word in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 f"--window-size={size[0]},{size[1]}", "--hide-scrollbars"]:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.set_script_timeout(PATIENCE_S)
    if dark:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600})
    return browser


def drawn(browser):
    return browser.execute_script("return document.body && document.body.dataset.drawn")


def tiles(browser):
    return browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('.tile')].map((t) => [t.querySelector('b').textContent, t.querySelector('strong').textContent]))")


def judge_console(browser, what):
    said = browser.get_log("browser")
    check(f"{what}: nothing on the console", not said, said[:5])


def judge_requests(browser, address, what):
    asked = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    foreign = [url for url in asked if not url.startswith(address) and not url.startswith(("chrome", "data:", "about:"))]
    check(f"{what}: nothing comes from elsewhere", not foreign, foreign)


def picture(browser, out, name):
    path = out / f"{name}.png"
    browser.save_screenshot(str(path))
    check(f"picture {name}", path.stat().st_size > 10_000, "is empty")


def judge_widths(browser, what):
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    check(f"{what}: nothing sticks out", wide <= 0, f"{wide} pixels")


def replay(shoal, folder, out, work):
    audit = json.loads(subprocess.run([shoal, "--json", "audit", folder], capture_output=True, text=True).stdout)
    program = Program([shoal, "watch", folder, "--page=0"], work / "watch.log")
    try:
        address = program.address()
        snapshot = read_json(address, "snapshot.json")
        count = snapshot["moment"]["count"]
        for ours, theirs in [("issued", "issued"), ("committed", "committed"), ("lost", "lost"), ("secured", "secured"), ("twice", "counted_twice"),
                             ("taken_back", "taken_back")]:
            check(f"replay's {ours} is the audit's", count[ours] == audit[theirs], f"{count[ours]} and {audit[theirs]}")
        for name, dark, size in [("replay-light", False, (1280, 1500)), ("replay-dark", True, (1280, 1500)), ("replay-phone", False, (390, 2400))]:
            browser = open_browser(dark, size)
            try:
                browser.get(address)
                until("the page", lambda: drawn(browser))
                until("the end of the run", lambda: abs(float(drawn(browser)) - snapshot["moment"]["time"]) < 0.01)
                judge_page(browser, snapshot, name)
                judge_widths(browser, name)
                picture(browser, out, name)
                if name == "replay-light":
                    first_paint(browser)
                    judge_middle(browser, address, snapshot, out)
                judge_console(browser, name)
                judge_requests(browser, address, name)
            finally:
                browser.quit()
    finally:
        program.end()


def first_paint(browser):
    ms = browser.execute_script("return performance.getEntriesByType('paint').map((p) => [p.name, p.startTime])")
    print(f"paint: {ms}")


def judge_page(browser, snapshot, what):
    moment = snapshot["moment"]
    shown = tiles(browser)
    check(f"{what}: counted twice", shown["Counted twice"].split()[0] == str(moment["count"]["twice"]), shown)
    newest = moment["loss"]["newest"]
    check(f"{what}: loss", shown["Loss"].strip() == (f"{newest:.3f}" if newest is not None else "–"), shown)
    check(f"{what}: faults", shown["Faults"].strip() == str(moment["faults"]), shown)
    serving = sum(stage["serving"] for stage in moment["stages"])
    check(f"{what}: peers", shown["Peers"].split()[0] == str(serving), shown)
    dots = browser.execute_script("return document.querySelectorAll('#map .dot[role=button]').length")
    check(f"{what}: a dot for each member", dots == len(moment["members"]), f"{dots} for {len(moment['members'])}")
    faults = sum(tale["fault"] for tale in snapshot["story"]["tales"])
    told = browser.execute_script("return document.querySelectorAll('#tales li.fault').length")
    check(f"{what}: each fault in words", told == min(faults, 100), f"{told} of {faults}")
    check(f"{what}: curves", browser.execute_script("return document.querySelectorAll('.curve canvas').length") >= 2, "none")


def judge_middle(browser, address, snapshot, out):
    span = snapshot["replay"]
    middle = (span["from"] + span["to"]) / 2
    browser.execute_script("const s = document.getElementById('slider'); s.value = 500; s.dispatchEvent(new Event('input'));")
    until("the middle", lambda: abs(float(drawn(browser)) - middle) < (span["to"] - span["from"]) / 20)
    then = read_json(address, f"moment.json?at={middle}")
    shown = tiles(browser)
    check("middle: loss", shown["Loss"].strip() == f"{then['loss']['newest']:.3f}", f"{shown} and {then['loss']}")
    check("middle: fewer were committed", then["count"]["committed"] < snapshot["moment"]["count"]["committed"], then["count"])
    picture(browser, out, "replay-middle")
    # By the keyboard alone: the first dot of a peer, then its figures.
    browser.execute_script("document.querySelector('#map .dot[role=button]').focus()")
    from selenium.webdriver.common.keys import Keys
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    check("a chosen peer tells its figures", "microbatches accepted" in browser.execute_script("return document.getElementById('peer').textContent"), "")
    browser.execute_script("document.getElementById('speed').value = '300'; document.getElementById('play').click();")
    at = float(drawn(browser))
    until("play", lambda: float(drawn(browser)) > at)


def hostile_names(shoal, work):
    """What a line says is text, whatever it is."""
    folder = work / "hostile"
    folder.mkdir()
    key = "ab" * 32
    head = {"role": "trainer", "run": key, "peer": key, "session": "abababababababab.0000000000000001"}
    evil = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    peer = "1111111111111111.0000000000000001"
    lines = [
        {"time": 1.0e9, "event": "start", **head},
        {"time": 1.0e9 + 1, "event": "member", **head, "stage": 0, "about": peer, "state": "joined", "cause": evil},
        {"time": 1.0e9 + 2, "event": "session_over", **head, "stage": 0, "about": peer, "cause": evil},
        {"time": 1.0e9 + 3, "event": "unreachable", **head, "about": peer, "cause": evil},
    ]
    (folder / "launch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    program = Program([shoal, "watch", str(folder), "--page=0"], work / "hostile.log")
    browser = open_browser()
    try:
        browser.get(program.address())
        until("the page", lambda: drawn(browser))
        browser.execute_script("document.getElementById('all-tales').click()")
        check("a name is shown", evil in browser.execute_script("return document.getElementById('tales').textContent"), "")
        check("a name makes no element", browser.execute_script("return document.querySelectorAll('main img, main script').length") == 0, "")
        check("a name is not run", browser.title != "run", browser.title)
        judge_console(browser, "hostile names")
    finally:
        browser.quit()
        program.end()


def live(shoal, text, out, work):
    """A demo without solo's part of it: launch and its peers, one of which is killed."""
    keep = work / "demo"
    program = Program([shoal, "demo", "--chaos", "none", "--seconds", "40", "--stages", "2", "--replicas", "2", "--page=0", "--keep", str(keep), "--text", text],
                      work / "demo.log")
    browser = open_browser()
    try:
        address = program.address()
        until("tokens", lambda: read_json(address, "snapshot.json")["moment"]["tokens"]["per_second"] > 0)
        browser.get(address)
        until("the page", lambda: drawn(browser))
        first = float(drawn(browser))
        until("the next moment", lambda: float(drawn(browser)) > first)
        peers = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(program.process.pid), "-f", " join "], capture_output=True, text=True).stdout.split()]
        check("the demo's peers are there", len(peers) == 4, peers)
        if peers:
            os.kill(peers[0], signal.SIGKILL)
            killed = time.monotonic()
            until("the killed peer", lambda: browser.execute_script("return document.querySelectorAll('#map .dot.silent, #map .dot.lost').length"))
            print(f"killed peer shown after {time.monotonic() - killed:.2f} s")
            until("its fault in words", lambda: "was lost" in browser.execute_script("return document.getElementById('tales').textContent"))
        picture(browser, out, "live")
        judge_console(browser, "live")
        judge_requests(browser, address, "live")
    finally:
        browser.quit()
        program.end()


def missing():
    for name in ["chromium", "chromedriver"]:
        if not shutil.which(name):
            return f"{name} is not installed (scripts/setup --page-tests)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "this Python has no selenium (Debian: python3-selenium, for /usr/bin/python3)"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of the build: build/release")
    parser.add_argument("--text", help="what the demo trains on (default: that of scripts/setup)")
    parser.add_argument("--events", help="a folder of event files to replay (default: those of the demo)")
    parser.add_argument("--out", help="folder for pictures (default: BUILD/page-pictures)")
    arguments = parser.parse_args()
    lacks = missing()
    if lacks:
        print(f"skipped: {lacks}")
        return SKIPPED
    build = pathlib.Path(arguments.build).resolve()
    shoal = str(build / "bin/shoal")
    out = pathlib.Path(arguments.out or build / "page-pictures")
    out.mkdir(parents=True, exist_ok=True)
    text = arguments.text or str(build.parent / "deps/text/jargon.txt")
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        hostile_names(shoal, work)
        live(shoal, text, out, work)
        replay(shoal, arguments.events or str(work / "demo/events"), out, work)
    print(f"pictures in {out}")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
