#!/usr/bin/env python3
"""ui.py BUNDLEFS PROBE FOLDER ROUNDS CHROMIUM: what a page of `bundlefs ui` costs a mount, and how soon it shows 100,000 entries.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Two mounts of these take turns access
by access: one without a page, and one with a page that is open and idle, or that follows 1,000 changed files a second of a layer
of both. Of each access the elapsed time is printed, and the processor time, the daemon's included, which is steadier on a busy
machine. What the page's own processes take is printed beside.
"""
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

sys.dont_write_bytecode = True
PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
sys.path.append(os.path.join(PROJECT, "Tests/MountTests/UI"))
from mounting import Mount, listed, run_probe  # noqa: E402
from ui_browser import Window  # noqa: E402

IS_WRITER = sys.argv[1] == "--change"
BUNDLEFS, PROBE, FOLDER, ROUNDS, CHROMIUM = [""] * 5 if IS_WRITER else sys.argv[1:4] + [int(sys.argv[4]), sys.argv[5]]
POINTS = [os.path.join(FOLDER, "mounts", name) for name in ("without", "with")]
KINDS = {"stat": "files", "open": "files", "read": "files", "list": "folders", "missing": "missing"}
IDLE, SETTLING = 5, 1  # seconds
PAIRS = 3 * ROUNDS
SHOWN = "document.querySelector('.connection')?.textContent === 'Live' && " \
    "!!document.querySelector('.entry') && !document.getElementById('files-count').textContent.endsWith('…')"
