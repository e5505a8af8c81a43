#!/usr/bin/env python3
"""Runs the test programs of a build, counts per program, and ends with "N passed, M failed[, K skipped]".

They are GoogleTest's, or report as those do (GTEST_OUTPUT).

A program that crashes, hangs or reports nothing counts as one failure more than what it had reported until then.
A few cases that failed run once more at the end, each with the machine to itself. One that passes then was spoiled by what ran beside
it: it counts as passed and is named as "passed only alone". More than AGAIN_MAX of them are no accident, and none is run again.
Usage: run_tests.py --build DIR [--only FOLDER...] [--more LABEL DIR [TARGET...]]... [--checks] [--swarms] [--package] [--fuzz SECONDS]
                    [--planted]
  --more     the same from another build (all of it, or these programs), shown under this label. Programs share the cores,
             but those of --build that start swarms of processes: these have the machine to themselves, one after the other
  --checks   scripts/format --check, scripts/house --check, scripts/self-test --check and, beside the programs of --more,
             scripts/siege --short --no-rates count as a test each
  --swarms   scripts/samples --check, two minutes, and scripts/nat-run --short count as a test each
  --package  scripts/package counts as a test: whether what it packs is small and needs nothing that a clean system lacks
  --fuzz     scripts/fuzz for so long, where each target counts as a test
  --planted  at the end the whole of scripts/self-test, where each bug counts as a test
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SECONDS_MAX = 900  # for one program
SLOW_FACTOR = 3    # for one that is instrumented or not optimised
SKIPPED = 77       # what a script says that cannot judge
VIRTUAL = ("sim",) # on virtual time, in one process: in shards
ALONE = ("browser", "live", "swarm")  # start processes and wait for what these do in time
SHARDS = 2
SIEGE_S = 200      # what scripts/siege --short takes
AGAIN_MAX = 5


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []
        self.again = {}  # what failed -> a call that runs it once more, for cases of programs that ended by themselves

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.again |= other.again

    def text(self):
        line = f"{self.passed} passed, {len(self.failed)} failed"
        return line + (f", {len(self.skipped)} skipped" if self.skipped else "")


def registered(build):
    """Name, command and folder of every test that CMake knows, in its order."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = json.loads(listing.stdout)["tests"]
    folders = [[value for entry in test["properties"] if entry["name"] == "LABELS" for value in entry["value"]] for test in tests]
    return [(test["name"], test.get("command", [None]), folder[0]) for test, folder in zip(tests, folders)]


def skip_reasons(output):
    """Test name -> what it said when it skipped itself. GoogleTest 1.12 leaves it out of its JSON report."""
    reasons, said = {}, []
    for line in output.splitlines():
        if line.startswith("[ RUN      ] "):
            said = []
        elif line.startswith("[  SKIPPED ] "):
            name = line[13:].split(" (")[0].strip()
            if said and name not in reasons:  # the summary at the end names it again
                reasons[name] = " ".join(said)
        elif line.strip() and not line.rstrip().endswith(": Skipped"):
            said.append(line.strip())
    return reasons


def read_report(path, count, label, output):
    reasons = skip_reasons(output)
    with open(path, encoding="utf-8", errors="replace") as file:
        report = json.load(file)
    for suite in report.get("testsuites", []):
        for case in suite.get("testsuite", []):
            name = f"{label} {suite['name']}.{case['name']}"
            if case.get("failures"):
                count.failed.append(name)
            elif case.get("status") == "NOTRUN":
                count.skipped.append(f"{name}: disabled")
            elif case.get("result") == "SKIPPED":
                reason = reasons.get(f"{suite['name']}.{case['name']}", "no reason given")
                count.skipped.append(f"{name}: {reason}")
            else:
                count.passed += 1


def count_output(output, count, label):
    """What a program said before it died: gtest prints one line for every test that ended."""
    running, reasons = None, skip_reasons(output)
    for line in output.splitlines():
        if line.startswith("[ RUN      ] "):
            running = line[13:].strip()
        elif line.startswith("[       OK ] "):
            count.passed += 1
            running = None
        elif line.startswith("[  FAILED  ] ") and running:
            count.failed.append(f"{label} {running}")
            running = None
        elif line.startswith("[  SKIPPED ] ") and running:
            count.skipped.append(f"{label} {running}: {reasons.get(running, 'no reason given')}")
            running = None
    return running


