"""replace.py BUNDLEFS READS: replaces archives in every way while eight processes read them.

A zip, a tar and a tar.gz archive are mounted. Each has three versions with equal names and sizes, one of which is live.
Fails if a reader gets a content that no version has: a mixture. Reads may fail where content was lost or is damaged.
"""
import collections
import errno
import hashlib
import io
import multiprocessing
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

READERS = 8
FORMATS = ["zip", "tar", "tar.gz"]
# Small ones are verified before their first byte is returned, large ones while they are read.
SIZES = [300, 4000, 90_000, 250_000, 400_000, 2_500_000]
# Seconds without a replacement, at most. Meanwhile, readers find whole archives, and many more of their reads succeed.
REST = 0.5
LOST = {errno.ESTALE, errno.EIO, errno.ENOENT}


def content(version, size):
    """As large as said, and of another version than any byte of it could be."""
    block = b"".join(hashlib.sha256(b"%d %d %d" % (version, size, n)).hexdigest().encode() for n in range(1000))
    return (block * (size // len(block) + 1))[:size]


def entries(version):
    for size in SIZES:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
            # Of large ones one of each method is enough.
            for number in range(6 if size < 5000 else 1):
                yield "%d-%d-%d" % (size, method, number), method, content(version, size)


def make(form, version):
    output = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(output, "w") as archive:
            for name, method, data in entries(version):
                archive.writestr(zipfile.ZipInfo(name), data, method, 1)
        return output.getvalue()
    with tarfile.open(fileobj=output, mode="w:" + form[4:], **({"compresslevel": 1} if form == "tar.gz" else {})) as archive:
        for name, _, data in entries(version):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return output.getvalue()


def damaged(data, source):
    data = bytearray(data)
    for _ in range(20):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return bytes(data)


KINDS = ["renamed", "copied", "truncated", "overwritten", "damaged", "damaged in place"]


class Live:
    """The file that is mounted, and the ways to replace it."""

    def __init__(self, path, versions, seed):
        self.path, self.versions, self.random = path, versions, random.Random(seed)
        # Without checksums, a half overwritten tar archive is as good as any.
        self.kinds = KINDS[:2] if path.endswith(".tar") else KINDS
        self.rename(versions[0])

    def rename(self, data):
        with open(self.path + ".new", "wb") as file:
            file.write(data)
        os.rename(self.path + ".new", self.path)

    def pause(self):
        time.sleep(self.random.random() * 0.03)

    def write_slowly(self, data, flags):
        """In place, in pieces."""
        file = os.open(self.path, os.O_WRONLY | flags)
        cuts = sorted(self.random.sample(range(len(data)), 3))
        for start, end in zip([0] + cuts, cuts + [len(data)]):
            os.pwrite(file, data[start:end], start)
            self.pause()
        os.ftruncate(file, len(data))
        os.close(file)

    def replace(self):
        data = self.random.choice(self.versions)
        kind = self.random.choice(self.kinds)
        if kind == "renamed":
            self.rename(data)
        elif kind == "truncated":
            os.truncate(self.path, self.random.randrange(len(data)))
            self.pause()
            self.write_slowly(data, 0)
        elif kind == "copied":
            self.write_slowly(data, os.O_TRUNC)
        elif kind == "overwritten":
            self.write_slowly(data, 0)
        else:
            bad = damaged(data, self.random)
            if kind == "damaged":
                self.rename(bad)
            else:
                self.write_slowly(bad, 0)
            self.pause()
            self.rename(data)
        return kind

    def replace_until(self, is_over, kinds):
        while not is_over.is_set():
            kinds[self.replace()] += 1
            # Every other time at once again, and otherwise once readers have had time to read what is there.
            is_over.wait(self.random.choice([0, self.random.random() * REST]))


def read_all(points, sums, counts, failures, seed):
    """Reads files at random, and counts them by outcome, until it is killed."""
    source = random.Random(seed)
    names = list(sums)
    while True:
        point, name = source.choice(points), source.choice(names)
        piece = source.choice([1000, 50_000, 1 << 20])
        if source.random() < 0.5 and int(name.split("-")[0]) > 300_000:
            continue
        whole, outcome = hashlib.md5(), 0
        try:
            with open(os.path.join(point, name), "rb", buffering=0) as file:
                while part := file.read(piece):
                    whole.update(part)
        except OSError as error:
            outcome = 1 if error.errno in LOST else 2
        if outcome == 0 and whole.digest() not in sums[name]:
            outcome = 2
        if outcome == 2:
            failures.put("%s/%s" % (os.path.basename(point), name))
        with counts.get_lock():
            counts[outcome] += 1


def main():
    bundlefs, reads = sys.argv[1], int(sys.argv[2])
    sums = collections.defaultdict(set)
    for version in range(3):
        for name, _, data in entries(version):
            sums[name].add(hashlib.md5(data).digest())
    counts, failures = multiprocessing.Array("Q", 3), multiprocessing.Queue()
    kinds = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        live, points = [], []
        readers, writers = [], []
        is_over = threading.Event()
        try:
            for seed, form in enumerate(FORMATS):
                live.append(Live("%s/live.%s" % (folder, form), [make(form, version) for version in range(3)], seed))
                point = "%s/%s" % (folder, form)
                os.mkdir(point)
                subprocess.run([bundlefs, live[-1].path, point, "-o", "cache_size=8M"], check=True)
                points.append(point)
            readers = [
                multiprocessing.Process(
                    target=read_all, args=(points, dict(sums), counts, failures, seed), daemon=True)
                for seed in range(READERS)
            ]
            for reader in readers:
                reader.start()
            writers = [threading.Thread(target=each.replace_until, args=(is_over, kinds)) for each in live]
            for writer in writers:
                writer.start()
            while sum(counts[:]) < reads and not counts[2]:
                time.sleep(0.1)
                if not all(each.is_alive() for each in readers + writers):
                    sys.exit("a reader or a writer died")
        finally:
            is_over.set()
            for writer in writers:
                writer.join()
            for reader in readers:
                reader.kill()
                reader.join()
            for point in points:
                subprocess.run([bundlefs, "unmount", "--lazy", point])
    print("%d reads of all of a file, %d that failed, %d mixed" % tuple(counts[:]))
    print(", ".join("%d %s" % (count, kind) for kind, count in kinds.most_common()))
    while not failures.empty():
        print("mixed: " + failures.get())
    sys.exit(1 if counts[2] or not counts[0] else 0)


main()
