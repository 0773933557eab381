#!/usr/bin/env python3
"""names.py BUNDLEFS PROBE FOLDER ROUNDS: what it costs that case does not count in names.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Prints the first walk and warm
accesses with case=sensitive, with case=insensitive, and with case=insensitive over a substitution in capitals, and those
of ciopfs on a copy of the merged tree if it is installed. They take turns.
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
POINT = os.path.join(FOLDER, "mounts", "names")
KINDS = {"stat": "files", "open": "files", "read": "files", "list": "folders", "missing": "missing"}


def path(name):
    return os.path.join(FOLDER, name)


def make_capitals():
    shutil.rmtree(path("capitals"), ignore_errors=True)
    for folder, _, files in os.walk(path("substitution")):
        target = path("capitals") + folder[len(path("substitution")):].upper()
        os.makedirs(target)
        for name in files:
            shutil.copyfile(os.path.join(folder, name), os.path.join(target, name.upper()))


class Ciopfs:
    """A mount by ciopfs of a folder whose names it has made."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["ciopfs", "-f", folder, POINT], stderr=subprocess.DEVNULL)
        while not os.path.ismount(POINT):
            if self.process.poll() is not None:
                raise RuntimeError("ciopfs does not mount")
            time.sleep(0.0005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", POINT], check=True)
        self.process.wait()


def make_copy():
    """Copies the merged tree through ciopfs, which needs names in lower case below it.

    Of files whose names are one, cp(1) copies the first.
    """
    shutil.rmtree(path("lowercase"), ignore_errors=True)
    os.mkdir(path("lowercase"))
    os.makedirs(POINT, exist_ok=True)
    with Ciopfs(path("lowercase")):
        for layer in ("main", "substitution"):
            subprocess.run(["cp", "-r", path(layer) + "/.", POINT], stderr=subprocess.DEVNULL)


def bundlefs(substitution, option):
    return lambda: Mount(BUNDLEFS, [path(substitution), path("main")], POINT, option)


def measure(mount, times):
    with mount():
        times.setdefault("first walk", []).append(run_probe(PROBE, "walk", POINT))
        run_probe(PROBE, "pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
        run_probe(PROBE, "pass", POINT, "missing", path("missing"))
        for kind, names in KINDS.items():
            times.setdefault("warm " + kind, []).append(run_probe(PROBE, "warm", POINT, kind, path(names)))


def main():
    make_capitals()
    variants = [("sensitive", bundlefs("substitution", "case=sensitive"), {}),
                ("insensitive", bundlefs("substitution", "case=insensitive"), {}),
                ("in capitals", bundlefs("capitals", "case=insensitive"), {})]
    if shutil.which("ciopfs"):
        make_copy()
        variants.append(("ciopfs", lambda: Ciopfs(path("lowercase")), {}))
    for number in range(ROUNDS):
        for _, mount, times in variants[number % len(variants):] + variants[:number % len(variants)]:
            measure(mount, times)
    print("%-22s %12s" % ("µs an access", "sensitive")
          + "".join(" %24s" % (name + " (ratio)") for name, _, _ in variants[1:]))
    for name, base in variants[0][2].items():
        row = "%-22s %12.2f" % (name, statistics.median(base) / 1000)
        for _, _, times in variants[1:]:
            ratio = statistics.median(one / other for one, other in zip(times[name], base))
            row += " %17.2f (%.2f)" % (statistics.median(times[name]) / 1000, ratio)
        print(row)
    for folder in ("capitals", "lowercase"):
        shutil.rmtree(path(folder), ignore_errors=True)


main()
