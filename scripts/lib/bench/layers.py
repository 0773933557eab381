#!/usr/bin/env python3
"""layers.py BUNDLEFS PROBE FOLDER CHANGES: how long a change of the layers takes, and what it leaves cached.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Ten substitutions override some files each;
all files are known and read. One of the ten goes and comes again, CHANGES times by the control file, and CHANGES times
by the command. Prints the time until the change is visible (goal: under 20 ms), and what it costs to read everything
again, beside kernel overlayfs, which has to be mounted anew.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mounting import Mount, listed, run_probe  # noqa: E402

BUNDLEFS, PROBE, FOLDER, CHANGES = sys.argv[1:4] + [int(sys.argv[4])]
POINT = os.path.join(FOLDER, "mounts", "layers")
MODS = [os.path.join(FOLDER, "mods", str(number)) for number in range(10)]


LOWEST = [os.path.join(FOLDER, "substitution")]


def path(name):
    return os.path.join(FOLDER, name)


def without_one(number):
    """The stack of the change with this number: one of the ten goes, and comes again."""
    return (MODS[:4] + MODS[5:] if number % 2 == 0 else MODS) + LOWEST


def make_mods():
    """Each overrides 20 files, spread over the tree."""
    files = [os.fsdecode(name) for name in listed(path("files"))]
    shutil.rmtree(path("mods"), ignore_errors=True)
    step = max(1, len(files) // 200)
    for number, name in enumerate(files[::step][:200]):
        target = os.path.join(MODS[number % 10], name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as file:
            file.write("of a mod\n")


def read_all():
    """In ms."""
    start = time.perf_counter()
    run_probe(PROBE, "pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
    return (time.perf_counter() - start) * 1000


def requests():
    status = subprocess.run([BUNDLEFS, "status", POINT, "--json"], check=True, capture_output=True).stdout
    counts = json.loads(status)["requests"]
    return sum(count for kind, count in counts.items() if kind not in ("IOCTL", "STATFS", "FORGET"))


def switch(mods):
    """In ms, until the write returns: then the change is visible."""
    query = "&".join("substitution=" + mod for mod in mods)
    start = time.perf_counter()
    with open(os.path.join(POINT, ".routes"), "w") as routes:
        routes.write("bundlefs:///layers?%s\n" % query)
    return (time.perf_counter() - start) * 1000


def command(number):
    """In ms, from the start of the command to its end."""
    change = ["remove", MODS[4]] if number % 2 == 0 else ["add", MODS[4], "--below", MODS[3]]
    start = time.perf_counter()
    subprocess.run([BUNDLEFS, "layers", POINT] + change, check=True)
    return (time.perf_counter() - start) * 1000


def measure_bundlefs():
    with Mount(BUNDLEFS, MODS + LOWEST + [path("main")], POINT):
        first = read_all()
        warm = min(read_all() for _ in range(3))
        changes, again, costs, commands = [], [], [], []
        for number in range((CHANGES + 1) // 2 * 4):
            if number % 4 < 2:
                changes.append(switch(without_one(number)))
            else:
                commands.append(command(number))
            before = requests()
            again.append(read_all())
            costs.append(requests() - before)
        return first, warm, changes, again, costs, commands


def measure_overlayfs():
    changes, again = [], []

    def mount(mods):
        layers = "lowerdir=" + ":".join(mods + [path("main")])
        subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", POINT], check=True)

    mount(MODS + LOWEST)
    try:
        read_all()
        for number in range(CHANGES):
            start = time.perf_counter()
            subprocess.run(["umount", POINT], check=True)
            mount(without_one(number))
            changes.append((time.perf_counter() - start) * 1000)
            again.append(read_all())
    finally:
        subprocess.run(["umount", "-l", POINT])
    return changes, again


def shown(name, changes, again):
    changes = sorted(changes)
    print("%-24s change: p50 %.1f ms, p99 %.1f ms, longest %.1f ms; then all files read: %.1f ms" % (
        name, statistics.median(changes), changes[len(changes) * 99 // 100], changes[-1], statistics.median(again)))


def main():
    make_mods()
    try:
        first, warm, changes, again, costs, commands = measure_bundlefs()
        shown("bundlefs", changes, again)
        shown("  by the command", commands, again)
        print("%-24s %.1f ms; all cached: %.1f ms; requests after a change: %d" % (
            "  first pass", first, warm, statistics.median(costs)))
        if os.geteuid() == 0:
            shown("overlayfs, mounted anew", *measure_overlayfs())
    finally:
        shutil.rmtree(path("mods"), ignore_errors=True)


main()
