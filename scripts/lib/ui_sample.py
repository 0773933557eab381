"""Makes a sample bundle with three layers, for pictures of the page of `bundlefs ui`.

    ui_sample.py FOLDER

FOLDER gets Aurora.app, the bundle, and the layers brand, hotfix and french.zip.
"""

import math
import pathlib
import struct
import sys
import wave
import zipfile
import zlib

INFO = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
\t<key>CFBundleDevelopmentRegion</key>
\t<string>en</string>
\t<key>CFBundleIdentifier</key>
\t<string>org.example.aurora</string>
\t<key>CFBundleName</key>
\t<string>{name}</string>
\t<key>CFBundleShortVersionString</key>
\t<string>{version}</string>
\t<key>LSMinimumSystemVersion</key>
\t<string>13.0</string>
\t<key>NSHighResolutionCapable</key>
\t<true/>
</dict>
</plist>
"""

STYLE = """:root {{
  --accent: {accent};
  --radius: {radius};
  --gap: 12px;
}}

body {{
  margin: 0;
  font: 16px/1.5 system-ui;
  color: #202124;
}}

.button {{
  padding: 8px 16px;
  border-radius: var(--radius);
  background: var(--accent);
}}

.card {{
  gap: var(--gap);
  border: 1px solid #dadce0;
}}
"""

ENGLISH = {
    "welcome.title": "Welcome to Aurora", "welcome.subtitle": "The sky, wherever you are.",
    "forecast.tonight": "Tonight", "forecast.tomorrow": "Tomorrow", "alert.title": "Strong activity expected",
    "alert.body": "Look north after %@.", "settings.units": "Units", "settings.alerts": "Alerts",
    "share.button": "Share…", "error.offline": "You are offline.",
}
FRENCH = {
    "welcome.title": "Bienvenue dans Aurora", "welcome.subtitle": "Le ciel, où que vous soyez.",
    "forecast.tonight": "Cette nuit", "forecast.tomorrow": "Demain", "settings.units": "Unités",
    "share.button": "Partager…",
}
FRENCH_MOD = {**FRENCH, "welcome.title": "Bienvenue sur Aurora", "alert.title": "Forte activité prévue"}


def table(strings):
    return "".join(f'"{key}" = "{value}";\n' for key, value in strings.items())


def logo(first, second):
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="240" height="160" viewBox="0 0 240 160">
<path d="M20 130C60 20 90 20 120 80S190 140 220 30" fill="none" stroke="{first}" stroke-width="22" stroke-linecap="round"/>
<circle cx="186" cy="112" r="18" fill="{second}"/>
</svg>
"""


def png(width, height, colour):
    rows = b"".join(b"\0" + bytes(byte for x in range(width) for byte in colour(x / width, y / height)) for y in range(height))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def sky(bottom, ribbon):
    """A night sky with a ribbon of light."""
    def colour(x, y):
        light = math.exp(-((y - 0.45 - 0.16 * math.sin(5 * x)) ** 2) / 0.012)
        return [min(255, int(base * y + glow * light + 14)) for base, glow in zip(bottom, ribbon)]
    return png(320, 200, colour)


def tone(path):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(n * 0.5) * math.exp(-n / 1500))) for n in range(4000)))


def write(root, path, content):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def make(folder):
    main, brand, hotfix = (pathlib.Path(folder) / name for name in ("Aurora.app", "brand", "hotfix"))
    resources = "Contents/Resources"
    write(main, "Contents/Info.plist", INFO.format(name="Aurora", version="2.4"))
    write(main, f"{resources}/logo.svg", logo("#2f6fde", "#9fc4ff"))
    write(main, f"{resources}/images/sky.png", sky((20, 30, 80), (40, 220, 140)))
    for name in ("cloud", "moon", "star", "sun"):
        write(main, f"{resources}/images/icons/{name}.svg", logo("#5f6b7a", "#c6ced8"))
    write(main, f"{resources}/styles/app.css", STYLE.format(accent="#2f6fde", radius="6px"))
    write(main, f"{resources}/help/index.html", "<!doctype html>\n<title>Help</title>\n<h1>Aurora Help</h1>\n")
    write(main, f"{resources}/help/legacy.html", "<!doctype html>\n<h1>Aurora 1 Help</h1>\n")
    write(main, f"{resources}/en.lproj/Localizable.strings", table(ENGLISH))
    write(main, f"{resources}/fr.lproj/Localizable.strings", table(FRENCH))
    write(main, f"{resources}/stations.dat", struct.pack("<64d", *[n * 1.25 for n in range(64)]))
    (main / resources / "sounds").mkdir()
    tone(main / resources / "sounds/chime.wav")
    write(main, "Contents/MacOS/Aurora", b"\x7fELF\x02\x01\x01" + bytes(500))
    write(brand, f"{resources}/logo.svg", logo("#c2366b", "#ffc2d6"))
    write(brand, f"{resources}/images/sky.png", sky((70, 16, 60), (250, 120, 170)))
    write(brand, f"{resources}/images/icons/sun.svg", logo("#c2366b", "#ffd75e"))
    write(brand, f"{resources}/images/banner.svg", logo("#7a2048", "#ffb3cc"))
    write(brand, f"{resources}/styles/app.css", STYLE.format(accent="#c2366b", radius="14px"))
    write(brand, "Contents/Info.plist", INFO.format(name="Aurora for Acme", version="2.4"))
    write(hotfix, f"{resources}/styles/app.css", STYLE.format(accent="#b02d5f", radius="14px").replace("#dadce0", "#c4c7cc"))
    write(hotfix, f"{resources}/help/.wh.legacy.html", "")
    with zipfile.ZipFile(pathlib.Path(folder) / "french.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{resources}/fr.lproj/Localizable.strings", table(FRENCH_MOD))
        archive.writestr(f"{resources}/fr.lproj/help.html", "<!doctype html>\n<h1>Aide d’Aurora</h1>\n")


if __name__ == "__main__":
    make(sys.argv[1])
