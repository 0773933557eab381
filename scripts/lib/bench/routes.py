#!/usr/bin/env python3
"""routes.py BUNDLEFS FOLDER ROUNDS: the control file beside a FIFO and a socket, whose servers in Python return a line for
each line, and what registering and listening cost.

Prints a table: each figure, its goal where there is one, and whether it is met. A write to the control file returns when
the URL has its verdict; a writer to one of the peers reads it from there.
"""
import json
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from mounting import Mount  # noqa: E402

BUNDLEFS, FOLDER, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
POINT = os.path.join(FOLDER, "mounts", "lines")
CONTROL = os.path.join(POINT, ".routes")
ROUTE = b"route Bench bench://i:Number\n"
SERVER = """
import os, socket, sys
if sys.argv[1] == "fifo":
    lines, reply = open(sys.argv[2], "rb"), os.open(sys.argv[3], os.O_WRONLY)
    answer = lambda line: os.write(reply, line)
else:
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[2])
    lines, answer = peer.makefile("rb"), peer.sendall
for number, line in enumerate(lines):
    answer(b'{"sequence":%d,"url":"%s"}\\n' % (number, line[:-1]))
"""


def path(name):
    return os.path.join(FOLDER, name)


def mount(*options):
    return Mount(BUNDLEFS, [path("routes"), path("routes")], POINT, *options)


def report(name, value, unit, goal=None, met=None):
    shown = "" if goal is None else "%14s  %s" % (goal, "met" if met else "MISSED")
    print("%-62s%12s %-4s%s" % (name, "%.1f" % value if value < 100 else "%d" % value, unit, shown), flush=True)


# MARK: a line in, a line out


class ControlPeer:
    """The control file itself."""

    def __init__(self):
        self.mount = mount()
        self.file = os.open(CONTROL, os.O_WRONLY)
        os.write(self.file, ROUTE)

    def send(self, lines, _):
        assert os.write(self.file, lines) == len(lines)

    def close(self):
        os.close(self.file)
        self.mount.__exit__()


class FIFOPeer:
    def __init__(self):
        names = [path("fifo-in"), path("fifo-out")]
        for name in names:
            os.mkfifo(name)
        self.server = subprocess.Popen([sys.executable, "-c", SERVER, "fifo", *names])
        self.write_end, self.read_end = os.open(names[0], os.O_WRONLY), os.open(names[1], os.O_RDONLY)
        for name in names:
            os.unlink(name)

    def send(self, lines, count):
        os.write(self.write_end, lines)
        while count > 0:
            count -= os.read(self.read_end, 65536).count(b"\n")

    def close(self):
        os.close(self.write_end)
        os.close(self.read_end)
        self.server.wait()


class SocketPeer:
    def __init__(self):
        name = path("socket")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(name)
        listening.listen(1)
        self.server = subprocess.Popen([sys.executable, "-c", SERVER, "socket", name])
        self.socket, _ = listening.accept()
        listening.close()
        os.unlink(name)

    def send(self, lines, count):
        self.socket.sendall(lines)
        while count > 0:
            count -= self.socket.recv(65536).count(b"\n")

    def close(self):
        self.socket.close()
        self.server.wait()


def rate(peer, lines_each, total):
    """Lines a second, once as many again were sent: where the scheduler puts two processes that wait for each other, and
    with that the rate, depends on what ran in the tenths of a second before."""
    batches = [b"".join(b"bench://%d\n" % number for number in range(start, start + lines_each))
               for start in range(0, total, lines_each)]
    for batch in batches:
        peer.send(batch, lines_each)
    start = time.perf_counter()
    for batch in batches:
        peer.send(batch, lines_each)
    return total / (time.perf_counter() - start)


def measure_rates():
    measure_rates_on(os.sched_getaffinity(0), "")
    # Without what a wake-up of another processor costs.
    measure_rates_on({max(os.sched_getaffinity(0))}, ", one processor")


def measure_rates_on(processors, place):
    former = os.sched_getaffinity(0)
    # The servers inherit it.
    os.sched_setaffinity(0, processors)
    peers = {"control file": ControlPeer(), "FIFO": FIFOPeer(), "Unix socket": SocketPeer()}
    rates = {}
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            for each, total in ((1, 10000), (100, 100000)):
                rates.setdefault((each, name), []).append(rate(peer, each, total))
    for peer in peers.values():
        peer.close()
    os.sched_setaffinity(0, former)
    for each, text in ((1, "one line a write"), (100, "100 lines a write")):
        for name in peers:
            value = statistics.median(rates[each, name])
            goal = met = None
            if name == "control file" and each == 1:
                least = 0.8 * statistics.median(rates[1, "FIFO"])
                goal, met = ">= %d" % least, value >= least
            if name == "control file" and each == 100:
                goal, met = ">= 300000", value >= 300000
            report("%s%s: %s" % (text, place, name), value, "/s", goal, met)


