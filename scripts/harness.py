"""What the scripts that start swarms have in common: options as data, run files from dicts, a folder with a text, rows, the audit's word, how
they end. A script says what is its own: its options, its scenarios, what it measures.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from local_swarm import ROOT, SwarmError, make_text, say
from star import line_of, missing

BIN = {"--bin": dict(default=os.path.join(ROOT, "build/release/bin"), metavar="DIR", help="where shoal is")}
JSON = {"--json": dict(action="store_true", help="a line a run")}
NET = {"--net": dict(type=line_of, default="100mbit,20", metavar="RATE,MS")}
FAILURES = SwarmError, subprocess.SubprocessError, ValueError, KeyError, OSError


def name():
    return os.path.basename(sys.argv[0])


def main(run, doc, options=(), root=False, prepare=None):
    """Ends the script with what `run(args)` returns: an exit code, or nothing. `options`: flag -> words of add_argument, or `many=[...]`: it may be
    repeated, and has these values by default. `root`: it needs hosts of its own. `prepare(parser, args)` looks at the options once more."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    many = {}
    for flag, words in {**dict(options), **BIN}.items():
        words = dict(words)
        if "many" in words:
            many[flag.strip("-").replace("-", "_")], words["action"] = words.pop("many"), "append"
        parser.add_argument(flag, **words)
    args = parser.parse_args()
    for option, values in many.items():
        setattr(args, option, getattr(args, option) or list(values))
    if root and missing():
        parser.error(missing())
    if prepare:
        prepare(parser, args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(run(args))
    except KeyboardInterrupt:
        sys.exit(130)
    except SwarmError as problem:
        say(f"{name()}: {problem}")
        sys.exit(1)


@contextlib.contextmanager
def scratch(keep=None, wrong=None, kept_name=""):
    """A folder with a text to train on, gone behind the block; with `keep` it is moved there when something is in `wrong`, or always without."""
    folder = tempfile.mkdtemp(prefix=f"shoal-{name()}-")
    make_text(text_in(folder))
    try:
        yield folder
    finally:
        if keep and wrong != []:
            shutil.move(folder, os.path.join(keep, kept_name))
        shutil.rmtree(folder, ignore_errors=True)


def text_in(folder):
    return os.path.join(folder, "text")


def begin(swarm, stages=(), options=(), serving=False, seconds=90):
    """Launch, a peer for each stage named (None: any), until they train, and with `serving` until each of them serves."""
    swarm.start_launch()
    for stage in stages:
        swarm.add_peer(stage, options)
    swarm.until_training(seconds)
    if serving:
        swarm.until(lambda: all(peer.serving for peer in swarm.peers), 60, "every peer serving")
    return swarm


def trained(swarm, peers, seconds):
    """So many peers of any stage train to the end of the run: what launch summed up with --json, behind the ticket's line."""
    begin(swarm, [None] * peers)
    code = swarm.launch.wait(seconds)
    if code != 0:
        raise SwarmError(f"launch ended with exit code {code}; it said:{swarm.launch.last_words()}")
    for peer in swarm.peers:
        peer.process.wait(20)
    swarm.read()
    with open(swarm.launch.log + ".out", errors="replace") as file:
        text = file.read()
    if "{" not in text:
        raise SwarmError(f"{swarm.launch.log}.out holds no summary")
    return json.loads(text[text.index("{"):])


def tokens_between(swarm, since, until):
    return sum(targets for at, targets in swarm.commits if since <= at < until)


def rate_for(swarm, seconds):
    """Tokens a second from now on."""
    since = time.time()
    swarm.run_for(seconds)
    until = time.time()
    return tokens_between(swarm, since, until) / (until - since)


def audited(swarm, wrong, ended=True):
    """The audit's report; adds to `wrong` what it finds amiss."""
    report = swarm.audit()
    if report["verdict"] != "clean" or report["unfinished"] or report["counted_twice"] or (ended and not report["ended"]):
        found = "; ".join(map(str, (report["violations"] + report["incomplete"])[:3]))
        wrong.append(f"audit: {report['verdict']}, ended {report['ended']}, unfinished {report['unfinished']}, counted twice "
                     f"{report['counted_twice']}; {found}")
    return report


class Table:
    """Rows of columns: aligned, or with --json a line a row. `shown` of a value is its text."""

    def __init__(self, columns, as_json=False, width=8, number="{:.3g}".format, shown=None):
        self.columns, self.as_json, self.width = columns, as_json, width
        self.shown = shown or (lambda value: "-" if value is None else number(value) if isinstance(value, float) else str(value))
        if not as_json:
            self.line(columns)

    def line(self, cells):
        print("  ".join(cell.rjust(max(self.width, len(column))) for cell, column in zip(cells, self.columns)), flush=True)

    def row(self, row):
        print(json.dumps(row), flush=True) if self.as_json else self.line(self.shown(row.get(column)) for column in self.columns)


def rows(table, cases, measure, *given):
    """A row for each case that can be measured, and the exit code: 1 when one could not."""
    code = 0
    for case in cases:
        try:
            table.row(measure(*given, *case))
        except FAILURES as error:
            say(f"{', '.join(str(part) for part in case)}: {error}")
            code = 1
    return code


class KeptRows:
    """Rows in a file of JSON lines, each known by its values of `names`; `usual`: values of those that earlier files do not have. No path: none."""

    def __init__(self, path, names, usual=()):
        self.path, self.names, self.usual, self.rows = path, names, dict(usual), {}
        if path and os.path.exists(path):
            with open(path) as file:
                for line in filter(str.strip, file):
                    row = json.loads(line)
                    self.rows[self.key(row)] = row

    def key(self, row):
        return tuple(row.get(name, self.usual.get(name)) for name in self.names)

    def row(self, settings):
        """What was kept of these, or None."""
        return self.rows.get(self.key(settings))

    def keep(self, row):
        self.rows[self.key(row)] = row
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps(row) + "\n")


