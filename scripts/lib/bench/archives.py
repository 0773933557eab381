#!/usr/bin/env python3
"""archives.py BUNDLEFS FOLDER [FILES MIB ROUNDS [PART…]]: measures archives mounted by bundlefs and its installed peers.

Prints a table: times in ms (the median of ROUNDS, in which they take turns), and the daemons' memory; then the goals. One
process mounts, walks and reads each peer. Each PART (all, unless some are named) has an archive: small FILES small
entries (20000) and two of MIB (128), many 50 times as many empty entries, huge one deflated entry of 8 times MIB. FOLDER
is empty or has the archives of an earlier run, which are measured again; it is not cleared.
"""
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time
import zipfile

FILES, LARGE, ROUNDS = [int(word) for word in sys.argv[3:6]] or [20000, 128, 3]
PARTS = sys.argv[6:] or ["small", "many", "huge"]
LARGE <<= 20
MANY = 50 * FILES
HUGE = 8 * LARGE


def entry(name, method=zipfile.ZIP_DEFLATED):
    """fuse-zip fails if the mode has no file type, and does not find entries in directories that have no entry."""
    info = zipfile.ZipInfo(name)
    info.compress_type = method
    info.external_attr = (0o40755 if name.endswith("/") else 0o100644) << 16
    return info


def make(path):
    """Small deflated files in directories of a hundred, a large deflated and a large stored one."""
    source = random.Random(1)
    text = b"".join(b"%d %s\n" % (n, source.choice([b"alpha", b"beta", b"gamma", b"delta"])) for n in range(4000))
    piece = bytes(source.getrandbits(6) for _ in range(1 << 20))
    with zipfile.ZipFile(path, "w", compresslevel=1) as archive:
        for folder in ["tree/"] + ["tree/%03d/" % n for n in range((FILES + 99) // 100)]:
            archive.writestr(entry(folder), b"")
        for n in range(FILES):
            start = source.randrange(len(text) - 4000)
            name = "tree/%03d/%05d.txt" % (n // 100, n)
            archive.writestr(entry(name), text[start : start + source.randrange(100, 4000)])
        for name, method in (("large", zipfile.ZIP_DEFLATED), ("stored", zipfile.ZIP_STORED)):
            with archive.open(entry(name, method), "w") as file:
                for n in range(LARGE >> 20):
                    file.write(b"%08d" % n + piece[8:])


def make_many(path):
    """An archive of MANY empty entries in directories of a hundred, at changing times."""
    # Python takes a minute to write it by zipfile.
    directory, offset = [], 0
    with open(path, "wb") as file:
        for n in range(MANY):
            name = b"%03d/%03d/file-%07d.txt" % (n // 100000, n // 100 % 1000, n)
            common = struct.pack("<HHHIIIIHH", 20, 0, 0, 0x504320A3 + n % 1000 * 32, 0, 0, 0, len(name), 0)
            file.write(b"PK\3\4" + common + name)
            rest = struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, offset)
            directory.append(b"PK\1\2\x14\x03" + common + rest + name)
            offset += 30 + len(name)
        size = sum(map(len, directory))
        file.writelines(directory)
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, MANY, MANY, size, offset))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, size, offset, 0))


def make_huge(path):
    source = random.Random(3)
    piece = b"".join(b"%d %d\n" % (n, source.getrandbits(40)) for n in range(60000))[: 1 << 20]
    with zipfile.ZipFile(path, "w", compresslevel=1) as archive:
        with archive.open(entry("huge"), "w", force_zip64=True) as file:
            for n in range(HUGE >> 20):
                file.write(b"%08d" % n + piece[8:])


