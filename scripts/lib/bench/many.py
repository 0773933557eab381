#!/usr/bin/env python3
"""many.py BUNDLEFS PROBE FOLDER ROUNDS [LAYERS…]: what many layers cost, beside kernel overlayfs.

Each layer has files in three of twenty folders, as mods do. For each number of layers (1, 10, 100, 400), the medians of ROUNDS
fresh mounts: the first walk, per entry; names that no layer has, each asked for once, per name; the first reading of all files,
per file; and the longest time until a change in one layer is visible. In brackets the quotient by the figure with one layer;
then that by overlayfs's. FOLDER must be on a file system that reports changes.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from mounting import Mount, run_probe  # noqa: E402

BUNDLEFS, PROBE, FOLDER, ROUNDS = sys.argv[1:4] + [int(sys.argv[4])]
LAYERS = [int(count) for count in sys.argv[5:]] or [1, 10, 100, 400]
POINT = os.path.join(FOLDER, "mounts", "many")
STACKS = os.path.join(FOLDER, "many")
FOLDERS, FILES, MISSING, CHANGES = 20, 6000, 2000, 20
# The kernel takes no more than 500, and a page of options.
MOST_OF_OVERLAYFS = 400


def stack(count):
    return os.path.join(STACKS, str(count))


def layers(count):
    """Top first, above an empty main folder."""
    return [os.path.join(stack(count), str(layer)) for layer in range(count)]


def write_list(path, names):
    with open(path, "wb") as file:
        file.write(b"".join(os.fsencode(name) + b"\0" for name in names))


def make_stack(count):
    files, size = [], max(1, FILES // (3 * count))
    for layer, path in enumerate(layers(count)):
        for turn in range(3):
            folder = "d%d" % ((layer + turn * 7) % FOLDERS)
            os.makedirs(os.path.join(path, folder), exist_ok=True)
            for number in range(size):
                name = os.path.join(folder, "file-%d-%d-%d" % (layer, turn, number))
                with open(os.path.join(path, name), "w") as file:
                    file.write("content of " + name + "\n")
                files.append(name)
    os.makedirs(os.path.join(stack(count), "main"))
    write_list(os.path.join(stack(count), "files"), files)
    folders = sorted(set(os.path.dirname(name) for name in files))
    names = ["%s/missing-%d" % (folders[number % len(folders)], number) for number in range(MISSING)]
    write_list(os.path.join(stack(count), "missing"), names)


def longest_delay(count):
    """In ms, until a new file in one layer is visible whose name was known to be missing."""
    longest = 0
    for number in range(CHANGES):
        layer = number * 37 % count
        name = "d%d/new-%d" % (layer % FOLDERS, number)
        source, seen = os.path.join(layers(count)[layer], name), os.path.join(POINT, name)
        assert not os.path.exists(seen)
        start = time.perf_counter()
        open(source, "w").close()
        while not os.path.exists(seen):
            pass
        longest = max(longest, time.perf_counter() - start)
        os.remove(source)
    return longest * 1000


def accesses(count):
    """In µs, a walked entry, a missing name, and a file."""
    lists = [os.path.join(stack(count), name) for name in ("missing", "files")]
    return [
        run_probe(PROBE, "walk", POINT) / 1000,
        run_probe(PROBE, "once", POINT, "missing", lists[0]) / 1000,
        run_probe(PROBE, "once", POINT, "read", lists[1]) / 1000,
    ]


def measure_bundlefs(count):
    with Mount(BUNDLEFS, layers(count) + [os.path.join(stack(count), "main")], POINT):
        return accesses(count) + [longest_delay(count)]


def measure_overlayfs(count):
    names = ":".join([str(layer) for layer in range(count)] + ["main"])
    subprocess.run(["mount", "-i", "-t", "overlay", "-o", "lowerdir=" + names, "overlay", POINT],
                   check=True, cwd=stack(count))
    try:
        return accesses(count)
    finally:
        subprocess.run(["umount", POINT], check=True)


def medians(rounds):
    return [statistics.median(column) for column in zip(*rounds)]


def show(name, count, figures, single, other=None):
    line = "%-10s %5d layers: " % (name, count)
    titles = ("walk", "missing name", "first read")
    line += ", ".join("%s %.1f µs (%.2f)" % (title, figure, figure / base)
                      for title, figure, base in zip(titles, figures, single))
    if other:
        line += "; of overlayfs " + ", ".join("%.2f" % (figure / base) for figure, base in zip(figures, other))
    if len(figures) > 3:
        line += "; visible after %.1f ms" % figures[3]
    print(line, flush=True)


def main():
    os.makedirs(POINT, exist_ok=True)
    singles = {}
    try:
        for count in LAYERS:
            make_stack(count)
            own, others = [], []
            for _ in range(ROUNDS):
                own.append(measure_bundlefs(count))
                if os.geteuid() == 0 and count <= MOST_OF_OVERLAYFS:
                    others.append(measure_overlayfs(count))
            other = medians(others) if others else None
            if other:
                show("overlayfs", count, other, singles.setdefault("overlayfs", other))
            figures = medians(own)
            show("bundlefs", count, figures, singles.setdefault("bundlefs", figures), other)
    finally:
        shutil.rmtree(STACKS, ignore_errors=True)


main()