# The milliseconds from the navigation to the first frame with rows, and to the whole list.
NOTE_ROWS = """(() => {
  const look = () => {
    const rows = document.querySelectorAll(".entry:not([hidden])").length;
    const text = document.getElementById("files-count")?.textContent ?? "…";
    if (rows > 5) window.firstRows ??= performance.now();
    if (window.firstRows && !text.endsWith("…") && text !== "") { window.allRows = performance.now(); return; }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""
# Frames of a scroll in which no row is at the list's top, middle or end, and the milliseconds between two frames.
SCROLL = """(async () => {
  const list = document.getElementById("files-list");
  const frame = () => new Promise(resolve => requestAnimationFrame(resolve));
  const times = [];
  let [blank, before] = [0, await frame()];
  for (let step = 0; step <= 300; step += 1) {
    list.scrollTop = step % 4 === 3 ? list.scrollHeight * step / 300 : list.scrollTop + 900;
    const box = list.getBoundingClientRect();
    const isRow = y => document.elementFromPoint(box.x + 60, y)?.closest(".entry");
    const now = await frame();
    times.push(now - before);
    before = now;
    if (!isRow(box.y + 3) || !isRow(box.y + box.height / 2) || !isRow(box.y + box.height - 8)) blank += 1;
  }
  times.sort((a, b) => a - b);
  return [blank, times[times.length >> 1], times[Math.floor(times.length * 0.95)]];
})()"""


def path(name):
    return os.path.join(FOLDER, name)


class Page:
    """`bundlefs ui`, and its page in the browser."""

    def __init__(self, window, point):
        self.window = window
        self.process = subprocess.Popen([BUNDLEFS, "ui", point, "--no-open"], stdout=subprocess.PIPE, text=True)
        window.load(self.process.stdout.readline().strip())
        window.wait(SHOWN)

    def processor_times(self):
        """Of the server and of the browser so far, in seconds."""
        return [processor_time(process.pid) / 1e9 for process in (self.process, self.window.browser.process)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.window.load("about:blank")
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def changes():
    """Changes a thousand files of a layer in turn, each once a second."""
    process = subprocess.Popen([sys.executable, "-B", __file__, "--change", path("substitution/changes")])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def change_files(folder):
    os.makedirs(folder, exist_ok=True)
    files = [os.path.join(folder, f"changing{number}") for number in range(1000)]
    start, done = time.monotonic(), 0
    while True:
        with open(files[done % len(files)], "w") as file:
            file.write(f"{done}\n")
        done += 1
        time.sleep(max(0, start + done / 1000 - time.monotonic()))


def processor_time(process):
    """Of a process and those that it has started so far, in ns."""
    total, pending = 0, [process]
    while pending:
        process = pending.pop()
        tasks = f"/proc/{process}/task"
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/schedstat") as times, open(f"{tasks}/{task}/children") as children:
                    total += int(times.read().split()[0])
                    pending += [int(child) for child in children.read().split()]
            except OSError:
                pass  # A thread has ended.
    return total


def probed(mount, count, *arguments):
    """The elapsed and the processor time of each of so many accesses, in ns."""
    before = processor_time(mount.process.pid)
    output = subprocess.run([PROBE, *arguments], check=True, capture_output=True, text=True).stdout
    elapsed, processor = (float(word) for word in output.split()[:2])
    return elapsed, processor + (processor_time(mount.process.pid) - before) / count


def forgotten(mount, count, *arguments):
    """The first touch, which a page has done when it was opened: the kernel forgets it again."""
    subprocess.run([BUNDLEFS, "invalidate", mount.point], check=True)
    time.sleep(SETTLING)
    return probed(mount, count, *arguments)


def accesses():
    """By name: a function of a mount."""
    files, folders = (len(listed(path(name))) for name in ("files", "folders"))
    warm = {"warm " + kind: lambda mount, kind=kind, names=names: probed(mount, math.inf, "warm", mount.point, kind, path(names))
            for kind, names in KINDS.items()}
    return {**warm, "first walk": lambda mount: forgotten(mount, files + folders, "walk", mount.point),
            "first read": lambda mount: forgotten(mount, files, "once", mount.point, "read", path("files"))}


def compare(mounts):
    """Prints the medians of both mounts, and of the ratios of neighbours in time."""
    for name, access in accesses().items():
        runs = ([], [])
        for number in range(PAIRS):
            for index in (0, 1) if number % 2 else (1, 0):
                runs[index].append(access(mounts[index]))
        row = "%-14s" % name
        for what in (0, 1):
            without, with_page = ([run[what] for run in one] for one in runs)
            ratios = sorted(one / other for one, other in zip(with_page, without))
            row += "%12.2f%12.2f%8.3f (%.2f to %.2f)" % (
                statistics.median(without) / 1000, statistics.median(with_page) / 1000, statistics.median(ratios),
                ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4])
        print(row, flush=True)


def measure(window, title, changes_files):
    with ExitStack() as stack:
        mounts = [stack.enter_context(Mount(BUNDLEFS, [path("substitution"), path("main")], point)) for point in POINTS]
        for point in POINTS:
            run_probe(PROBE, "pass", point, "list", path("folders"), "stat", path("files"), "read", path("files"))
            run_probe(PROBE, "pass", point, "missing", path("missing"))
        page = stack.enter_context(Page(window, POINTS[1]))
        if changes_files:
            stack.enter_context(changes())
        time.sleep(SETTLING)
        before = page.processor_times()
        time.sleep(IDLE)
        own, browser = (1000 * (now - then) / IDLE for now, then in zip(page.processor_times(), before))
        print("\n%s: bundlefs ui takes %.1f ms of processor time a second, the browser %.0f ms" % (title, own, browser))
        print("%-14s" % "µs an access" + "".join("%12s%12s%8s%15s" % (f"{what},", "with a page", "ratio", "quartiles")
                                                 for what in ("elapsed", "processor")))
        compare(mounts)


def measure_large(window):
    """100 folders of 1,000 empty files each."""
    for folder in range(100):
        os.makedirs(path(f"large/main/folder{folder}"), exist_ok=True)
        for file in range(1000):
            open(path(f"large/main/folder{folder}/file{file}"), "w").close()
    os.makedirs(path("large/substitution"), exist_ok=True)
    loads, scrolls = [], []
    with Mount(BUNDLEFS, [path("large/substitution"), path("large/main")], POINTS[0]), Page(window, POINTS[0]):
        script = window.browser.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE_ROWS)["identifier"]
        for _ in range(ROUNDS):
            window.load(window.eval("location.href"))
            window.wait("window.allRows > 0")
            loads.append(window.eval("[window.firstRows, window.allRows]"))
            scrolls.append(window.eval(SCROLL))
        window.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    shutil.rmtree(path("large"))
    median = [statistics.median(values) for values in zip(*loads)]
    print("\n100,100 entries: first rows after %.0f ms, all after %.0f ms; goal for the first ones: 1000 ms" % tuple(median))
    blank = sum(scroll[0] for scroll in scrolls)
    frame, slow = (statistics.median(scroll[index] for scroll in scrolls) for index in (1, 2))
    print("Scrolling: %d blank frames of %d, %.0f ms a frame, 95 %% within %.0f ms" % (blank, 301 * ROUNDS, frame, slow))


def main():
    browser_folder = path("browser")
    os.makedirs(browser_folder, exist_ok=True)
    window = Window(CHROMIUM, browser_folder)
    try:
        measure(window, "A page that is open and idle", False)
        measure(window, "A page that follows 1,000 changes a second", True)
        measure_large(window)
    finally:
        window.browser.end()
        shutil.rmtree(path("substitution/changes"), ignore_errors=True)


if IS_WRITER:
    change_files(sys.argv[2])
main()
