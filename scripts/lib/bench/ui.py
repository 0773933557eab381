#!/usr/bin/env python3
"""ui.py BUNDLEFS PROBE FOLDER ROUNDS CHROMIUM: what a page of `bundlefs ui` costs a mount, and how soon it shows 100,000 entries.

FOLDER has main, substitution, and lists of files and folders, as scripts/bench makes them. Accesses are measured without a page,
with one that is open and idle, and while 1,000 files a second change in a layer without and with one. They take turns. Of each
access the elapsed time is printed, the least of three runs, and the processor time, the daemon's included, which is steadier
on a busy machine.
"""
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
POINT = os.path.join(FOLDER, "mounts", "ui")
KINDS = {"stat": "files", "open": "files", "read": "files", "list": "folders", "missing": "missing"}
IDLE, SETTLING = 5, 1  # seconds
RUNS = 3
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

    def processor_time(self):
        """In seconds."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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


def processor_time(holder):
    """Of a mount's processes so far, in ns."""
    total, pending = 0, [holder]
    while pending:
        process = pending.pop()
        tasks = f"/proc/{process}/task"
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat") as times, open(f"{tasks}/{task}/children") as children:
                total += int(times.read().split()[0])
                pending += [int(child) for child in children.read().split()]
    return total


def probed(mount, count, *arguments):
    """The elapsed and the processor time of each of so many accesses, in ns."""
    before = processor_time(mount.process.pid)
    output = subprocess.run([PROBE, *arguments], check=True, capture_output=True, text=True).stdout
    elapsed, processor = (float(word) for word in output.split()[:2])
    return elapsed, processor + (processor_time(mount.process.pid) - before) / count


def note(times, name, runs):
    """The least of the elapsed and of the processor times."""
    for what, values in zip(("elapsed", "processor"), zip(*runs)):
        times.setdefault(what, {}).setdefault(name, []).append(min(values))


def forgotten(mount, count, *arguments):
    """The page has touched the tree when it was opened: the kernel forgets it again."""
    subprocess.run([BUNDLEFS, "invalidate", POINT], check=True)
    time.sleep(SETTLING)
    return probed(mount, count, *arguments)


def access(mount, times):
    files, folders = (len(listed(path(name))) for name in ("files", "folders"))
    for kind, names in KINDS.items():
        # The probe repeats the list many times, so that the daemon's time for other work does not count.
        note(times, "warm " + kind, [probed(mount, 1 << 40, "warm", POINT, kind, path(names)) for _ in range(RUNS)])
    note(times, "first walk", [forgotten(mount, files + folders, "walk", POINT) for _ in range(RUNS)])
    note(times, "first read", [forgotten(mount, files, "once", POINT, "read", path("files")) for _ in range(RUNS)])


def measure(window, times, has_page, changes_files):
    with ExitStack() as stack:
        mount = stack.enter_context(Mount(BUNDLEFS, [path("substitution"), path("main")], POINT))
        run_probe(PROBE, "walk", POINT)
        run_probe(PROBE, "pass", POINT, "list", path("folders"), "stat", path("files"), "read", path("files"))
        run_probe(PROBE, "pass", POINT, "missing", path("missing"))
        page = stack.enter_context(Page(window, POINT)) if has_page else None
        if changes_files:
            stack.enter_context(changes())
        time.sleep(SETTLING)
        if page:
            before = page.processor_time()
            time.sleep(IDLE)
            times.setdefault("page", []).append((page.processor_time() - before) / IDLE)
        access(mount, times)


def print_costs(variants, what):
    """Each second variant beside the one before it; the ratio is the median of those of the rounds."""
    print("%-20s" % f"µs, {what}" + "".join("%20s" % name for name, *_ in variants))
    for name in variants[0][1][what]:
        row = "%-20s" % name
        for index, (_, times, *_) in enumerate(variants):
            cell = "%.2f" % (statistics.median(times[what][name]) / 1000)
            if index % 2:
                pairs = zip(times[what][name], variants[index - 1][1][what][name])
                cell += " (%.2f)" % statistics.median(one / other for one, other in pairs)
            row += "%20s" % cell
        print(row)


def measure_large(window):
    """100 folders of 1,000 empty files each."""
    for folder in range(100):
        os.makedirs(path(f"large/main/folder{folder}"), exist_ok=True)
        for file in range(1000):
            open(path(f"large/main/folder{folder}/file{file}"), "w").close()
    os.makedirs(path("large/substitution"), exist_ok=True)
    loads, scrolls = [], []
    with Mount(BUNDLEFS, [path("large/substitution"), path("large/main")], POINT), Page(window, POINT):
        script = window.browser.call("Page.addScriptToEvaluateOnNewDocument", source=NOTE_ROWS)["identifier"]
        for _ in range(ROUNDS):
            window.load(window.eval("location.href"))
            window.wait("window.allRows > 0")
            loads.append(window.eval("[window.firstRows, window.allRows]"))
            scrolls.append(window.eval(SCROLL))
        window.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    shutil.rmtree(path("large"))
    median = [statistics.median(values) for values in zip(*loads)]
    print("100,100 entries: first rows after %.0f ms, all after %.0f ms; goal for the first ones: 1000 ms" % tuple(median))
    blank = sum(scroll[0] for scroll in scrolls)
    frame, slow = (statistics.median(scroll[index] for scroll in scrolls) for index in (1, 2))
    print("Scrolling: %d blank frames of %d, %.0f ms a frame, 95 %% within %.0f ms" % (blank, 301 * ROUNDS, frame, slow))


def main():
    browser_folder = path("browser")
    os.makedirs(browser_folder, exist_ok=True)
    window = Window(CHROMIUM, browser_folder)
    try:
        variants = [("no page", {}, False, False), ("page idle", {}, True, False),
                    ("changes", {}, False, True), ("page following", {}, True, True)]
        for number in range(ROUNDS):
            turn = number % len(variants)
            for _, times, *how in variants[turn:] + variants[:turn]:
                measure(window, times, *how)
        for what in ("elapsed", "processor"):
            print_costs(variants, what)
        for name, times, *_ in variants[1::2]:
            print("%s: bundlefs ui takes %.1f ms of processor time a second" % (name, 1000 * statistics.median(times["page"])))
        measure_large(window)
    finally:
        window.browser.end()
        shutil.rmtree(path("substitution/changes"), ignore_errors=True)


if IS_WRITER:
    change_files(sys.argv[2])
main()