def run_program(label, command, root, factor, shard=None, case=None):
    count = Count()
    start = time.monotonic()
    if not command or not command[0] or not os.path.exists(command[0]):
        count.failed.append(f"{label}: the program was not built")
        return count, 0.0, ""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        environment = dict(os.environ, GTEST_COLOR="no", GTEST_OUTPUT=f"json:{report}")
        if case is not None:
            environment.update(GTEST_FILTER=case)
        if shard is not None:
            environment.update(GTEST_TOTAL_SHARDS=str(SHARDS), GTEST_SHARD_INDEX=str(shard))
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
        environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        environment.setdefault("TSAN_OPTIONS", f"suppressions={root}/cmake/tsan.supp:ignore_noninstrumented_modules=1")
        problem = None
        with open(os.path.join(folder, "output"), "w+", encoding="utf-8", errors="replace") as log:
            program = subprocess.Popen(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = program.wait(timeout=SECONDS_MAX * factor)
                if code < 0:
                    problem = f"died of signal {-code}"
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, 9)
                code = program.wait()
                problem = f"hung for {SECONDS_MAX * factor} s"
            log.seek(0)
            output = log.read()
        try:
            read_report(report, count, label, output)
        except (OSError, ValueError, KeyError):
            count = Count()
            running = count_output(output, count, label)
            problem = (problem or f"ended with code {code} and no report") + (f" in {running}" if running else "")
        if problem is None and code not in (0, SKIPPED if count.skipped else 0) and not count.failed:
            problem = f"ended with code {code} though no test failed (a sanitizer or a destructor?)"
        if problem is None and not (count.passed or count.failed or count.skipped):
            problem = "ran no test at all"
        if problem:
            count.failed.append(f"{label}: {problem}")
        elif case is None:
            for name in count.failed:
                count.again[name] = functools.partial(run_program, label, command, root, factor, case=name.removeprefix(label + " "))
    return count, time.monotonic() - start, output


