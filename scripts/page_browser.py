"""A headless Chromium, driven by chromedriver through Selenium (all Debian's), and a web site that attacks a page.

For scripts/page_test.py. Waits here are for changes of the page, which the browser tells.
"""
import base64
import http.server
import json
import shutil
import threading
import time

PATIENCE_S = 60  # a bound on a machine that hangs; it decides nothing
DESK, PHONE = (1120, 1400), (390, 2400)

# How often the page has changed since it was asked first.
COUNT_CHANGES = """
if (!window.seenChanges) {
  window.seenChanges = new EventTarget();
  seenChanges.count = 0;
  new MutationObserver(() => { ++seenChanges.count; seenChanges.dispatchEvent(new Event("change")); })
      .observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}
return seenChanges.count;
"""
# Whether it did again, within so many milliseconds.
AWAIT_CHANGE = """
const [seen, patience, tell] = arguments;
if (seenChanges.count !== seen) return tell(true);
const timer = setTimeout(() => tell(false), patience);
seenChanges.addEventListener("change", () => { clearTimeout(timer); tell(true); }, { once: true });
"""


class Browser:
    """One Chromium for all; it takes evil.example for this machine, as a name that somebody bound to it."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for word in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                     "--hide-scrollbars", "--host-resolver-rules=MAP evil.example 127.0.0.1"]:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(2 * PATIENCE_S)  # until() ends before
        self.driver.set_page_load_timeout(PATIENCE_S)

    def look(self, dark=False, size=DESK):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE})

    def open(self, address):
        self.driver.get("about:blank")  # the page that was there asks no more
        self.messages()
        self.driver.get_log("browser")
        self.driver.get(address)
        self.until("the page", self.drawn)

    def until(self, what, done):
        """What `done()` gives, once that is something: asked now, and anew whenever the page has changed."""
        end = time.monotonic() + PATIENCE_S
        while True:
            seen = self.ask(COUNT_CHANGES)
            found = done()
            if found:
                return found
            left = end - time.monotonic()
            if left <= 0 or not self.driver.execute_async_script(AWAIT_CHANGE, seen, 1000 * left):
                raise RuntimeError(f"{what} did not come within {PATIENCE_S} s")

    def ask(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def drawn(self):
        """The moment that the page shows; nothing before it shows one."""
        drawn = self.ask("return document.body && document.body.dataset.drawn")
        return drawn and float(drawn)

    def text(self, where):
        return self.ask("return document.getElementById(arguments[0]).textContent", where)

    def count(self, selector):
        return self.ask("return document.querySelectorAll(arguments[0]).length", selector)

    def figures(self):
        """What is on the page at one moment."""
        return self.ask("return { time: Number(document.body.dataset.drawn), dots: document.querySelectorAll('#map .dot[role=button]').length, tiles: "
                        "Object.fromEntries([...document.querySelectorAll('.tile')].map((t) => [t.querySelector('b').textContent, t.querySelector('strong').textContent.trim()])) }")

    def messages(self):
        """What the browser did with the network since it was asked last."""
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]

    def paints(self):
        marks = self.ask("return performance.getEntriesByType('paint').concat(performance.getEntriesByName('drawn')).map((p) => [p.name, p.startTime])")
        return ", ".join(f"{name} {ms:.0f} ms" for name, ms in marks)

    def picture(self):
        """Of all of the page, but its last line."""
        width, height = self.ask("const m = document.querySelector('main').getBoundingClientRect(); return [innerWidth, Math.ceil(m.bottom + scrollY) + 12]")
        told = {"format": "webp", "quality": 82, "captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", told)["data"])

    def end(self):
        self.driver.quit()


# Each of these asks for PAGE from a page of another origin, and reads nothing of it.
HOSTILE_PAGE = """<!DOCTYPE html><title>another site</title>
<script>
const heard = [];
const tell = (what, text) => heard.push([what, String(text)]);
async function ask(what, path, how) {
  try { tell(what, await (await fetch(PAGE + path, how)).text()); } catch (refusal) { tell(what, ""); }
}
function put(name, attributes) {
  return new Promise((done) => {
    const made = Object.assign(document.createElement(name), attributes);
    made.onload = () => { try { tell(name, made.contentDocument ? made.contentDocument.body.textContent : ""); } catch (refusal) { tell(name, ""); } done(); };
    made.onerror = () => { tell(name, ""); done(); };
    document.body.append(made);
  });
}
window.attack = async () => {
  await ask("fetch", "snapshot.json");
  await ask("fetch without asking", "snapshot.json", { mode: "no-cors" });
  await ask("events", "events", { mode: "no-cors" });
  await ask("POST", "", { method: "POST", body: "{}", mode: "no-cors" });
  await ask("POST of JSON", "snapshot.json", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
  await ask("PUT", "snapshot.json", { method: "PUT", body: "x" });
  await ask("DELETE", "", { method: "DELETE" });
  await put("script", { src: PAGE + "page.js" });
  await put("img", { src: PAGE + "fish.svg" });
  await put("link", { rel: "stylesheet", href: PAGE + "page.css" });
  await put("iframe", { src: PAGE });
  return [heard, typeof run];
};
</script><body></body>
"""


class HostileSite:
    """A web server of this machine that is not ours."""

    def __init__(self, page):
        text = HOSTILE_PAGE.replace("PAGE", json.dumps(page)).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def missing():
    for name in ["chromium", "chromedriver"]:
        if not shutil.which(name):
            return f"{name} is not installed (scripts/setup --page-tests)"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "this Python has no selenium (Debian: python3-selenium, for /usr/bin/python3; scripts/setup --page-tests)"
    return ""
