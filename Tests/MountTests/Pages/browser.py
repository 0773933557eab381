"""Controls a headless Chromium with one page by commands and reports the page's state.

    browser.py CHROMIUM FOLDER COMMANDS X,Y...

FOLDER holds the browser's profile and temporary files. COMMANDS, usually a FIFO, has lines `load URL` or `reload`.
Once the page has loaded, each command prints a line of JSON: the navigation type, the page's text, the natural sizes
of its images in document order, and the colours of the pixels X,Y of a screenshot of 200 by 200 pixels. The browser
ends at the end of COMMANDS.
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

TIMEOUT = 60  # seconds for a reply of the browser
PR_SET_CHILD_SUBREAPER = 36
SIDE = 200  # width and height of the page in pixels
PAGE_STATE = """(async () => {
  await Promise.allSettled([...document.images].map(image => image.decode()));
  return {
    navigation: performance.getEntriesByType("navigation")[0].type,
    text: document.body.innerText.trim(),
    sizes: [...document.images].map(image => [image.naturalWidth, image.naturalHeight]),
  };
})()"""


class Browser:
    """The DevTools protocol over two pipes, the browser's descriptors 3 and 4."""

    def __init__(self, program, folder):
        self.events, self.pending, self.count, self.session = [], b"", 0, {}
        # Orphaned processes of the browser become children of this process.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        commands, self.to_browser = os.pipe()
        self.from_browser, replies = os.pipe()
        # Chromium's sandbox does not work as root, and the pages are trusted.
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--disable-breakpad", "--disable-background-networking", "--no-first-run", "--log-level=3"]
        words += ["--force-color-profile=srgb", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile"]
        # All of these are in FOLDER, so that nothing is left elsewhere.
        variables = ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{replies}', "bash", *words],
            pass_fds=[commands, replies], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**os.environ, **{variable: folder for variable in variables}})
        os.close(commands)
        os.close(replies)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        self.call("Page.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=SIDE, height=SIDE, deviceScaleFactor=1, mobile=False)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters, **self.session}
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") != self.count:
                self.events.append(reply)
            elif "error" in reply:
                raise RuntimeError(f"{method}: {reply['error']}")
            else:
                return reply["result"]

    def receive(self):
        deadline = time.monotonic() + TIMEOUT
        while b"\0" not in self.pending:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError("the browser does not reply")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has exited")
            self.pending += piece
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def event(self, method):
        """The next event of this name; earlier events are skipped."""
        while True:
            event = self.events.pop(0) if self.events else self.receive()
            if event.get("method") == method:
                return event["params"]

    def navigate(self, method, **parameters):
        """Loads or reloads the page and waits for its load event."""
        self.events.clear()
        self.call(method, **parameters)
        frame = self.event("Page.frameNavigated")["frame"]
        if "unreachableUrl" in frame:
            raise RuntimeError(f"{frame['unreachableUrl']} cannot be loaded")
        self.event("Page.loadEventFired")

    def page_state(self, points):
        found = self.call("Runtime.evaluate", expression=PAGE_STATE, awaitPromise=True, returnByValue=True)
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        rows, width = decoded(image)
        colours = [list(rows[y][x * width:][:3]) for x, y in points]
        return {**found["result"]["value"], "colours": colours}

    def end(self):
        """Closes the pipe, which ends the browser, and waits for all its processes."""
        os.close(self.to_browser)
        signal.signal(signal.SIGALRM, lambda *_: self.process.kill())
        signal.alarm(TIMEOUT // 2)
        try:
            while True:
                os.wait()
        except ChildProcessError:
            signal.alarm(0)


def decoded(png):
    """The rows of a PNG with 8 bits per channel, and the number of bytes per pixel."""
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    depth, colour, _, _, interlaced = png[24:29]
    if (depth, interlaced) != (8, 0) or colour not in (2, 6) or (width, height) != (SIDE, SIDE):
        raise RuntimeError(f"unexpected screenshot format: {png[16:29].hex()}")
    data, offset = b"", 8
    while offset < len(png):
        size = int.from_bytes(png[offset:offset + 4], "big")
        if png[offset + 4:offset + 8] == b"IDAT":
            data += png[offset + 8:offset + 8 + size]
        offset += size + 12
    data, step = zlib.decompress(data), 3 if colour == 2 else 4
    rows, above = [], bytes(width * step)
    for start in range(0, len(data), width * step + 1):
        above = unfiltered(data[start], data[start + 1:start + 1 + width * step], above, step)
        rows.append(above)
    return rows, step


def unfiltered(kind, line, above, step):
    """Reverses a PNG row filter."""
    row = bytearray()
    for index, byte in enumerate(line):
        up = above[index]
        left, corner = (row[index - step], above[index - step]) if index >= step else (0, 0)
        # min() returns the first of equal values, as PNG requires.
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
                print(json.dumps(browser.page_state(points)), flush=True)
    finally:
        browser.end()


if __name__ == "__main__":
    main()
