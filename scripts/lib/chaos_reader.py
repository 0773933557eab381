#!/usr/bin/env python3
"""Verifies files whose content has its own checksum, and measures how long reading takes.

chaos_reader.py --fill FOLDER COUNT    makes the files
chaos_reader.py --shut-down FOLDER     makes all accesses to a file system fail, as if its disk were removed
chaos_reader.py MOUNTPOINT REPORT      reads until SIGTERM; status 1 if a byte was wrong or the 99.9th percentile of the
                                    time for a file is more than 100 ms
"""
import fcntl
import hashlib
import os
import random
import signal
import struct
import sys
import time

LIMIT = 0.1


def fill(folder, count):
    for number in range(count):
        body = random.Random(number).randbytes(1000 + 37 * number)
        path = os.path.join(folder, "d%d" % (number % 5))
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "f%d" % number), "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)


def shut_down(folder):
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    # FS_IOC_SHUTDOWN with FS_SHUTDOWN_FLAGS_NOLOGFLUSH.
    fcntl.ioctl(descriptor, 0x8004587D, struct.pack("I", 2))
    os.close(descriptor)


def is_intact(content):
    return len(content) > 32 and hashlib.sha256(content[32:]).digest() == content[:32]


def read(root, report):
    paths = ["d%d/f%d" % (number % 5, number) for number in range(200)]
    times, wrong, stopped = [], [], []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    while not stopped and len(wrong) < 10:
        path = os.path.join(root, random.choice(paths))
        start = time.monotonic()
        try:
            with open(path, "rb") as file:
                content = file.read()
            if not is_intact(content):
                wrong.append("%s: wrong content, %d bytes" % (path, len(content)))
        except OSError as error:
            wrong.append("%s: %s" % (path, error))
        times.append(time.monotonic() - start)
        time.sleep(0.001)
    times.sort()
    late = times[min(len(times) - 1, int(len(times) * 0.999))]
    with open(report, "w") as file:
        file.write("%d reads, 99.9 %% within %.1f ms, the longest %.1f ms\n" % (len(times), late * 1e3, times[-1] * 1e3))
        file.writelines(line + "\n" for line in wrong)
    return not wrong and late <= LIMIT


if sys.argv[1] == "--fill":
    fill(sys.argv[2], int(sys.argv[3]))
elif sys.argv[1] == "--shut-down":
    shut_down(sys.argv[2])
else:
    sys.exit(0 if read(sys.argv[1], sys.argv[2]) else 1)
