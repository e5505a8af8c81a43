"""What scripts/siege does to a swarm: each attack acts again and again, says whether it has begun, and ends at once.

`begun` is called often and must not wait; `wrong` is called once, while the attack still lasts, and may.
"""
import base64
import json
import os
import re
import socket
import subprocess

from local_swarm import Started, SwarmError, dht_children

CONNECTIONS = 1100
SILENT = 300                # connections that complete the key exchange
CLAIMS = 300
CLAIMS_SEEN_MIN = 100       # of these; DHT nodes keep and hand out a bounded number
BEGIN_MAX_S = 60            # who joins is paced, and another program may have the machine
INSPECT_TRIES = 6
KILLER = bytes([0x81, 0xA1, 0x65, 0x90])  # a map whose "e" is an empty array: the packaged OpenDHT ends


class Attack:
    def act(self):
        pass

    def wrong(self):
        return []

    def end(self):
        pass


class Connections(Attack):
    """As many connections to launch as may be, each with the same first words; what launch closes is opened again."""

    def __init__(self, address, words=b""):
        self.address, self.words, self.sockets = address, words, []

    def act(self):
        self.sockets = [each for each in self.sockets if not closed(each)]
        for _ in range(100):
            if len(self.sockets) >= CONNECTIONS:
                return
            try:
                each = socket.create_connection(self.address, timeout=1)
                self.sockets.append(each)
                each.sendall(self.words)
            except OSError:
                return      # refused: that is launch's right

    def begun(self):
        return bool(self.sockets)

    def end(self):
        for each in self.sockets:
            each.close()


