"""Measures what announcing costs: the daemon's processor time for changes in a layer, and the time of a git checkout.

cost.py BUNDLEFS FOLDER CHANGES: prints a table in Markdown.
"""

import json
import os
import subprocess
import sys
import time

FILES = 1000


def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more).stdout


class Mount:
    """A mount of two layers, one of them a repository with two branches."""

    def __init__(self, bundlefs, folder, announce):
        self.bundlefs, self.point = bundlefs, f"{folder}/mount"
        self.main, self.over = f"{folder}/main", f"{folder}/over"
        for path in (self.main, self.over, self.point):
            os.makedirs(path)
        self.commit()
        self.daemon = subprocess.Popen(
            [bundlefs, self.main, self.point, "-f", "-o", f"substitution={self.over},announce={announce}"]
        )
        # If this fails, scripts/watchers unmounts.
        while not os.path.ismount(self.point):
            time.sleep(0.01)
        # Fills the kernel's caches.
        for folder, _, names in os.walk(self.point):
            for name in names:
                os.stat(f"{folder}/{name}")

    def commit(self):
        def git(*words):
            run("git", "-C", self.over, "-c", "user.name=x", "-c", "user.email=x@example.org", *words)

        git("init", "-q", "-b", "one", ".")
        for branch in ("one", "two"):
            if branch == "two":
                git("checkout", "-q", "-b", branch)
            for n in range(FILES):
                os.makedirs(f"{self.over}/d{n % 10}", exist_ok=True)
                with open(f"{self.over}/d{n % 10}/f{n}", "w") as file:
                    file.write(f"{branch} {n}\n")
            git("add", "-A")
            git("commit", "-qm", branch)

    def processor_time(self):
        """The daemon's, in milliseconds, once it is idle."""
        last = None
        while True:
            run(self.bundlefs, "sync", self.point)
            fields = open(f"/proc/{self.daemon.pid}/stat").read().rpartition(")")[2].split()
            now = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
            if now == last:
                return now
            last = now
            time.sleep(0.5)

    def measured(self, work):
        """Milliseconds until the work is visible in the mount, and of the daemon's processor time."""
        before = self.processor_time()
        start = time.monotonic()
        work()
        run(self.bundlefs, "sync", self.point)
        return (time.monotonic() - start) * 1000, self.processor_time() - before

    def change(self, count):
        for n in range(count):
            with open(f"{self.over}/d{n % 10}/f{n % FILES}", "w") as file:
                file.write(f"change {n}\n")
            # The pace of a user's tools rather than of a burst.
            time.sleep(0.002)

    def checkout(self):
        for branch in ("one", "two") * 2:
            run("git", "-C", self.over, "checkout", "-qf", branch)

    def close(self):
        status = json.loads(run(self.bundlefs, "status", self.point, "--json"))
        if status["fallbacks"] or status["overflows"]:
            sys.exit("watchers: inotify's limits (sysctl fs.inotify) are too low here to measure this")
        run(self.bundlefs, "unmount", self.point)
        self.daemon.wait()


def main():
    bundlefs, folder, changes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    print("| | announce=off | announce=on |\n|---|---|---|")
    found = {}
    for announce in ("off", "on"):
        mount = Mount(bundlefs, f"{folder}/{announce}", announce)
        _, single = mount.measured(lambda: mount.change(changes))
        checkout, daemon = mount.measured(mount.checkout)
        mount.close()
        found[announce] = (
            f"{single * 1000 / changes:.0f} µs",
            f"{checkout / 4:.0f} ms",
            f"{daemon / 4:.0f} ms",
        )
    rows = (
        "the daemon's processor time for a file that is rewritten",
        f"git checkout of {FILES} files in a layer, until all is visible",
        "the daemon's processor time for it",
    )
    for row, off, on in zip(rows, found["off"], found["on"]):
        print(f"| {row} | {off} | {on} |")


main()
