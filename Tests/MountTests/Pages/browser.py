"""A headless Chromium with one page, as a program that is told what to do and tells what is seen.

    browser.py CHROMIUM FOLDER COMMANDS X,Y...

FOLDER takes the browser's profile and temporary files. COMMANDS is read line by line, commonly a FIFO: `load URL`,
or `reload`, as the button in a browser does it. Each is answered, once the page has loaded, by a line of JSON: how
the page was navigated to, its text, the natural sizes of its images in document order, and the colours of the
pixels at the points X,Y of a screenshot of 200 by 200 pixels. The browser ends with the commands.
"""

import base64
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import zlib

PATIENCE = 60  # seconds for an answer of the browser
PR_SET_CHILD_SUBREAPER = 36
SIDE = 200  # of the page, in pixels
SEEN = """(async () => {
  await Promise.allSettled([...document.images].map(image => image.decode()));
  return {
    navigation: performance.getEntriesByType("navigation")[0].type,
    text: document.body.innerText.trim(),
    sizes: [...document.images].map(image => [image.naturalWidth, image.naturalHeight]),
  };
})()"""


class Browser:
    """Speaks the DevTools protocol over two pipes, which the browser has as descriptors 3 and 4."""

    def __init__(self, program, folder):
        self.events, self.pending, self.count, self.session = [], b"", 0, {}
        # What the browser's processes leave running becomes a child of this one.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        told, self.to_browser = os.pipe()
        self.from_browser, telling = os.pipe()
        # Root has no sandbox, and the pages are our own.
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--disable-breakpad", "--disable-background-networking", "--no-first-run", "--log-level=3"]
        words += ["--force-color-profile=srgb", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile"]
        # The home, too: nothing is left outside the folder.
        places = ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{told} 4>&{telling}', "bash", *words],
            pass_fds=[told, telling], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**os.environ, **{place: folder for place in places}})
        os.close(told)
        os.close(telling)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        self.call("Page.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=SIDE, height=SIDE, deviceScaleFactor=1, mobile=False)

    def call(self, method, **parameters):
        """The result of a method of the protocol."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters, **self.session}
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def receive(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.pending:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.pending += piece
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def event(self, method):
        """The next event of that name; those before it are passed over."""
        while True:
            event = self.events.pop(0) if self.events else self.receive()
            if event.get("method") == method:
                return event["params"]

    def navigate(self, method, **parameters):
        """Loads, or reloads, and waits until all that belongs to the page is there."""
        self.events.clear()
        self.call(method, **parameters)
        frame = self.event("Page.frameNavigated")["frame"]
        if "unreachableUrl" in frame:
            raise RuntimeError(f"{frame['unreachableUrl']} cannot be loaded")
        self.event("Page.loadEventFired")

    def seen(self, points):
        found = self.call("Runtime.evaluate", expression=SEEN, awaitPromise=True, returnByValue=True)
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        rows, width = decoded(image)
        colours = [list(rows[y][x * width:][:3]) for x, y in points]
        return {**found["result"]["value"], "colours": colours}

    def end(self):
        """The browser ends when its pipe does; returns when all its processes have."""
        os.close(self.to_browser)
        signal.signal(signal.SIGALRM, lambda *_: self.process.kill())
        signal.alarm(PATIENCE // 2)
        try:
            while True:
                os.wait()
        except ChildProcessError:
            signal.alarm(0)


def decoded(png):
    """The rows of a PNG of 8 bits a channel, and the count of bytes that a pixel has in them."""
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    depth, colour, _, _, interlaced = png[24:29]
    if (depth, interlaced) != (8, 0) or colour not in (2, 6) or (width, height) != (SIDE, SIDE):
        raise RuntimeError(f"a screenshot of another kind: {png[16:29].hex()}")
    data, place = b"", 8
    while place < len(png):
        size = int.from_bytes(png[place:place + 4], "big")
        if png[place + 4:place + 8] == b"IDAT":
            data += png[place + 8:place + 8 + size]
        place += size + 12
    data, step = zlib.decompress(data), 3 if colour == 2 else 4
    rows, above = [], bytes(width * step)
    for start in range(0, len(data), width * step + 1):
        above = unfiltered(data[start], data[start + 1:start + 1 + width * step], above, step)
        rows.append(above)
    return rows, step


def unfiltered(kind, line, above, step):
    """A row whose bytes are differences to a guess from their neighbours."""
    row = bytearray()
    for index, byte in enumerate(line):
        up = above[index]
        left, corner = (row[index - step], above[index - step]) if index >= step else (0, 0)
        # In a draw the first wins: min() returns it.
        paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
        row.append(byte + (0, left, up, (left + up) // 2, paeth)[kind] & 0xff)
    return bytes(row)


def main():
    program, folder, commands, *points = sys.argv[1:]
    points = [tuple(map(int, point.split(","))) for point in points]
    browser = Browser(program, folder)
    try:
        with open(commands) as lines:
            for line in lines:
                command, *url = line.split()
                if command == "load":
                    browser.navigate("Page.navigate", url=url[0])
                else:
                    browser.navigate("Page.reload")
                print(json.dumps(browser.seen(points)), flush=True)
    finally:
        browser.end()


main()