def make_empty(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", b"")


def commands(bundlefs):
    yield "bundlefs", [bundlefs, "ARCHIVE", "MOUNT", "-f"]
    yield "fuse-zip", ["fuse-zip", "-f", "-r", "ARCHIVE", "MOUNT"]
    yield "mount-zip", ["mount-zip", "-f", "ARCHIVE", "MOUNT"]
    yield "archivemount", ["archivemount", "-f", "-o", "readonly", "ARCHIVE", "MOUNT"]
    yield "ratarmount", ["ratarmount", "-f", "--index-file", ":memory:", "ARCHIVE", "MOUNT"]
    yield "bundlefs, folder", [bundlefs, "UNPACKED", "MOUNT", "-f"]


def wait_for(mount, process, name):
    while not os.path.ismount(mount) or not os.path.exists(mount + "/" + name):
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


def first_pass(path):
    """Reads all of a file, and has the kernel forget it."""
    whole(path, HUGE)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seeks(path):
    """The mean of a hundred reads of a page, each at another place."""
    source = random.Random(4)
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for _ in range(100):
            assert len(os.pread(file.fileno(), 4096, source.randrange(HUGE - 4096) & ~4095)) == 4096


def whole(path, size=LARGE):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        count = 0
        while part := file.readinto(buffer):
            count += part
    assert count == size


def processes(process):
    """The ids of a process and its children: bundlefs works in a child."""
    children = open("/proc/%d/task/%d/children" % (process.pid, process.pid)).read()
    return [process.pid] + [int(word) for word in children.split()]


def memory(process, key="VmHWM"):
    """MiB, of all processes."""
    lines = [line for each in processes(process) for line in open("/proc/%d/status" % each)]
    return sum(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def processor_time(process):
    """Milliseconds, of all processes."""
    fields = [open("/proc/%d/stat" % each).read().rsplit(")", 1)[1].split() for each in processes(process)]
    return sum(int(each[11]) + int(each[12]) for each in fields) * 1000 / os.sysconf("SC_CLK_TCK")


class TooSlow(Exception):
    """A step took too long."""


def give_up(*_):
    raise TooSlow


# Seconds for a step, and for each that follows one that took longer.
LIMIT, LATER_LIMIT = 20, 3
limit = LIMIT
FIGURES = [
    "mount", "first byte of large", "walk", "walk, warm", "read small", "read small, warm",
    "100 random reads of large", "memory, MiB",
]
LARGE_FIGURES = ["read large", "read large, warm", "read stored"]
MANY_FIGURES = ["mount of many", "processor time for many", "bytes for each of many"]
HUGE_FIGURES = ["read huge", "a seek in huge", "memory after huge, MiB"]
# Cold reads, as a share of the fastest peer's time; others in the table's units.
SHARES = {"read small": 0.7, "read large": 0.7}
GOALS = {"processor time for many": 1000 * MANY / 1e6, "bytes for each of many": 100, "a seek in huge": 20}
signal.signal(signal.SIGALRM, give_up)


def measured(body):
    """Milliseconds, infinite after a timeout or failure, and the result."""
    global limit
    start = time.perf_counter()
    signal.alarm(limit)
    try:
        result = body()
    except (TooSlow, OSError) as error:
        limit = LATER_LIMIT
        print("  %r" % error, file=sys.stderr)
        return float("inf"), None
    finally:
        signal.alarm(0)
    return (time.perf_counter() - start) * 1000, result


def mounted(command, mount, name, figures, body):
    """As `measured_mount`, but kills a process that leaves a reader in a wait that no signal interrupts."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watchdog = threading.Timer(3 * LIMIT, process.kill)
    watchdog.start()
    try:
        return measured_mount(process, mount, name, figures, body)
    finally:
        watchdog.cancel()


def measured_mount(process, mount, name, figures, body):
    """Figures of one mount by name: those that the body returns, infinite ones if it cannot be mounted."""
    global limit
    limit = LIMIT
    try:
        time_to_mount, _ = measured(lambda: wait_for(mount, process, name))
        if time_to_mount == float("inf"):
            return dict.fromkeys(figures, time_to_mount)
        return dict(zip(figures, [time_to_mount] + body(process)))
    finally:
        subprocess.run(["fusermount3", "-u", "-z", mount], stderr=subprocess.DEVNULL)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def small_and_large(mount, process):
    first, _ = measured(lambda: open(mount + "/large", "rb", buffering=0).read(1))
    cold_walk, paths = measured(lambda: walk(mount))
    warm_walk, _ = measured(lambda: walk(mount))
    paths = paths or []
    cold, size = measured(lambda: read_all(paths))
    warm, again = measured(lambda: read_all(paths))
    assert None in (size, again) or size == again
    reads, _ = measured(lambda: random_reads(mount + "/large"))
    return [first, cold_walk, warm_walk, cold, warm, reads, memory(process)]


def large(mount):
    """Of a mount of its own, so that nothing is decompressed before."""
    return [measured(lambda: whole(mount + name))[0] for name in ("/large", "/large", "/stored")]


def many(empty, process):
    time.sleep(0.5)
    return [processor_time(process), (memory(process, "RssAnon") - empty) * (1 << 20) / MANY]


def huge(mount, process):
    first, _ = measured(lambda: first_pass(mount + "/huge"))
    seek, _ = measured(lambda: seeks(mount + "/huge")) if first < float("inf") else (first, None)
    return [first, seek / 100, memory(process)]


def round_of(command, folder):
    """One round: the figures by name."""
    mount = folder + "/mount"

    def words(archive, unpacked=folder + "/unpacked"):
        paths = {"ARCHIVE": archive, "UNPACKED": unpacked, "MOUNT": mount}
        return [paths.get(word, word) for word in command]

    figures = {}
    if "small" in PARTS:
        figures = mounted(
            words(folder + "/bench.zip"), mount, "large", FIGURES, lambda process: small_and_large(mount, process))
        values = mounted(
            words(folder + "/bench.zip"), mount, "large", [""] + LARGE_FIGURES, lambda process: large(mount))
        figures |= {key: values.get(key, float("inf")) for key in LARGE_FIGURES}
    if "UNPACKED" in command:
        return figures
    if "many" in PARTS:
        empty = mounted(
            words(folder + "/empty.zip"), mount, "x", ["", "memory"], lambda process: [memory(process, "RssAnon")])
        figures |= mounted(
            words(folder + "/many.zip"), mount, "000", MANY_FIGURES, lambda process: many(empty["memory"], process))
    if "huge" in PARTS:
        values = mounted(
            words(folder + "/huge.zip"), mount, "huge", [""] + HUGE_FIGURES, lambda process: huge(mount, process))
        figures |= {key: values.get(key, float("inf")) for key in HUGE_FIGURES}
    return figures


def print_goals(table):
    ours = table["bundlefs"]
    for key, share in SHARES.items() if "small" in PARTS else []:
        peers = [figures[key] for name, figures in table.items() if not name.startswith("bundlefs")]
        if peers:
            reached = ours[key] / min(peers)
            print("%-28s%8.2f of the fastest peer's time; goal %.2f" % (key, reached, share))
    for key, goal in GOALS.items():
        if key in ours:
            print("%-28s%8.1f; goal %.1f" % (key, ours[key], goal))


def main():
    bundlefs, folder = sys.argv[1:3]
    makers = {"bench.zip": make, "many.zip": make_many, "huge.zip": make_huge, "empty.zip": make_empty}
    for name, maker in makers.items():
        if not os.path.exists(folder + "/" + name):
            maker(folder + "/" + name)
    if not os.path.exists(folder + "/unpacked"):
        with zipfile.ZipFile(folder + "/bench.zip") as content:
            content.extractall(folder + "/unpacked")
    os.makedirs(folder + "/mount", exist_ok=True)
    installed = [(name, command) for name, command in commands(bundlefs) if shutil.which(command[0])]
    rounds = {name: [] for name, _ in installed}
    for number in range(ROUNDS):
        for name, command in installed:
            print("measuring %s, round %d" % (name, number + 1), file=sys.stderr)
            rounds[name].append(round_of(command, folder))
    table = {
        name: {key: statistics.median(each[key] for each in figures) for key in figures[0]}
        for name, figures in rounds.items()
    }
    print("%-28s" % "ms" + "".join("%18s" % name for name in table))
    for key in FIGURES + LARGE_FIGURES + MANY_FIGURES + HUGE_FIGURES:
        if any(key in figures for figures in table.values()):
            print("%-28s" % key + "".join("%18.1f" % figures.get(key, float("nan")) for figures in table.values()))
    print_goals(table)


main()