def closed(connection):
    try:
        return connection.recv(4096, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Garbage(Attack):
    """Connections that send what is no ZMTP, over and over."""

    def __init__(self, swarm, args):
        self.address, self.sent = address_of_launch(swarm), 0

    def act(self):
        for _ in range(10):
            try:
                with socket.create_connection(self.address, timeout=1) as each:
                    each.sendall(os.urandom(4096))
                    self.sent += 1
            except OSError:
                return

    def begun(self):
        return self.sent > 0


class RelayWords(Attack):
    """At launch's relay: calls of the run's key, registrations of it and of others, and answers, all with what nobody signed or drew."""

    def __init__(self, swarm, args):
        self.address, self.run = relay_of_launch(swarm), run_of(swarm.ticket)
        self.said, self.joined = 0, 0

    def act(self):
        for word, behind in ((preamble(CALL) + 2 * self.run + os.urandom(32 + 16 + 64), 0),
                             (preamble(REGISTER) + 2 * self.run, 64), (preamble(REGISTER) + self.run + os.urandom(32), 64),
                             (preamble(RUN) + 2 * self.run, 64), (preamble(ANSWER) + os.urandom(16), 0),
                             (preamble(CALL) + os.urandom(40), 0), (os.urandom(184), 0)):
            try:
                with socket.create_connection(self.address, timeout=1) as each:
                    each.sendall(word)
                    heard = each.recv(32)
                    if behind and len(heard) == 32:     # its nonce
                        each.sendall(os.urandom(behind))
                        heard = each.recv(8)
                    self.said += 1
                    self.joined += heard[:5] == b"SHRV\0"
            except OSError:
                continue    # it answers as it likes

    def begun(self):
        return self.said > 0

    def wrong(self):
        return [f"the relay believed {self.joined} words that nobody signed"] if self.joined else []


REGISTER, CALL, ANSWER, RUN = range(1, 5)   # transport/relay/relay_words.h


def preamble(kind):
    return b"SHRL" + bytes([1, kind, 0, 0])


def relay_of_launch(swarm):
    with open(swarm.launch.log + ".err", errors="replace") as file:
        found = re.search(r"meet at the relay of this process, (\S+):(\d+),", file.read())
    if not found:
        raise SwarmError("launch does not say where its relay is")
    return found[1], int(found[2])


def run_of(ticket):
    """The run's key, which a ticket begins with (runtime/config/ticket.h)."""
    text = ticket.removeprefix("shoal1:")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[:32]


def address_of_launch(swarm):
    with open(os.path.join(swarm.folder, "run", "listen")) as file:
        host, port = file.read().strip().rsplit(":", 1)
    return host, int(port)


class Rogue(Attack):
    """shoal-rogue with one of its attacks."""

    def __init__(self, swarm, args, attack, identities=1):
        words = [os.path.join(args.bin, "shoal-rogue"), swarm.ticket, attack, str(args.seconds + 2 * BEGIN_MAX_S),
                 str(identities)]
        self.log = os.path.join(swarm.folder, "logs", f"rogue-{attack}")
        self.swarm, self.process, self.sessions = swarm, Started(words, self.log), set()

    def begun(self):
        """Whether it could do harm, with a member's session(s)."""
        with open(self.log + ".out", errors="replace") as file:
            words = [line.split() for line in file if line.startswith("begun") and line.endswith("\n")]
        self.sessions.update(word for line in words for word in line[1:])
        return bool(words)

    def act(self):
        if self.process.code is not None:
            raise SwarmError(f"shoal-rogue ended with exit code {self.process.code}; it said:"
                             f"{self.process.last_words()}")

    def end(self):
        self.begun()    # whoever joined meanwhile
        self.process.end()


class Claims(Rogue):
    """Records of many keys that say they serve. `inspect` shows them apart, and counts only who is on the list."""

    def __init__(self, swarm, args):
        super().__init__(swarm, args, "claims", CLAIMS)

    def wrong(self):
        ours = sum(peer.alive for peer in self.swarm.peers)
        for _ in range(INSPECT_TRIES):
            stages = inspect(self.swarm).get("stages", [])
            serving, claims = (sum(stage["serving"] for stage in stages),
                               sum(len(stage["claims"]) for stage in stages))
            if serving > ours:
                return [f"inspect says that {serving} serve, and {ours} do"]
            if serving == ours and claims >= CLAIMS_SEEN_MIN:
                return []
        return [f"inspect saw {claims} claims, and {serving} of {ours} peers serving"]


class Killer(Attack):
    """The datagram that ends an OpenDHT node, to every DHT child twice a second."""

    def __init__(self, swarm, args):
        self.swarm, self.first = swarm, children(swarm)
        self.socket, self.sent, self.turn = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0, 0

    def act(self):
        self.turn += 1
        if self.turn % 5 != 1:
            return
        for pid in children(self.swarm):
            for port in udp_ports(pid):
                self.socket.sendto(KILLER, ("127.0.0.1", port))
                self.sent += 1

    def begun(self):
        return self.sent > 0

    def wrong(self):
        """Who lost a child says so. A later OpenDHT may not die of it."""
        died = [parent for pid, parent in self.first.items() if not os.path.exists(f"/proc/{pid}")]
        logs = {each.popen.pid: each.log for each in processes(self.swarm)}
        return [f"{os.path.basename(logs[parent])} lost its DHT child and does not say so" for parent in died
                if not says(logs[parent], "a stranger can end it with a datagram")]

    def end(self):
        self.socket.close()


def processes(swarm):
    return [swarm.launch] + [peer.process for peer in swarm.peers if peer.alive]


def children(swarm):
    """The swarm's DHT children, each with its parent."""
    parents = {each.popen.pid for each in processes(swarm)}
    return dht_children(parents)


def says(log, text):
    with open(log + ".err", errors="replace") as file:
        return any(text in line for line in file)


def udp_ports(pid):
    """Where a process of this host has a UDP socket."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return set()    # it has ended
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    ports = set()
    with open("/proc/net/udp") as file:
        for line in list(file)[1:]:
            fields = line.split()
            if fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def inspect(swarm):
    done = subprocess.run([swarm.shoal, "--json", "inspect", swarm.ticket, "--seconds", "3"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {}


STRANGERS = {"idle": lambda swarm, args: Connections(address_of_launch(swarm)), "garbage": Garbage,
             "half-open": lambda swarm, args: Connections(relay_of_launch(swarm), preamble(CALL)), "relay-words": RelayWords,
             "silent": lambda swarm, args: Rogue(swarm, args, "silent", SILENT),
             "claims": Claims, "datagrams": Killer}
# Last who takes its time to join: the hosts' admissions are paced.
MEMBERS = ("toggle", "failed", "lows", "commits", "headers", "foreign", "poison", "paths", "replay", "offers", "knocks", "joins")
ATTACKS = (*STRANGERS, *MEMBERS)


def attacker_of(swarm, args, name):
    if name in STRANGERS:
        return STRANGERS[name](swarm, args)
    return Rogue(swarm, args, name, {"joins": args.identities, "paths": 2}.get(name, 1))