# MARK: the command


def measure_command():
    urls = b"".join(b"bench://%d\n" % number for number in range(5000))
    with mount("results=10000"):
        write(ROUTE)
        start = time.perf_counter()
        output = subprocess.run([BUNDLEFS, "route", POINT, "-"], input=urls, stdout=subprocess.PIPE, check=True).stdout
        elapsed = time.perf_counter() - start
        assert output.count(b"\n") == 5000
        report("bundlefs route with 5,000 URLs", 5000 / elapsed, "/s")


def write(lines):
    file = os.open(CONTROL, os.O_WRONLY)
    try:
        done = os.write(file, lines)
        assert done == len(lines), (done, lines[done:done + 200])
    finally:
        os.close(file)


# MARK: registering


def routes(shape, count):
    patterns = {
        "distinct": "l:(a%d)A/s:B",
        "same but for the last component": "l:(a)A/s:B/l:(c%d)C",
        "same but for an optional number": "s:A?p%d=i?:P",
        # Each overlaps all those of the other kind.
        "crossing": ("l:(a%d)A/s:B", "s:A/l:(b%d)B"),
    }[shape]
    lines = []
    for number in range(count):
        pattern = patterns[number % 2] if isinstance(patterns, tuple) else patterns
        lines.append("route N%d %s\n" % (number, pattern % number))
    return "".join(lines).encode()


def measure_registration():
    for shape, count in [("distinct", count) for count in (1000, 2000, 4000, 10000)] + [
            ("same but for the last component", 10000), ("same but for an optional number", 10000), ("crossing", 10000)]:
        lines = routes(shape, count)
        with mount():
            start = time.perf_counter()
            write(lines)
            elapsed = time.perf_counter() - start
            report("%d routes in one write, %s" % (count, shape), elapsed * 1000, "ms",
                   *(("<= 500", elapsed <= 0.5) if count == 10000 else ()))
            if shape == "distinct" and count == 10000:
                write(b"route All *:X\n")
                last = open(CONTROL, "rb").read().rstrip(b"\n").rsplit(b"\n", 1)[-1]
                assert json.loads(last)["overlapCount"] > 16
                report("the result of a route that overlaps all of them", len(last), "B", "<= 4096", len(last) <= 4096)
    with mount():
        lines = b"".join(b"route M%d l:(m%d)A before N\n" % (number, number) for number in range(10000))
        start = time.perf_counter()
        write(b"route N s:A\n" + lines)
        elapsed = time.perf_counter() - start
        report("10000 routes in one write, each before the last", elapsed * 1000, "ms", "<= 500", elapsed <= 0.5)
    with mount():
        lines = routes("crossing", 10000).decode().splitlines()
        lines[1:] = ["%s before N%d" % (line, number) for number, line in enumerate(lines[1:])]
        start = time.perf_counter()
        write("\n".join(lines).encode())
        elapsed = time.perf_counter() - start
        report("10000 routes in one write, crossing, each before the first", elapsed * 1000, "ms", "<= 500",
               elapsed <= 0.5)
    plain = mounting_time()
    for shape in ("distinct", "crossing"):
        with open(path("many-routes"), "wb") as file:
            file.write(routes(shape, 10000))
        elapsed = mounting_time("routes=" + path("many-routes")) - plain
        report("10000 routes by -o routes=, %s" % shape, elapsed * 1000, "ms", "<= 500", elapsed <= 0.5)