def complaints(wrong, head=None):
    """Says each; the exit code."""
    for line in wrong:
        say(f"{head or name()}: {line}")
    return 1 if wrong else 0


def events(folder, *names):
    """Events of these names, in the event files of a folder or in one file; of several files one after the other."""
    paths = [os.path.join(folder, file) for file in sorted(os.listdir(folder))] if os.path.isdir(folder) else [folder]
    marks = [f'"event":"{event}"' for event in names]
    for path in paths:
        with open(path, errors="replace") as file:
            for line in file:
                if any(mark in line for mark in marks):
                    with contextlib.suppress(ValueError):   # torn by a kill
                        yield json.loads(line)


def new_events(tail, *names):
    """Those that were appended to a followed file since the last call."""
    marks = [f'"event":"{event}"'.encode() for event in names]
    return [json.loads(line) for line in tail.lines() if any(mark in line for mark in marks)]


def said_in(folder, pattern, words):
    """How often these words stand in the logs whose names begin so."""
    count = 0
    for file_name in os.listdir(os.path.join(folder, "logs")):
        if file_name.startswith(pattern) and file_name.endswith(".err"):
            with open(os.path.join(folder, "logs", file_name), errors="replace") as file:
                count += file.read().count(words)
    return count


def counted_bytes(folder, begin, end):
    """What the `bytes` lines of all processes add up to; each tells of the time since the one before."""
    totals, last = dict.fromkeys(("sent", "relayed", "fp32", "payload"), 0.0), {}
    for event in events(folder, "bytes"):
        since, now = last.get(event["session"]), event["time"]
        last[event["session"]] = now
        if since is not None and now > since:
            share = max(0.0, min(now, end) - max(since, begin)) / (now - since)
            for key in totals:
                totals[key] += share * event.get(key, 0)
    return totals


def output_of(words, what=None, **how):
    """What a program prints; SwarmError with its last words when it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False, **how)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-800:]
        raise SwarmError(f"{what or ' '.join([os.path.basename(words[0]), *words[1:3]])} ended with exit code {done.returncode}; it said: {said}")
    return done.stdout