def run_jobs(jobs, at_once):
    """Label and result of each (label, call), in the order in which they end."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=at_once) as pool:
        runs = {pool.submit(call): label for label, call in jobs}
        for run in concurrent.futures.as_completed(runs):
            yield runs[run], run.result()


def run_again(total):
    """The few cases that failed beside others, alone. What passes leaves the failed ones."""
    if not 0 < len(total.again) <= AGAIN_MAX:
        return
    for name, call in total.again.items():
        count, seconds, output = call()
        if count.failed or not count.passed:
            print(output.rstrip()[-20000:], flush=True)
        else:
            total.failed.remove(name)
            total.passed += 1
        print(f"{'FAILED AGAIN' if name in total.failed else 'passed only alone'}: {name} ({seconds:.1f} s)", flush=True)


def show(label, count, seconds):
    print(f"{label:32} {count.text()} ({seconds:.1f} s)", flush=True)


# Scripts; each counts as one test more. The first judge the tree, the others run what was built.
FORMAT, HOUSE, PLANTED = ("format", "scripts/format", "--check"), ("house", "scripts/house", "--check"), ("planted", "scripts/self-test", "--check")
SAMPLES, NAT = ("samples", "scripts/samples", "--check"), ("nat", "scripts/nat-run", "--short")
PACKAGE = ("package", "scripts/package")  # packs what the release build holds
# No rates: this machine may do other things too.
SIEGE = ("siege", "scripts/siege", "--short", "--no-rates")


def run_check(root, label, script, *how):
    count, start = Count(), time.monotonic()
    check = subprocess.run([root / script, *how], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check.returncode == 0:
        count.passed = 1
    elif check.returncode == SKIPPED:
        count.skipped.append(f"{label}: {check.stderr.strip()}")
    else:
        count.failed.append(f"{label}: {script} {' '.join(how)} (above)")
    return count, time.monotonic() - start, check.stdout + check.stderr


def run_fuzzers(root, seconds):
    """Its figures go to stderr: a finding is explained there."""
    count, start = Count(), time.monotonic()
    run = subprocess.run([root / "scripts/fuzz", "--seconds", str(seconds)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    sys.stderr.write(run.stderr)
    figures = re.search(r"(\d+) targets, (\d+) executions, (\d+) findings", run.stdout.strip().rpartition("\n")[2])
    if run.returncode == SKIPPED:
        count.skipped.append(f"fuzzers: {run.stderr.strip()}")
    elif figures is None:
        count.failed.append(f"fuzzers: scripts/fuzz ended with code {run.returncode} and no result")
    else:
        targets, _, findings = map(int, figures.groups())
        count.passed = targets - findings
        count.failed += ["fuzzers: a target found something (it is named above)"] * findings
    return count, time.monotonic() - start


def run_planted(root):
    """Its lines go to stderr as they come: it takes half an hour."""
    count, start = Count(), time.monotonic()
    run = subprocess.run([root / "scripts/self-test", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        result = json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        count.failed.append(f"planted bugs: scripts/self-test ended with code {run.returncode} and no result")
    else:
        count.passed = result["found"]
        count.failed += ["planted bugs: one was not found (its name stands above)"] * (result["planted"] - result["found"])
    return count, time.monotonic() - start


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--more", nargs="+", action="append", default=[])
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--swarms", action="store_true")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--fuzz", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--planted", action="store_true")
    options = parser.parse_args()
    for more in options.more:
        if len(more) < 2:
            parser.error("--more LABEL DIR [TARGET...]")
    return options


def main():
    options = parse_arguments()
    root = pathlib.Path(__file__).resolve().parent.parent
    alone, paired, shared = [], [], []
    for name, command, folder in registered(options.build):
        if options.only and folder not in options.only:
            continue
        label = name.removesuffix("_test")
        if label in VIRTUAL:
            paired += [(f"{label} {shard + 1}/{SHARDS}", functools.partial(run_program, label, command, root, 1, shard)) for shard in range(SHARDS)]
        else:
            (alone if label in ALONE else paired).append((label, functools.partial(run_program, label, command, root, 1)))
    paired.sort(key=lambda job: job[0].split()[0] not in VIRTUAL)  # the longest first: nothing waits for it at the end
    if options.checks:
        shared.append((SIEGE[0], functools.partial(run_check, root, *SIEGE)))
    for label, build, *wanted in options.more:
        for name, command, _ in registered(build):
            if not wanted or name in wanted:
                title = f"{name.removesuffix('_test')} ({label})"
                shared.append((title, functools.partial(run_program, title, command, root, SLOW_FACTOR)))
    total, took = Count(), {}
    for batch, at_once in (alone, 1), (paired, os.cpu_count()), (shared, os.cpu_count()):
        batch.sort(key=lambda job: -took.get(job[0].split()[0], SIEGE_S if job[0] == SIEGE[0] else 0))  # the longest first, as far as it is known
        for label, (count, seconds, output) in run_jobs(batch, at_once):
            if count.failed:
                print(output.rstrip()[-20000:], flush=True)
            show(label, count, seconds)
            took[label.split()[0]] = seconds
            total.add(count)
    checks = ((options.checks, (FORMAT, HOUSE, PLANTED)), (options.swarms, (SAMPLES, NAT)), (options.package, (PACKAGE,)))
    for check in (check for wanted, some in checks if wanted for check in some):
        count, seconds, output = run_check(root, *check)
        if output.strip():  # what it found, or what it counted
            print(output.rstrip()[-20000:] if count.failed else output.rstrip().rpartition("\n")[2], flush=True)
        show(check[0], count, seconds)
        total.add(count)
    if options.fuzz:
        count, seconds = run_fuzzers(root, options.fuzz)
        show("fuzzers", count, seconds)
        total.add(count)
    if options.planted:
        count, seconds = run_planted(root)
        show("planted bugs", count, seconds)
        total.add(count)
    if not alone + paired + shared:
        total.failed.append("no test program was found")
    run_again(total)
    for line in total.skipped:
        print(f"skipped: {line}")
    for line in total.failed:
        print(f"FAILED: {line}")
    print(total.text())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