def mounting_time(*options):
    """In seconds, the least of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with mount(*options):
            times.append(time.perf_counter() - start)
    return min(times)


# MARK: a long write beside others


def other_waits(lines, other, attempts=3):
    """In ms: the time of a write of many lines by another process, and how long the others waited meanwhile."""
    child = os.fork()
    if child == 0:
        try:
            start = time.perf_counter()
            write(lines)
            with open(path("long-write"), "w") as file:
                file.write(str((time.perf_counter() - start) * 1000))
            os._exit(0)
        finally:
            os._exit(1)
    waits = []
    ended, status = 0, 0
    while ended == 0:
        start = time.perf_counter()
        other()
        waits.append((time.perf_counter() - start) * 1000)
        ended, status = os.waitpid(child, os.WNOHANG)
    # Once in a thousand times the kernel clears a page while it is written (URLLifecycle.md): the write ends early.
    if status != 0:
        assert attempts > 1, "a long write failed three times"
        return other_waits(lines, other, attempts - 1)
    with open(path("long-write")) as file:
        return float(file.read()), sorted(waits)


def measure_waits():
    urls = b"".join(b"bench://%d\n" % number for number in range(10000))
    long_writes = {"10000 routes": routes("distinct", 10000), "10000 URLs": urls}
    others = {"a writer": lambda: write(b"bench://1\n"), "a reader": lambda: read_some()}
    for name, lines in long_writes.items():
        for who, other in others.items():
            rounds = sorted(longest_wait(lines, other) for _ in range(ROUNDS))
            wait, elapsed = rounds[len(rounds) // 2]
            report("%s beside a write of %s, which took %d ms" % (who, name, elapsed), wait, "ms", "<= 10", wait <= 10)
    with mount():
        elapsed = killing_time()
        report("until a writer of 100,000 crossing routes is gone after SIGKILL", elapsed * 1000, "ms", "<= 10",
               elapsed <= 0.01)


def longest_wait(lines, other):
    """In ms, in a new mount: how long others waited, at most, and the time of the long write."""
    with mount():
        write(ROUTE)
        elapsed, waits = other_waits(lines, other)
        return waits[-1], elapsed


def read_some():
    with open(CONTROL, "rb", buffering=0) as file:
        file.read(100)


def killing_time():
    lines = routes("crossing", 100000)
    child = os.fork()
    if child == 0:
        file = os.open(CONTROL, os.O_WRONLY)
        os.write(file, lines)
        os._exit(0)
    time.sleep(0.05)
    start = time.perf_counter()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return time.perf_counter() - start


# MARK: listeners


class Listeners:
    def __init__(self, count):
        self.poll = select.epoll()
        self.processes = {}
        for _ in range(count):
            process = subprocess.Popen([BUNDLEFS, "listen", POINT, "Event"], stdout=subprocess.PIPE)
            os.set_blocking(process.stdout.fileno(), False)
            self.processes[process.stdout.fileno()] = process
            self.poll.register(process.stdout.fileno(), select.EPOLLIN)

    def lines(self, count, deadline):
        """The times at which so many lines came, and how many did."""
        times = []
        while len(times) < count and time.perf_counter() < deadline:
            for file, _ in self.poll.poll(0.1):
                arrived = os.read(file, 1 << 16).count(b"\n")
                times += [time.perf_counter()] * arrived
        return times

    def wait_until_listening(self, file):
        while True:
            os.write(file, b"event://0\n")
            if len(self.lines(len(self.processes), time.perf_counter() + 0.5)) == len(self.processes):
                return

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


def measure_listeners():
    with mount():
        write(b"route Event event://i:Number\nroute Bench bench://i:Number\n")
        write(b"".join(b"bench://%d\n" % number for number in range(1100)))
        file = os.open(CONTROL, os.O_WRONLY)
        listeners = Listeners(50)
        listeners.wait_until_listening(file)
        delays = []
        for number in range(40 * ROUNDS):
            time.sleep(0.05)
            start = time.perf_counter()
            os.write(file, b"event://%d\n" % number)
            times = listeners.lines(50, start + 5)
            assert len(times) == 50, len(times)
            delays += [(moment - start) * 1000 for moment in times]
        delays.sort()
        report("50 listeners and a full ring: a line is there, p50", delays[len(delays) // 2], "ms")
        p99 = delays[len(delays) * 99 // 100]
        report("50 listeners and a full ring: a line is there, p99", p99, "ms", "<= 10", p99 <= 10)
        listeners.close()
        os.close(file)


def measure_burst():
    with mount("results=10000"):
        write(b"route Event event://i:Number\n")
        file = os.open(CONTROL, os.O_WRONLY)
        listeners = Listeners(1)
        listeners.wait_until_listening(file)
        for number in range(5000):
            os.write(file, b"event://%d\n" % number)
        count = len(listeners.lines(5000, time.perf_counter() + 20))
        report("lines that a listener printed of a burst of 5,000", count, "", "5000", count == 5000)
        listeners.close()
        os.close(file)


def main():
    os.makedirs(path("routes"), exist_ok=True)
    measure_rates()
    measure_command()
    measure_registration()
    measure_waits()
    measure_listeners()
    measure_burst()


main()
