#!/usr/bin/env python3
"""sbom.py BUILT INSTALLED TIMESTAMP: prints what a program is made of, as an SPDX 2.3 document.

BUILT is the program as the linker made it, which says the versions of most of its parts; INSTALLED the one to be described, without
symbols. TIMESTAMP is in seconds since 1970. A part that is not in the program is left out.
"""

import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys

# A part, its licence, and where its version stands in the program: a pattern, or None if the program does not say it.
PARTS = [
    ("Swift runtime and Foundation", "Apache-2.0 WITH Swift-exception", rb"Swift version ([0-9.]+[0-9])"),
    ("ICU of Foundation", "Unicode-3.0", None),
    ("libstdc++ and libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1", rb"GCC: \([^)]*\) ([0-9.]+[0-9])"),
    ("zlib", "Zlib", rb" (?:in|de)flate ([0-9.]+[0-9]) Copyright"),
    ("bzip2", "bzip2-1.0.6", rb"\x00(1\.[0-9.]+[0-9]), [0-9]+-[A-Z][a-z]+-[0-9]{4}"),
    ("libfuse", "LGPL-2.1-only", None),
]
# What it loads when it is needed.
LOADED = ["libarchive", "libcurl", "isa-l", "libmicrohttpd", "utf8proc"]


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", name)


def package(name, licence, version):
    description = {
        "SPDXID": identifier(name),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    if version:
        description["versionInfo"] = version
    return description


def relation(kind, name, to="bundlefs"):
    return {"spdxElementId": identifier(name), "relationshipType": kind, "relatedSpdxElement": identifier(to)}


def parts(content, libfuse):
    """Yields a package for each part that is in the program. Foundation has ICU in it, and nothing else shows libfuse's."""
    versions = {name: re.search(pattern, content) for name, _, pattern in PARTS if pattern}
    for name, licence, pattern in PARTS:
        if pattern and versions[name]:
            yield package(name, licence, versions[name].group(1).decode())
        elif name == "ICU of Foundation" and versions["Swift runtime and Foundation"]:
            yield package(name, licence, None)
        elif name == "libfuse":
            yield package(name, licence, libfuse)


def main():
    built, installed, timestamp = sys.argv[1:]
    answer = subprocess.run([built, "-V"], capture_output=True, text=True, check=True).stdout
    version = answer.split()[1]
    libfuse = re.search(r"libfuse ([0-9.]+[0-9])", answer)
    hashed = hashlib.sha256(pathlib.Path(installed).read_bytes()).hexdigest()
    whole = package("bundlefs", "MIT", version)
    whole["checksums"] = [{"algorithm": "SHA256", "checksumValue": hashed}]
    inner = list(parts(pathlib.Path(built).read_bytes(), libfuse and libfuse.group(1)))
    loaded = [package(name, "NOASSERTION", None) for name in LOADED]
    created = datetime.datetime.fromtimestamp(int(timestamp), datetime.timezone.utc)
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"bundlefs-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/bundlefs-{version}-{hashed}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: bundlefs-package"]},
        "packages": [whole] + inner + loaded,
        "relationships": [relation("DESCRIBES", "DOCUMENT")]
        + [relation("STATIC_LINK", "bundlefs", part["name"]) for part in inner]
        + [relation("OPTIONAL_DEPENDENCY_OF", part["name"]) for part in loaded],
    }
    print(json.dumps(document, indent=1))


main()
