#!/usr/bin/env python3
"""deaths.py BUNDLEFS MINUTES [SEED]: kills the worker of a mount every 20 to 600 ms, while programs read and write.

Eight threads read files of folders and of a zip archive, keep some open or mapped, and check every byte; shells stand
in folders that do not change, and list and read them; the layers change by rename, removal and a new archive; four
threads post URLs, and a listener prints the results; the kernel's caches are dropped. Once a second everything is compared after a barrier. Fails at an error, a wrong byte, a lost or
doubled result, or if the holder's memory grows or reaches 4 MiB.
"""
import io
import json
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

PLAIN = ["d%d/f%d" % (folder, file) for folder in range(20) for file in range(20)]
PACKED = ["z/%d" % number for number in range(40)]
SIZES = [10, 100, 3000, 20000, 200000]


def body(name, version):
    """The content of a version of a file: a header with both, repeated."""
    size = SIZES[(version * 7 + len(name)) % len(SIZES)]
    header = b"%s|%d|%d\n" % (name.encode(), version, size)
    return header + (header * (size // len(header) + 1))[:size]


def is_whole(name, data):
    parts = data.split(b"\n", 1)[0].split(b"|")
    return len(parts) == 3 and parts[0].decode() == name and data == body(name, int(parts[1]))


class Layers:
    """Two folders and an archive over them, with the versions of their files."""

    def __init__(self, folder):
        self.folder, self.version, self.lock = folder, 0, threading.Lock()
        self.plain, self.packed, self.removed = {}, {}, {}
        for name in ("main", "over", "temporary"):
            os.mkdir(os.path.join(folder, name))
        for name in PLAIN:
            self.put("main", name)
            if random.random() < 0.2:
                self.put("over", name)
        for number in range(60):
            self.write(body("still", number), "over" if number % 4 else "main", "still", str(number % 3), str(number))
        self.pack(PACKED)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, data, *target):
        self.version += 1
        temporary = self.path("temporary", str(self.version))
        with open(temporary, "wb") as file:
            file.write(data)
        os.makedirs(os.path.dirname(self.path(*target)), exist_ok=True)
        os.rename(temporary, self.path(*target))

    def put(self, layer, name):
        self.write(body(name, self.version + 1), layer, name)
        self.plain.setdefault(name, {})[layer] = self.version

    def pack(self, changed):
        for name in changed:
            self.version += 1
            self.packed[name] = self.version
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for number, name in enumerate(PACKED):
                method = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
                info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                archive.writestr(info, body(name, self.packed[name]), method)
        self.write(buffer.getvalue(), "top.zip")

    def change(self, choose):
        with self.lock:
            name, layer = choose.choice(PLAIN), choose.choice(["main", "over", "over"])
            if choose.random() < 0.01:
                self.pack(choose.sample(PACKED, 5))
            elif choose.random() < 0.7:
                self.put(layer, name)
            elif layer in self.plain[name]:
                # A reader can meet the removal before the call returns.
                self.removed[name] = time.monotonic()
                os.unlink(self.path(layer, name))
                self.removed[name] = time.monotonic()
                del self.plain[name][layer]

    def expected(self, name):
        if name in self.packed:
            return body(name, self.packed[name])
        versions = self.plain[name]
        version = versions.get("over", versions.get("main"))
        return None if version is None else body(name, version)


class Run:
    def __init__(self, binary, seed):
        self.binary, self.seed = binary, seed
        random.seed(seed)
        self.folder = tempfile.mkdtemp(prefix="bundlefs-deaths.")
        self.point = os.path.join(self.folder, "mount")
        os.mkdir(self.point)
        self.layers = Layers(self.folder)
        self.faults, self.stopped = [], threading.Event()
        self.reads = self.kills = 0
        self.posted = [[] for _ in range(4)]

    def fault(self, text):
        self.faults.append(text)
        print("FAULT", text, flush=True)

    def mount(self):
        stack = "substitution=%s:%s" % (self.layers.path("top.zip"), self.layers.path("over"))
        # As many results as the writers make while a busy machine keeps the listener from running.
        stack += ",results=50000"
        command = [self.binary, self.layers.path("main"), self.point, "-o", stack, "-f"]
        self.log = open(os.path.join(self.folder, "log"), "w")
        self.holder = subprocess.Popen(command, stderr=self.log)
        while not os.path.exists(os.path.join(self.point, "d0")):
            time.sleep(0.01)
        with open(os.path.join(self.point, ".routes"), "w") as routes:
            routes.write("route Number i:A\n")
        self.results = open(os.path.join(self.folder, "results"), "w+")
        self.listener = subprocess.Popen([self.binary, "listen", self.point], stdout=self.results)
        self.shells = [self.shell(str(number)) for number in range(3)]
        time.sleep(0.5)

    def shell(self, folder):
        """Prints the same line again and again."""
        loop = "while echo $(ls | cksum) $(cat * | cksum); do sleep 0.01; done"
        output = open(os.path.join(self.folder, "shell" + folder), "w+")
        place = os.path.join(self.point, "still", folder)
        return subprocess.Popen(["sh", "-c", loop], cwd=place, stdout=output, stderr=output), output

    def workers(self):
        with open("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid)) as file:
            return [int(word) for word in file.read().split()]

    # Threads, each with its own random numbers.

    def read(self, choose):
        kept = []
        while not self.stopped.is_set():
            name = choose.choice(PLAIN if choose.random() < 0.6 else PACKED)
            try:
                self.read_file(name, choose, kept)
            except FileNotFoundError:
                pass
            except OSError as error:
                # Removed between its opening and its first read.
                lost = error.errno == 116 and time.monotonic() - self.layers.removed.get(name, 0) < 2
                if not lost:
                    self.fault("%s: %s" % (name, error))
        for _, descriptor, _, mapping in kept:
            os.close(descriptor)
            if mapping:
                mapping.close()

    def read_file(self, name, choose, kept):
        with open(os.path.join(self.point, name), "rb", buffering=0) as file:
            data = file.readall()
            self.reads += 1
            if not is_whole(name, data):
                return self.fault("%s: %d bytes are wrong: %r" % (name, len(data), data[:60]))
            if choose.random() < 0.05:
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if choose.random() < 0.5 else None
                kept.append((name, os.dup(file.fileno()), data, mapping))
        if len(kept) > 20:
            os.close(kept.pop(choose.randrange(len(kept)))[1])
        if kept:
            self.check_kept(*choose.choice(kept), choose)

    def check_kept(self, name, descriptor, data, mapping, choose):
        offset = choose.randrange(len(data))
        part = data[offset:offset + 5000]
        if os.pread(descriptor, 5000, offset) != part:
            self.fault("%s: an open file has changed" % name)
        if mapping and mapping[offset:offset + 5000] != part:
            self.fault("%s: a mapping has changed" % name)

    def change(self, choose):
        while not self.stopped.wait(0.003):
            self.layers.change(choose)

    def kill(self, choose):
        while not self.stopped.wait(choose.uniform(0.02, 0.6)):
            for worker in self.workers()[-1:]:
                os.kill(worker, signal.SIGKILL)
                self.kills += 1

    def drop_caches(self, choose):
        while not self.stopped.wait(0.7):
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write(choose.choice("123"))

    def post(self, choose, posted, number):
        descriptor = os.open(os.path.join(self.point, ".routes"), os.O_WRONLY)
        while not self.stopped.wait(0.002):
            urls = ["w%d:%d" % (number, len(posted) + index) for index in range(choose.choice([1, 1, 1, 5]))]
            data = "".join(url + "\n" for url in urls).encode()
            try:
                if os.write(descriptor, data) != len(data):
                    self.fault("a short write")
            except OSError as error:
                self.fault("post: %s" % error)
            posted += urls
        os.close(descriptor)

    # Checks.

    def compare(self):
        with self.layers.lock:
            subprocess.run([self.binary, "sync", self.point], timeout=60, check=True)
            for name in random.sample(PLAIN, 100) + PACKED:
                try:
                    with open(os.path.join(self.point, name), "rb") as file:
                        data = file.read()
                except FileNotFoundError:
                    data = None
                if data != self.layers.expected(name):
                    self.fault("%s is stale after a barrier" % name)
            for folder in range(20):
                prefix = "d%d/" % folder
                names = {name[len(prefix):] for name, layers in self.layers.plain.items() if layers
                         and name.startswith(prefix)}
                if set(os.listdir(os.path.join(self.point, prefix))) != names:
                    self.fault("the listing of %s is stale after a barrier" % prefix)

    def check_results(self):
        wanted = sum(map(len, self.posted))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.results.seek(0)
            # Those of the barriers' commands do not count.
            lines = [line for line in self.results.read().splitlines() if '"url":"w' in line]
            if len(lines) >= wanted:
                break
            time.sleep(0.1)
        urls = [json.loads(line)["url"] for line in lines]
        for number, posted in enumerate(self.posted):
            found = [url for url in urls if url.startswith("w%d:" % number)]
            if found != posted:
                self.fault("writer %d: results were lost, doubled or out of order: %s" % (
                    number, self.difference(posted, found)))

    @staticmethod
    def difference(posted, found):
        first = next((pair for pair in zip(posted, found) if pair[0] != pair[1]), ("the end",) * 2)
        return "%d instead of %d, %s instead of %s" % (len(found), len(posted), first[1], first[0])

    def check_shells(self):
        for shell, output in self.shells:
            output.seek(0)
            lines = output.read().splitlines()
            if shell.poll() is not None or len(lines) < 10 or len(set(lines)) > 1:
                self.fault("a shell printed: %s" % sorted(set(lines)))

    def memory(self):
        with open("/proc/%d/status" % self.holder.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    def run(self, seconds):
        self.mount()
        jobs = [self.read] * 8 + [self.change, self.kill, self.drop_caches]
        threads = [threading.Thread(target=job, args=(random.Random(self.seed + index),))
                   for index, job in enumerate(jobs)]
        threads += [threading.Thread(target=self.post, args=(random.Random(self.seed + number), posted, number))
                    for number, posted in enumerate(self.posted)]
        for thread in threads:
            thread.start()
        end, first = time.monotonic() + seconds, None
        while time.monotonic() < end and not self.faults:
            time.sleep(1)
            self.compare()
            first = first or self.memory()
        self.stopped.set()
        for thread in threads:
            thread.join()
        self.check_results()
        self.check_shells()
        last = self.memory()
        print("%d reads, %d deaths, %d results; the holder has %d KiB, %d at first" % (
            self.reads, self.kills, sum(map(len, self.posted)), last, first), flush=True)
        if last >= 4096 or last > first + 64:
            self.fault("the holder's memory")

    def end(self):
        self.stopped.set()
        self.listener.kill()
        for shell, _ in self.shells:
            shell.kill()
            shell.wait()
        subprocess.run([self.binary, "unmount", "--lazy", self.point])
        if self.holder.wait(30) != 0:
            self.fault("the holder's exit status")
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    run = Run(sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    try:
        run.run(float(sys.argv[2]) * 60)
    finally:
        run.end()
    sys.exit(bool(run.faults))


main()
