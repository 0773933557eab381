"""Uses a page in a headless Chromium as a person does, by commands.

    ui_browser.py CHROMIUM FOLDER COMMANDS

FOLDER holds the browser's profile and temporary files. COMMANDS, usually a FIFO, has a line of JSON for each command,
and each prints a line of JSON: {"value": ...} or {"error": "..."}. The browser ends at the end of COMMANDS.

    {"load": URL}                     loads a page and waits for its load event
    {"eval": EXPRESSION}              the value of an expression, or of its promise
    {"wait": EXPRESSION}              waits until an expression is true, and returns its value
    {"keys": ["Tab", "a", ...]}       presses keys, with modifiers as "Control+z"
    {"text": TEXT}                    types
    {"click": SELECTOR}               clicks the middle of an element
    {"drag": [SELECTOR, SELECTOR]}    drags the first element onto the second
    {"size": [WIDTH, HEIGHT]}         sets the size of the window
    {"scheme": "dark"}                sets the colour scheme
    {"picture": FILE}                 writes a screenshot
    {"page": NUMBER}                  switches to another page, which is made when it is new
    {"names": true}                   the role of each control that has no name for screen readers
    {"faults": true}                  the exceptions, errors of the console and refused contents so far
"""

import base64
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Pages"))

from browser import Browser  # noqa: E402

WAIT = 150  # seconds for a condition
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
CODES = {
    "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowLeft": 37,
    "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "Backspace": 8,
}
CONTROLS = {
    "button", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch", "slider", "tree", "treeitem", "link",
    "image", "img", "audio", "video", "log", "region",
}
TEXTS = {"Enter": "\r", " ": " "}
# The middle of an element, once it stays where it is and nothing covers it.
MIDDLE = """(async () => {
  let before = "";
  for (let frame = 0; frame < 300; frame += 1) {
    const node = document.querySelector(%s);
    node?.scrollIntoView({ block: "nearest" });
    await new Promise(resolve => requestAnimationFrame(resolve));
    const box = node?.getBoundingClientRect();
    const point = box && [box.x + box.width / 2, box.y + box.height / 2];
    if (point && String(point) === before && node.contains(document.elementFromPoint(...point))) return point;
    before = String(point);
  }
  throw new Error("not found at rest: " + %s);
})()"""


class Window:
    """The pages of a browser."""

    def __init__(self, program, folder):
        self.browser = Browser(program, folder)
        self.faults, self.sessions, self.metrics = [], {0: self.browser.session}, (1280, 800)
        self.prepare()

    def prepare(self):
        for domain in ("Runtime", "Log"):
            self.browser.call(f"{domain}.enable")
        self.size(self.metrics)

    def page(self, number):
        if number not in self.sessions:
            self.browser.session = {}
            target = self.browser.call("Target.createTarget", url="about:blank", newWindow=True)["targetId"]
            attached = self.browser.call("Target.attachToTarget", targetId=target, flatten=True)
            self.sessions[number] = self.browser.session = {"sessionId": attached["sessionId"]}
            self.browser.call("Page.enable")
            self.prepare()
        self.browser.session = self.sessions[number]
        # A page in the background draws nothing.
        self.browser.call("Page.bringToFront")

    def load(self, url):
        self.collect()
        self.browser.navigate("Page.navigate", url=url)
        # An address with a token leads on to the page.
        deadline = time.monotonic() + WAIT
        while "?token=" in url and not self.has_page():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{url} does not lead on")
            time.sleep(0.02)

    def has_page(self):
        try:
            return self.eval("!location.search && document.readyState === 'complete'")
        except RuntimeError:
            return False  # The page is being replaced.

    def eval(self, expression):
        reply = self.browser.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return reply["result"].get("value")

    def wait(self, expression):
        deadline = time.monotonic() + WAIT
        while True:
            value = self.eval(expression)
            # An element has the value {}.
            if value not in (None, False, 0, ""):
                return value
            if time.monotonic() > deadline:
                raise RuntimeError(f"not true within {WAIT} s: {expression}; {self.eval('document.body.innerText')}")
            time.sleep(0.02)

    def keys(self, keys):
        for key in keys:
            *modifiers, name = key.split("+") if len(key) > 1 else [key]
            bits = sum(MODIFIERS[modifier] for modifier in modifiers)
            code = CODES.get(name, ord(name.upper()) if len(name) == 1 else 0)
            text = TEXTS.get(name, name if len(name) == 1 else "") if bits in (0, 8) else ""
            event = {"key": name, "modifiers": bits, "windowsVirtualKeyCode": code, "code": name}
            self.browser.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
            self.browser.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def text(self, text):
        self.browser.call("Input.insertText", text=text)

    def mouse(self, kind, point, buttons):
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], button="left",
                          buttons=buttons, clickCount=1)

    def click(self, selector):
        point = self.eval(MIDDLE % (json.dumps(selector), json.dumps(selector)))
        self.mouse("mousePressed", point, 1)
        self.mouse("mouseReleased", point, 0)

    def drag(self, selectors):
        start, end = (self.eval(MIDDLE % (json.dumps(selector), json.dumps(selector))) for selector in selectors)
        self.mouse("mousePressed", start, 1)
        for step in range(1, 11):
            self.mouse("mouseMoved", [a + (b - a) * step / 10 for a, b in zip(start, end)], 1)
        self.mouse("mouseReleased", end, 0)

    def size(self, size):
        self.metrics = size
        self.browser.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    def scheme(self, scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.browser.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, file):
        png = self.browser.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(png))

    def names(self, _):
        """Of what is shown."""
        self.browser.call("Accessibility.enable")
        nodes = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        shown = [node for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") in CONTROLS]
        if len(shown) < 5:
            raise RuntimeError(f"only {len(shown)} controls of {len(nodes)} nodes")
        return [node["role"]["value"] for node in shown if not node.get("name", {}).get("value", "").strip()]

    def collect(self):
        for event in self.browser.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.faults.append(details.get("exception", {}).get("description", details["text"]))
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                self.faults.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        self.browser.events.clear()

    def collected(self, _):
        self.eval("0")
        self.collect()
        return self.faults


def main():
    program, folder, commands = sys.argv[1:]
    window = Window(program, folder)
    verbs = {verb: getattr(window, verb) for verb in
             ("load", "eval", "wait", "keys", "text", "click", "drag", "size", "scheme", "picture", "page", "names")}
    verbs["faults"] = window.collected
    try:
        with open(commands) as lines:
            for line in lines:
                (verb, value), = json.loads(line).items()
                try:
                    print(json.dumps({"value": verbs[verb](value)}), flush=True)
                except RuntimeError as error:
                    print(json.dumps({"error": str(error)}), flush=True)
    finally:
        window.browser.end()


if __name__ == "__main__":
    main()
