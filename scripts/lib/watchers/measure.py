"""Measures which events programs that watch a mount report for changes in its layers, and how soon.

measure.py MOUNT MAIN SUBSTITUTION ROUNDS FOLDER: prints a table in Markdown. FOLDER has the watchers that are scripts.
"""

import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import time

TIMEOUT = 2.5  # seconds to wait for an event
POLLING_TIMEOUT = 15.0  # the same for watchers that poll
QUIET = 0.03  # seconds without a line that end the events of a change


class Layers:
    """Makes the changes, and knows the names that they concern."""

    def __init__(self, main, substitution):
        self.main, self.substitution = main + "/d", substitution + "/d"
        # The number of the last change; each watcher gets its own.
        self.number = 0

    @staticmethod
    def write(path, text="content\n", mode="w"):
        with open(path, mode) as file:
            file.write(text)

    def prepare(self, kind):
        over = f"{self.substitution}/file"
        n = self.number = self.number + 1
        if kind == "fall back":
            self.write(over, f"override {n}\n")
        elif kind == "override" and os.path.exists(over):
            os.remove(over)
        elif kind in ("delete", "rename"):
            self.write(f"{self.main}/{kind}-{n}")

    def make(self, kind):
        n = self.number
        file = f"{self.main}/file"
        if kind == "create":
            self.write(f"{self.main}/create-{n}")
        elif kind == "modify":
            self.write(file, f"line {n}\n", "a")
        elif kind == "override":
            self.write(f"{self.substitution}/file", f"override {n}\n")
        elif kind == "fall back":
            os.remove(f"{self.substitution}/file")
        elif kind == "delete":
            os.remove(f"{self.main}/delete-{n}")
        elif kind == "rename":
            os.rename(f"{self.main}/rename-{n}", f"{self.main}/renamed-{n}")
        elif kind == "new directory":
            os.mkdir(f"{self.main}/directory-{n}")
        elif kind == "chmod":
            os.chmod(file, 0o600 if n % 2 else 0o644)

    def name(self, kind):
        n = self.number
        return {
            "create": f"create-{n}",
            "delete": f"delete-{n}",
            "rename": rf"renamed?-{n}",
            "new directory": f"directory-{n}",
        }.get(kind, "file")


KINDS = ["create", "modify", "override", "fall back", "delete", "rename", "new directory", "chmod"]


class Watcher:
    """A program that watches the mount, and the lines that it prints."""

    # The changes that a watch on one file can report.
    of_file = ["modify", "override", "fall back", "chmod"]
    # Seconds to wait before the next change.
    settling = 0.05

    def __init__(self, title, command, pattern=None, kinds=KINDS, timeout=TIMEOUT):
        self.title, self.command, self.pattern, self.kinds = title, command, pattern, kinds
        self.timeout, self.process, self.rest = timeout, None, b""

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        time.sleep(1)
        self.lines(QUIET)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.rest = b""

    def lines(self, seconds):
        """The lines with their times, until there were none for that many seconds."""
        found = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.process.stdout], [], [], left)[0]:
                break
            now = time.monotonic()
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                time.sleep(left)
                break
            *whole, self.rest = (self.rest + piece).split(b"\n")
            found += [(now, line.decode()) for line in whole]
            end = now + (QUIET if found else seconds)
        return found

    def event(self, line, name):
        """The event that a line reports for a name; None if it concerns another name."""
        if self.pattern is None:
            return "output"
        match = re.fullmatch(self.pattern.replace("NAME", f"(?:{name})"), line)
        return match and match[1]


def measured(watcher, layers, kind, rounds):
    """A cell of the table."""
    events, delays, misses = [], [], 0
    watcher.start()
    polls = watcher.timeout != TIMEOUT
    for _ in range(rounds if not polls else max(2, rounds // 50)):
        layers.prepare(kind)
        # A polling watcher must have seen the previous state.
        watcher.lines(POLLING_TIMEOUT if polls else watcher.settling)
        while watcher.lines(QUIET):
            pass
        start = time.monotonic()
        layers.make(kind)
        found = []
        while not found and (left := start + watcher.timeout - time.monotonic()) > 0:
            for when, line in watcher.lines(left):
                event = watcher.event(line, layers.name(kind))
                if event:
                    found.append((when, event))
        events += [event for event in dict.fromkeys(event for _, event in found) if event not in events]
        if found:
            delays.append((found[0][0] - start) * 1000)
        else:
            misses += 1
            if misses == 3:
                break
    watcher.stop()
    if not delays:
        return "nothing"
    p99 = sorted(delays)[min(len(delays) - 1, round(len(delays) * 0.99))]
    cell = f"{', '.join(events)}: {number(statistics.median(delays))} / {number(p99)}"
    return cell + (f" ({misses} of {len(delays) + misses} missed)" if misses else "")


def number(milliseconds):
    return f"{max(milliseconds, 0):.1f}" if milliseconds < 100 else f"{milliseconds:.0f}"


NODE = "require('fs').watch(process.argv[1], (event, name) => console.log(event, name))"


def watchers(mount, folder):
    d, file = f"{mount}/d", f"{mount}/d/file"
    found = [
        Watcher("inotifywait", ["inotifywait", "-q", "-m", "-r", "--format", "%f %e", mount], r"NAME (\S+?)(?:,CLOSE)?"),
        Watcher("watchdog", ["/usr/bin/python3", f"{folder}/watchdog_lines.py", mount], r"(\w+) .*/NAME"),
        Watcher("Node", ["node", "-e", NODE, d], r"(\w+) NAME"),
        Watcher("gio monitor", ["gio", "monitor", "-d", d], r".*/NAME: ([a-z ]+?)(?: to .*)?"),
        Watcher(
            "tail -F",
            ["tail", "-n", "0", "-F", file],
            kinds=["modify", "override", "fall back"],
            timeout=POLLING_TIMEOUT,
        ),
        Watcher("entr", ["sh", "-c", f"echo '{file}' | entr -n echo changed"], kinds=Watcher.of_file),
    ]
    found[-1].settling = 0.5
    for watcher in found:
        program = watcher.command[0] if watcher.command[0] != "sh" else "entr"
        if not shutil.which(program):
            sys.exit(f"watchers: {program} is missing; --install installs it")
    return found


def main():
    mount, below, above, rounds, folder = sys.argv[1:]
    layers = Layers(below, above)
    os.makedirs(layers.main)
    os.makedirs(layers.substitution)
    layers.write(f"{layers.main}/file")
    time.sleep(0.2)
    columns = watchers(mount, folder)
    print("| change | " + " | ".join(watcher.title for watcher in columns) + " |", flush=True)
    print("|---" * (len(columns) + 1) + "|", flush=True)
    for kind in KINDS:
        cells = [
            measured(watcher, layers, kind, int(rounds)) if kind in watcher.kinds else "–" for watcher in columns
        ]
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


main()
