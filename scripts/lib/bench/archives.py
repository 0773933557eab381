#!/usr/bin/env python3
"""archives.py BUNDLEFS FOLDER [FILES MIB ROUNDS]: measures one archive mounted by bundlefs and its installed peers.

Prints a table: times in ms (the median of ROUNDS), and the daemon's memory. One process mounts, walks and reads each
peer. The archive has FILES small entries (20000) and two of MIB (128). FOLDER must be empty; it is not cleared.
"""
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
import zipfile

FILES, LARGE, ROUNDS = [int(word) for word in sys.argv[3:6]] or [20000, 128, 3]
LARGE <<= 20


def make(path):
    """Small deflated files in directories of a hundred, a large deflated and a large stored one."""
    source = random.Random(1)
    text = b"".join(b"%d %s\n" % (n, source.choice([b"alpha", b"beta", b"gamma", b"delta"])) for n in range(4000))
    piece = bytes(source.getrandbits(6) for _ in range(1 << 20))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for n in range(FILES):
            start = source.randrange(len(text) - 4000)
            archive.writestr("tree/%03d/%05d.txt" % (n // 100, n), text[start : start + source.randrange(100, 4000)])
        for name, method in (("large", zipfile.ZIP_DEFLATED), ("stored", zipfile.ZIP_STORED)):
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w") as file:
                for n in range(LARGE >> 20):
                    file.write(b"%08d" % n + piece[8:])


def commands(bundlefs):
    yield "bundlefs", [bundlefs, "ARCHIVE", "MOUNT", "-f"]
    yield "fuse-zip", ["fuse-zip", "-f", "-r", "ARCHIVE", "MOUNT"]
    yield "archivemount", ["archivemount", "-f", "-o", "readonly", "ARCHIVE", "MOUNT"]
    yield "ratarmount", ["ratarmount", "-f", "--index-file", ":memory:", "ARCHIVE", "MOUNT"]
    yield "bundlefs, folder", [bundlefs, "UNPACKED", "MOUNT", "-f"]


def wait_for(mount, process):
    while not os.path.ismount(mount) or not os.path.exists(mount + "/large"):
        if process.poll() is not None:
            raise RuntimeError("cannot mount: %s" % process.args)
        time.sleep(0.0005)


def walk(mount):
    found = []
    for folder, _, names in os.walk(mount + "/tree"):
        for name in names:
            path = os.path.join(folder, name)
            os.lstat(path)
            found.append(path)
    return found


def read_all(paths):
    return sum(len(open(path, "rb", buffering=0).read()) for path in paths)


def random_reads(path):
    source = random.Random(2)
    with open(path, "rb", buffering=0) as file:
        for _ in range(100):
            offset = source.randrange(LARGE - 4096) & ~4095
            data = os.pread(file.fileno(), 4096, offset)
            assert len(data) == 4096


def whole(path):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        count = 0
        while part := file.readinto(buffer):
            count += part
    assert count == LARGE


def memory(process):
    for line in open("/proc/%d/status" % process.pid):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


class TooSlow(Exception):
    """A step took longer than LIMIT seconds."""


def give_up(*_):
    raise TooSlow


LIMIT = 20
FIGURES = [
    "mount", "first byte of large", "walk", "walk, warm", "read small", "read small, warm",
    "100 random reads of large", "read large", "read large, warm", "read stored", "memory, MiB",
]
signal.signal(signal.SIGALRM, give_up)


def measured(body):
    """Milliseconds, infinite after a timeout or failure, and the result."""
    start = time.perf_counter()
    signal.alarm(LIMIT)
    try:
        result = body()
    except (TooSlow, OSError) as error:
        print("  %r" % error, file=sys.stderr)
        return float("inf"), None
    finally:
        signal.alarm(0)
    return (time.perf_counter() - start) * 1000, result


def run(command, mount):
    """One round: the figures by name."""
    figures = {}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        figures["mount"], _ = measured(lambda: wait_for(mount, process))
        if figures["mount"] == float("inf"):
            return dict.fromkeys(FIGURES, figures["mount"])
        figures["first byte of large"], _ = measured(lambda: open(mount + "/large", "rb", buffering=0).read(1))
        figures["walk"], paths = measured(lambda: walk(mount))
        figures["walk, warm"], _ = measured(lambda: walk(mount))
        paths = paths or []
        figures["read small"], size = measured(lambda: read_all(paths))
        figures["read small, warm"], again = measured(lambda: read_all(paths))
        assert None in (size, again) or size == again
        figures["100 random reads of large"], _ = measured(lambda: random_reads(mount + "/large"))
        figures["read large"], _ = measured(lambda: whole(mount + "/large"))
        figures["read large, warm"], _ = measured(lambda: whole(mount + "/large"))
        figures["read stored"], _ = measured(lambda: whole(mount + "/stored"))
        figures["memory, MiB"] = memory(process)
    finally:
        subprocess.run(["fusermount3", "-u", "-z", mount], stderr=subprocess.DEVNULL)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
    return figures


def main():
    bundlefs, folder = sys.argv[1:3]
    archive, unpacked, mount = folder + "/bench.zip", folder + "/unpacked", folder + "/mount"
    make(archive)
    with zipfile.ZipFile(archive) as content:
        content.extractall(unpacked)
    os.mkdir(mount)
    paths = {"ARCHIVE": archive, "UNPACKED": unpacked, "MOUNT": mount}
    table = {}
    for name, command in commands(bundlefs):
        if not shutil.which(command[0]):
            continue
        print("measuring %s" % name, file=sys.stderr)
        words = [paths.get(word, word) for word in command]
        rounds = [run(words, mount) for _ in range(ROUNDS)]
        table[name] = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
    print("%-28s" % "ms" + "".join("%18s" % name for name in table))
    for key in FIGURES:
        print("%-28s" % key + "".join("%18.1f" % figures[key] for figures in table.values()))


main()
