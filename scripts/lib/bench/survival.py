#!/usr/bin/env python3
"""survival.py BUNDLEFS PROBE FOLDER ROUNDS: what it costs to survive a death, and how long a death is noticed.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Prints a table: times and
memory with survive=on and off, which take turns, and the time from a worker's death to the answer to a name that the
kernel does not have, while it has all the others.
"""
import os
import random
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
import mounting  # noqa: E402

BUNDLEFS, PROBE, FOLDER, ROUNDS = sys.argv[1:4] + [int(sys.argv[4])]
POINT = os.path.join(FOLDER, "mounts", "survival")
KINDS = {"stat": "files", "open": "files", "read": "files", "list": "folders", "missing": "missing"}
DEATHS = 300


class Mount(mounting.Mount):
    def __init__(self, survive):
        super().__init__(BUNDLEFS, [path("substitution"), path("main")], POINT, "survive=" + survive)

    def processes(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
            return [self.process.pid] + [int(word) for word in file.read().split()]

    def worker(self):
        # The list can lack a child while the kernel removes another one from it.
        return next(processes[-1] for processes in iter(self.processes, None) if len(processes) > 1)

    def memory(self):
        """In bytes, without what is read from files."""
        total = 0
        for process in self.processes():
            with open("/proc/%d/status" % process) as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith(("RssAnon", "RssShmem")))
        return total << 10


def probe(*arguments):
    return mounting.run_probe(PROBE, *arguments)


def path(name):
    return os.path.join(FOLDER, name)


def measure(survive, times):
    with Mount(survive) as mount:
        before = mount.memory()
        times.setdefault("first walk", []).append(probe("walk", POINT))
        probe("pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
        probe("pass", POINT, "missing", path("missing"))
        files = len(mounting.listed(path("files")))
        times.setdefault("bytes for each file", []).append((mount.memory() - before) / files)
        for kind, names in KINDS.items():
            times.setdefault("warm " + kind, []).append(probe("warm", POINT, kind, path(names)))


def deaths():
    """In ms, the delays of a miss right after a death: the longest from the signal to the answer."""
    delays = []
    random.seed(1)
    with Mount("on") as mount:
        probe("pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
        for number in range(DEATHS):
            start = time.perf_counter()
            os.kill(mount.worker(), signal.SIGKILL)
            try:
                os.stat(os.path.join(POINT, "missing-%d" % number))
            except FileNotFoundError:
                delays.append((time.perf_counter() - start) * 1000)
            # As scripts/soak --deaths: an even interval could meet what the processes do at certain times.
            time.sleep(random.uniform(0.02, 0.6))
    return sorted(delays)


def main():
    results = {"on": {}, "off": {}}
    for number in range(ROUNDS):
        for survive in ("on", "off") if number % 2 else ("off", "on"):
            measure(survive, results[survive])
    print("%-22s %12s %12s %8s" % ("µs an access", "survive=on", "survive=off", "ratio"))
    for name, values in results["on"].items():
        on, off = statistics.median(values), statistics.median(results["off"][name])
        unit = 1 if name.startswith("bytes") else 1000
        ratios = sorted(one / other for one, other in zip(values, results["off"][name]))
        print("%-22s %12.1f %12.1f %8.2f" % (name, on / unit, off / unit, statistics.median(ratios)))
    delays = deaths()
    print("from a death to the answer to a miss: p50 %.1f ms, p99 %.1f ms, longest %.1f ms of %d" % (
        delays[len(delays) // 2], delays[len(delays) * 99 // 100], delays[-1], len(delays)))


main()
