"""Tests in Python, named, said and reported like those of GoogleTest, so that scripts/run_tests.py counts them."""
import json
import pathlib
import time


class Cases:
    def __init__(self, suite):
        self.suite = suite
        self.done = []  # (name, failures or None where it was skipped)
        self.failures = []

    def run(self, name, case):
        print(f"[ RUN      ] {self.suite}.{name}", flush=True)
        self.failures, begin = [], time.monotonic()
        try:
            case()
        except Exception as failure:  # what a browser or a process does not do is a failure of this case alone
            self.fail(f"{type(failure).__name__}: {failure}")
        word = "[  FAILED  ]" if self.failures else "[       OK ]"
        print(f"{word} {self.suite}.{name} ({1000 * (time.monotonic() - begin):.0f} ms)", flush=True)
        self.done.append((name, self.failures))

    def skip(self, name, why):
        print(f"[ RUN      ] {self.suite}.{name}\n{why}\n[  SKIPPED ] {self.suite}.{name} (0 ms)", flush=True)
        self.done.append((name, None))

    def fail(self, text):
        self.failures.append(text)
        print(text, flush=True)

    def holds(self, what, holds, detail=""):
        if not holds:
            self.fail(f"{what}: {detail}")

    def equal(self, what, found, wanted):
        self.holds(what, found == wanted, f"{found!r}, not {wanted!r}")

    def report(self, wish):
        """`wish`: GTEST_OUTPUT, as it was set."""
        if not wish.startswith("json:"):
            return
        cases = [{"name": name, "status": "RUN", "result": "SKIPPED" if failures is None else "COMPLETED",
                  **({"failures": [{"failure": text} for text in failures]} if failures else {})} for name, failures in self.done]
        pathlib.Path(wish[5:]).write_text(json.dumps({"testsuites": [{"name": self.suite, "testsuite": cases}]}))
