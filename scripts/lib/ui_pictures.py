"""Makes the guide's pictures of the page of `bundlefs ui` from a sample bundle, in both colour schemes.

    ui_pictures.py BUNDLEFS CHROMIUM FOLDER

FOLDER gets ui-NAME.png and ui-NAME~dark.png for each view and for a report of 'bundlefs diff --html'.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

project = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(project / "Tests/MountTests" / folder) for folder in ("UI", "Pages")]

import ui_sample  # noqa: E402
from browser import unfiltered  # noqa: E402
from ui_browser import Window  # noqa: E402

LOADED = "document.querySelector('.connection').textContent === 'Live' && !!document.querySelector('.entry')"
RESOURCES = "Contents/Resources"
LIMIT = 150_000  # bytes
SETTLED = 0.4  # seconds for images and animations
REPORT = "/srv/aurora/report.html"
WORK = pathlib.Path("/srv/aurora")  # shown in the pictures; made and removed again


def row(path):
    return f'.entry:not([hidden])[title="{path}"]'


def select(window, path):
    """Scrolls to an entry and clicks it."""
    for top in range(0, 2000, 200):
        window.eval(f"document.getElementById('files-list').scrollTop = {top}")
        time.sleep(0.1)
        if window.eval(f"!!document.querySelector({json.dumps(row(path))})"):
            break
    window.click(row(path))


def files(window):
    select(window, f"{RESOURCES}/logo.svg")
    window.wait("!!document.querySelector('.swipe')")


def difference(window):
    select(window, f"{RESOURCES}/styles/app.css")
    window.wait("!!document.querySelector('.lines .is-plus')")


def strings(window):
    window.click("#strings-tab")
    window.wait("!!document.querySelector('.string-row.is-missing')")


def activity(window):
    window.click("nav [data-view=activity]")
    for count, changed in enumerate((WORK / "brand" / RESOURCES / "images/sky.png", WORK / "hotfix" / RESOURCES / "styles/app.css"), 1):
        changed.write_bytes(changed.read_bytes())
        window.wait(f"document.querySelectorAll('#feed > li').length >= {count}")
    for count, url in enumerate(("aurora://forecast/Troms%C3%B8/3", "rsrc:///logo.svg"), 1):
        window.eval(f"document.getElementById('route-url').value = {json.dumps(url)}")
        window.click("#route-form [value=post]")
        window.wait(f"document.querySelectorAll('.result').length >= {count}")


def narrow(window):
    window.size((400, 720))
    window.click("nav [data-view=files]")
    select(window, f"{RESOURCES}/images/sky.png")
    window.wait("!!document.querySelector('.swipe')")


VIEWS = (files, difference, strings, activity, narrow)


def smaller(file):
    """Compresses a large picture again without filters, which suits areas of one colour better, but takes long."""
    png = file.read_bytes()
    if len(png) <= LIMIT:
        return
    width, height = struct.unpack(">2I", png[16:24])
    chunks, offset = [], 8
    while offset < len(png):
        size = struct.unpack(">I", png[offset:offset + 4])[0]
        chunks.append((png[offset + 4:offset + 8], png[offset + 8:offset + 8 + size]))
        offset += size + 12
    step = {2: 3, 6: 4}[png[25]]
    data = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    rows, above = [], bytes(width * step)
    for start in range(0, len(data), width * step + 1):
        above = unfiltered(data[start], data[start + 1:start + 1 + width * step], above, step)
        rows.append(b"\0" + above)
    parts = [(b"IHDR", png[16:29]), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts]
    file.write_bytes(png[:8] + b"".join(packed))


def photograph(window, address, folder):
    for scheme, suffix in (("light", ""), ("dark", "~dark")):
        window.scheme(scheme)
        window.size((1280, 640))
        window.load(address)
        window.wait(LOADED)
        # The first address works once.
        address = window.eval("location.href")
        for view in VIEWS:
            view(window)
            time.sleep(SETTLED)
            file = folder / f"ui-{view.__name__}{suffix}.png"
            window.picture(file)
            smaller(file)
        window.size((1280, 800))
        window.browser.call("Emulation.setScrollbarsHidden", hidden=True)
        window.load(f"file://{REPORT}")
        time.sleep(SETTLED)
        file = folder / f"ui-report{suffix}.png"
        window.picture(file)
        window.browser.call("Emulation.setScrollbarsHidden", hidden=False)
        smaller(file)


def main():
    program, chromium, folder = sys.argv[1:]
    WORK.mkdir()
    with tempfile.TemporaryDirectory() as profile:
        ui_sample.make(WORK)
        point = WORK / "mount"
        point.mkdir()
        routes = WORK / "routes"
        routes.write_text("route ForecastNotification aurora://l:(forecast)Kind/s:City/i:Days\n")
        options = f"substitution=hotfix:brand:french.zip,strings=merge,routes={routes}"
        subprocess.run([program, "Aurora.app", point, "-o", options], cwd=WORK, check=True)
        environment = {**os.environ, "XDG_CONFIG_HOME": str(WORK)}
        subprocess.run([program, "layers", point, "save", "Relaunch"], env=environment, check=True)
        subprocess.run([program, "diff", point, "--html", REPORT], check=True)
        server = subprocess.Popen(
            [program, "ui", point, "--no-open"], env=environment, stdout=subprocess.PIPE, text=True)
        window = None
        try:
            address = server.stdout.readline().strip()
            window = Window(chromium, profile)
            photograph(window, address, pathlib.Path(folder))
        finally:
            # The browser's end waits for all children.
            server.terminate()
            if window:
                window.browser.end()
            server.wait()
            subprocess.run([program, "unmount", point], check=True)
            shutil.rmtree(WORK)


main()
