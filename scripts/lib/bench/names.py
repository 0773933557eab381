#!/usr/bin/env python3
"""names.py BUNDLEFS PROBE FOLDER ROUNDS: what it costs that case does not count in names.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Prints the first walk and warm
accesses with case=sensitive, with case=insensitive, and with case=insensitive over a substitution in capitals. They take
turns.
"""
import os
import shutil
import statistics
import sys

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


def measure(substitution, option, times):
    with Mount(BUNDLEFS, [path(substitution), path("main")], POINT, option):
        times.setdefault("first walk", []).append(run_probe(PROBE, "walk", POINT))
        run_probe(PROBE, "pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
        run_probe(PROBE, "pass", POINT, "missing", path("missing"))
        for kind, names in KINDS.items():
            times.setdefault("warm " + kind, []).append(run_probe(PROBE, "warm", POINT, kind, path(names)))


def main():
    make_capitals()
    variants = [("substitution", "case=sensitive", {}), ("substitution", "case=insensitive", {}),
                ("capitals", "case=insensitive", {})]
    for number in range(ROUNDS):
        for variant in variants[number % 3:] + variants[:number % 3]:
            measure(*variant)
    print("%-22s %12s %24s %24s" % ("µs an access", "sensitive", "insensitive (ratio)", "in capitals (ratio)"))
    for name, base in variants[0][2].items():
        row = "%-22s %12.2f" % (name, statistics.median(base) / 1000)
        for _, _, times in variants[1:]:
            ratio = statistics.median(one / other for one, other in zip(times[name], base))
            row += " %17.2f (%.2f)" % (statistics.median(times[name]) / 1000, ratio)
        print(row)
    shutil.rmtree(path("capitals"), ignore_errors=True)


main()
