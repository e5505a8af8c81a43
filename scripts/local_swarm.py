"""A swarm of shoal's own processes on this machine, for the scripts that disturb one and watch.

Only Debian's python3. Everything started here ends with the script (the kernel sends SIGKILL when it dies).
"""
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class SwarmError(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Tail:
    """New whole lines of a file that another process appends to, and that it may cut (another file then has the name)."""

    def __init__(self, path):
        self.path, self.file, self.begun = path, None, b""

    def rest(self):
        """What is new in the file that is open, and then in the one that has taken its name."""
        data = self.file.read() if self.file else b""
        try:
            found = os.stat(self.path)
            if not self.file or found.st_ino != os.fstat(self.file.fileno()).st_ino:
                data += self.file.read() if self.file else b""
                self.file = open(self.path, "rb", buffering=0)
                data += self.file.read()
        except FileNotFoundError:
            pass
        return data

    def lines(self):
        data = self.rest()
        parts = (self.begun + data).split(b"\n")
        self.begun = parts.pop()
        return parts


class Started:
    """One process with its log; `code` is None while it runs."""

    def __init__(self, words, log):
        self.log = log
        with open(log + ".out", "ab") as out, open(log + ".err", "ab") as err:
            self.popen = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                          preexec_fn=die_with_parent)

    @property
    def code(self):
        return self.popen.poll()

    def signal(self, number):
        if self.code is None:
            self.popen.send_signal(number)

    def wait(self, seconds):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self):
        if self.code is None:
            self.popen.kill()
            self.popen.wait()

    def said(self):
        try:
            with open(self.log + ".err", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def last_words(self, count=6):
        return "".join("\n    " + line.rstrip() for line in self.said().splitlines()[-count:])


class Peer:
    def __init__(self, number):
        self.number = number
        self.life = 0
        self.process = None
        self.tail = None
        self.stage = None
        self.wish = None        # the stage it was told to serve
        self.session = ""
        self.sessions = []
        self.serving = False    # by its own word, since the last disturbance
        self.version = 0        # of its anchor
        self.frozen = False
        self.cut = False        # from another host
        self.back_at = None     # when a killed one is started again, or a frozen one goes on

    @property
    def alive(self):
        return self.process is not None and self.process.code is None

    @property
    def untouched(self):
        return self.alive and self.serving and not self.frozen and not self.cut


class Swarm:
    """launch and its peers under `folder`; events of all in folder/events. What `with` makes ends with its block.

    On loopback, or with a `star` (star.py) each on a host of its own: launch on host 0, peer n on host n + 1.
    """

    def __init__(self, bin_folder, folder, config, dht=False, launch_options=(), star=None):
        self.shoal = os.path.join(bin_folder, "shoal")
        if not os.path.exists(self.shoal):
            raise SwarmError(f"{self.shoal} does not exist. HINT: scripts/setup builds it, or name another folder with --bin")
        self.folder, self.dht = folder, dht
        self.launch_options, self.star = list(launch_options), star
        self.device = "cpu"     # of all peers, as join takes it
        for name in ("events", "logs", "homes"):
            os.makedirs(os.path.join(folder, name))
        self.config = os.path.join(folder, "RUN.toml")
        with open(self.config, "w") as file:
            file.write(config)
        self.events = os.path.join(folder, "events")
        self.launch, self.launch_tail, self.launch_lives = None, Tail(os.path.join(self.events, "launch.jsonl")), 0
        self.standby = None     # a launch that waits for the run
        self.ticket = None
        self.peers = []
        self.commits = []       # (time, targets)
        self.seen = set()
        self.issued = set()     # by this life of launch
        self.anew = []          # times of commits of what the life that committed it had issued

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_all()

    # ---- starting ----
    def start(self, host, words, log):
        if self.star is None:
            return Started(words + ([] if {"--resume", "--standby"} & set(words) else ["--listen", "127.0.0.1:0"]), log)
        return Started(self.star.in_host(host, words), log)

    def start_life(self, begin):
        """A process of launch; `begin`: the words that say with what."""
        self.launch_lives += 1
        words = [self.shoal, "launch", *begin, "--dir", os.path.join(self.folder, "run"), "--events",
                 os.path.join(self.events, "launch.jsonl"), "--line-every", "5"]
        words += self.launch_options + (["--linger", "0"] if self.dht else ["--no-dht"])
        return self.start(0, words, os.path.join(self.folder, "logs", f"launch-{self.launch_lives}"))

    def stand_by(self):
        """A process that waits beside launch, with the options of launch."""
        self.standby = self.start_life([os.path.join(self.folder, "run"), "--standby"])

        def waits():
            if self.standby.code is not None:
                raise SwarmError(f"a standby ended with exit code {self.standby.code}; it said:{self.standby.last_words()}")
            return "standing by: " in self.standby.said()
        self.until(waits, 20, "a standby that waits")

    def take_over(self):
        """Launch is over: from now on the standby is launch."""
        self.launch, self.standby = self.standby, None

    def start_launch(self, resume=False, patience_s=60):
        self.launch = self.start_life([os.path.join(self.folder, "run"), "--resume"] if resume else [self.config])
        output = Tail(self.launch.log + ".out")
        deadline = time.monotonic() + patience_s
        while True:
            for line in output.lines():
                if line.startswith(b"ticket "):
                    self.ticket = line[7:].decode()
                    return
            if self.launch.code is not None:
                raise SwarmError(f"launch ended with exit code {self.launch.code}; it said:{self.launch.last_words()}")
            if time.monotonic() > deadline:
                raise SwarmError(f"launch printed no ticket within {patience_s:.0f} s")
            time.sleep(0.02)

    def start_peer(self, peer, options=()):
        peer.life += 1
        name = f"peer-{peer.number}" + (f"-life-{peer.life}" if peer.life > 1 else "")
        peer.tail = Tail(os.path.join(self.events, name + ".jsonl"))
        peer.serving, peer.frozen, peer.back_at = False, False, None
        words = [self.shoal, "join", self.ticket, "--home", os.path.join(self.folder, "homes", str(peer.number)), "--device", self.device,
                 "--threads", "1", "--events", os.path.join(self.events, name + ".jsonl")]
        words += ([] if self.dht else ["--no-dht"]) + list(options)
        if peer.wish is not None:
            words += ["--stage", str(peer.wish)]
        peer.process = self.start(peer.number + 1, words, os.path.join(self.folder, "logs", name))

    def add_peer(self, stage=None, options=()):
        peer = Peer(len(self.peers))
        peer.wish = stage
        self.peers.append(peer)
        self.start_peer(peer, options)
        return peer

    # ---- watching ----
    def read(self):
        for line in self.launch_tail.lines():
            if b'"event":"commit"' in line:
                event = self.parse(line)
                if event and event["microbatch"] not in self.seen:  # a resumed trainer repeats what it found
                    self.seen.add(event["microbatch"])
                    self.commits.append((event["time"], event["targets"]))
                    if event["microbatch"] in self.issued:
                        self.anew.append(event["time"])
            elif b'"event":"issue"' in line and (event := self.parse(line)):
                self.issued.add(event["microbatch"])
            elif b'"event":"start"' in line:
                self.issued.clear()
        for peer in self.peers:
            for line in peer.tail.lines() if peer.tail else ():
                self.read_peer(peer, line)

    def read_peer(self, peer, line):
        for name in (b"serving", b"fenced", b"anchor", b"start"):
            if b'"event":"' + name + b'"' in line:
                break
        else:
            return
        event = self.parse(line)
        if not event:
            return
        if name == b"start":
            peer.session = event["session"]
            peer.sessions.append(event["session"])
        elif name == b"fenced":
            peer.serving = False
        elif name == b"serving":
            peer.serving, peer.stage, peer.version = True, event["stage"], event["version"]
        else:
            peer.version = event["version"]
            peer.serving = peer.serving or not peer.frozen

    @staticmethod
    def parse(line):
        try:
            return json.loads(line)
        except ValueError:
            return None     # torn by a kill

    def check(self):
        if self.launch is not None and self.launch.code is not None:
            raise SwarmError(f"launch ended with exit code {self.launch.code}; it said:{self.launch.last_words()}")

    def until(self, condition, seconds, what):
        """Polls until `condition()`; SwarmError names `what` when it does not come true."""
        deadline = time.monotonic() + seconds
        while True:
            self.read()
            if condition():
                return
            self.check()
            if time.monotonic() > deadline:
                raise SwarmError(f"{what}: not within {seconds:.0f} s; launch said:{self.launch.last_words()}")
            time.sleep(0.05)

    def run_for(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read()
            self.check()
            time.sleep(min(0.05, max(0.0, deadline - time.monotonic())))

    def until_training(self, seconds=90):
        self.until(lambda: self.commits, seconds, "the first commit")

    # ---- disturbing ----
    def others_hold(self, peer):
        """Another peer of its stage serves with an anchor at least as new, and was not disturbed since."""
        return any(p is not peer and p.stage == peer.stage and p.untouched and p.version >= peer.version for p in self.peers)

    def kill(self, peer):
        peer.process.end()
        peer.serving = False

    def freeze(self, peer):
        peer.process.signal(signal.SIGSTOP)
        peer.frozen, peer.serving = True, False   # until it writes again

    def thaw(self, peer):
        peer.process.signal(signal.SIGCONT)
        peer.frozen, peer.back_at = False, None

    def cut(self, one, other, one_way):
        """Two peers, or launch (None) and a peer, cannot reach each other; `one_way`: only what `one` sends is lost."""
        self.star.cut(host_of(one), host_of(other), one_way)
        self.mark_cut((one, other), True)

    def mend(self, one, other):
        self.star.mend(host_of(one), host_of(other))
        self.mark_cut((one, other), False)

    @staticmethod
    def mark_cut(ends, cut):
        for peer in filter(None, ends):
            peer.cut = cut

    # ---- ending ----
    def finish(self, seconds):
        """First Ctrl-C to launch; every process must end by itself. Returns what went wrong."""
        wrong = []
        self.launch.signal(signal.SIGINT)
        code = self.launch.wait(seconds)
        if code is None:
            wrong.append(f"launch did not end within {seconds:.0f} s of the first Ctrl-C:{self.launch.last_words()}")
        elif code not in (0, 130):
            wrong.append(f"launch ended with exit code {code}:{self.launch.last_words()}")
        deadline = time.monotonic() + (20 if code is not None else 0)
        for peer in self.peers:
            ended = peer.process.wait(max(0.05, deadline - time.monotonic()))
            if ended is None:
                wrong.append(f"peer {peer.number} did not end with the run:{peer.process.last_words(3)}")
            elif ended != 0:
                wrong.append(f"peer {peer.number} ended with exit code {ended}:{peer.process.last_words(3)}")
        if self.standby is not None and code is not None:
            ended = self.standby.wait(30)
            if ended != 0 or "this run has ended already" not in self.standby.said():
                wrong.append(f"the standby of a run that ended: exit code {ended}:{self.standby.last_words()}")
        self.read()
        return wrong

    def end_all(self):
        for peer in self.peers:
            if peer.process is not None:
                peer.process.end()
        for launch in filter(None, (self.launch, self.standby)):
            launch.end()

    def audit(self):
        done = subprocess.run([self.shoal, "--json", "audit", self.events], stdout=subprocess.PIPE, check=False)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise SwarmError(f"shoal audit {self.events} ended with exit code {done.returncode} and no JSON") from None


def host_of(peer):
    return 0 if peer is None else peer.number + 1


def dht_children(pids):
    """The shoal-dht processes that these processes started, each with its parent."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                text = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        command, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if command.startswith("shoal-dht") and rest[0] != "Z" and int(rest[1]) in pids:
            found[int(name)] = int(rest[1])
    return found


def rates(commits, begin, end, width=1.0):
    """Targets a second in bins of `width` seconds."""
    bins = [0.0] * max(0, int((end - begin) / width))
    for at, targets in commits:
        index = int((at - begin) / width) if at >= begin else -1
        if 0 <= index < len(bins):
            bins[index] += targets / width
    return bins


def back_after(commits, begin, end, level, at_most=None):
    """Seconds from `begin` to the first 3 s whose rate reaches `level`: in one of them a microbatch more or less is 3 %."""
    bins = rates(commits, begin, end)
    return next((float(index) for index in range(len(bins) - 2)[:at_most] if sum(bins[index:index + 3]) / 3 >= level), None)


def memory_mib(process, what="VmHWM"):
    """MiB of a process that was started here: at most so far, or what /proc calls otherwise."""
    with open(f"/proc/{process.popen.pid}/status") as file:
        return next((int(line.split()[1]) / 1024 for line in file if line.startswith(what + ":")), 0.0)


def make_text(path, size=400_000, seed=1):
    """Bytes to train on where the loss does not matter."""
    draw = random.Random(seed)
    with open(path, "wb") as file:
        file.write(bytes(draw.choice(b"etaoin shrdlu\n") for _ in range(size)))


STAGE_DIM, STAGE_VOCABULARY, STAGE_POSITIONS = 256, 256, 16     # of one_stage_run_file
LAYER_PARAMETERS = 12 * STAGE_DIM * STAGE_DIM + 13 * STAGE_DIM  # of a gpt2
OTHER_PARAMETERS = (2 * STAGE_VOCABULARY + STAGE_POSITIONS + 2) * STAGE_DIM  # embeddings, head, the last norm


def layers_of(parameters):
    """Of one stage with about so many parameters."""
    return max(1, round((parameters - OTHER_PARAMETERS) / LAYER_PARAMETERS))


def parameters_of(layers):
    return layers * LAYER_PARAMETERS + OTHER_PARAMETERS


def toml(**sections):
    """A RUN.toml; what is None is left out."""
    def value_of(value):
        return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else json.dumps(value, default=str)  # a path
    return "".join(f"[{section}]\n" + "".join(f"{key} = {value_of(value)}\n" for key, value in keys.items() if value is not None)
                   for section, keys in sections.items() if keys)


def one_stage_run_file(text, name, layers, replicas, **sync):
    """RUN.toml of a real model in one stage, whose rounds are what is looked at. `sync`: more of [sync], of diloco."""
    return toml(run=dict(name=name), model=dict(layers=layers, dim=STAGE_DIM, heads=4, positions=STAGE_POSITIONS),
                data=dict(path=text, sequences=1, validation_samples=1), pipeline=dict(stages=1, replicas=replicas),
                sync=dict(rule="diloco", inner_batch=STAGE_POSITIONS, **sync))


def run_file(text, rule, stages, replicas, executor="paced", forward_ms=4.0, backward_ms=8.0, seed=1, inner_steps=4, dim=32, warm_steps=4,
             state_mib=0, **more):
    """RUN.toml of a run whose arithmetic is exact and whose duration is set."""
    diloco = dict(inner_batch=1024, inner_steps=inner_steps, warm_steps=warm_steps) if rule == "diloco" else {}
    pace = dict(forward_ms=forward_ms, backward_ms=backward_ms, state_mib=state_mib) if executor == "paced" else {}
    return toml(run=dict(name="scripted", seed=seed), model=dict(layers=max(stages, 2), dim=dim, heads=4, positions=32),
                data=dict(path=text, sequences=4, validation_samples=16), pipeline=dict(stages=stages, replicas=replicas),
                sync=dict(rule=rule, microbatches_per_step=16, **diloco), wire=dict(forward="int8", backward="int8"),
                executor=dict(kind=executor, **pace), **more)
