"""foreign_archives.py make FORMAT FILE: writes an archive by bsdtar, cpio, ar or gcab, or byte by byte (rar, rar5, lzh).
foreign_archives.py compare FILE FOLDER: extracts an archive by bsdtar, compares it with a folder, and prints differences.

FORMAT is one of `FORMATS`.
"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

BSDTAR = {
    "newc": ["--format=newc"], "odc": ["--format=cpio"], "cpio.gz": ["--format=newc", "--gzip"],
    "iso": ["--format=iso9660"], "joliet.iso": ["--format=iso9660", "--options=!rockridge"],
    "zisofs.iso": ["--format=iso9660", "--options=zisofs"], "xar": ["--format=xar"],
    "tar.lz4": ["--lz4"], "tar.lz": ["--lzip"], "tar.lzma": ["--lzma"], "tar.Z": ["--compress"],
}
CPIO = {"bin.cpio": "bin", "gnu.cpio": "newc", "crc.cpio": "crc"}
FORMATS = list(BSDTAR) + list(CPIO) + ["ar", "deb", "cab", "rar", "rar5", "solid.rar5", "lzh"]
TIME = 1_600_000_000


def content(size):
    return bytes((number * number >> 3) & 0xFF for number in range(size))


FILES = {"a": b"text\n", "empty": b"", "d/large": content(150_001), "d/e/zeros": bytes(70_000), "name with space": b"x"}


def tree(folder):
    for name, data in FILES.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o640)
    os.link(os.path.join(folder, "d/large"), os.path.join(folder, "hard"))
    os.symlink("d/large", os.path.join(folder, "link"))
    for name in FILES:
        os.utime(os.path.join(folder, name), (TIME, TIME))


def run(*arguments, **options):
    return subprocess.run(arguments, check=True, **options)


def ar(path, folder, names):
    run("ar", "rcS", path, *names, cwd=folder)


def deb(path, folder):
    with tempfile.TemporaryDirectory() as parts:
        with open(os.path.join(parts, "debian-binary"), "w") as file:
            file.write("2.0\n")
        for name in ("control", "data"):
            run("tar", "-C", folder, "-cJf", os.path.join(parts, name + ".tar.xz"), ".")
        ar(path, parts, ["debian-binary", "control.tar.xz", "data.tar.xz"])


def rar_block(kind, flags, fields, data=b""):
    head = struct.pack("<BHH", kind, flags, 7 + len(fields)) + fields
    return struct.pack("<H", zlib.crc32(head) & 0xFFFF) + head + data


def rar(path):
    """Stored files and a symbolic link, by version 4."""
    blocks = [b"Rar!\x1a\x07\x00", rar_block(0x73, 0, bytes(6))]
    items = [(name, data, 0o100640) for name, data in FILES.items()] + [("link", b"d/large", 0o120777)]
    for name, data, mode in items:
        fields = struct.pack("<LLBLLBBHL", len(data), len(data), 3, zlib.crc32(data), 0x51214800, 20, 0x30, len(name), mode)
        blocks.append(rar_block(0x74, 0x8000, fields + name.encode(), data))
    blocks.append(rar_block(0x7B, 0x4000, b""))
    write(path, b"".join(blocks))


def number(value):
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(groups) + bytes([value])


def rar5_block(kind, flags, fields, data=b""):
    fields = number(kind) + number(flags) + (number(len(data)) if flags & 2 else b"") + fields
    head = number(len(fields)) + fields
    return struct.pack("<L", zlib.crc32(head)) + head + data


def rar5(path, is_solid=False):
    blocks = [b"Rar!\x1a\x07\x01\x00", rar5_block(1, 0, number(4 if is_solid else 0))]
    for name, data in FILES.items():
        if name == "d/large":
            fields = number(1) + number(0) + number(0o040755) + number(0) + number(1) + number(1) + b"d"
            blocks.append(rar5_block(2, 2, fields))
        fields = number(6) + number(len(data)) + number(0o100640) + struct.pack("<LL", TIME, zlib.crc32(data))
        # A method of compression for a file without content, too.
        fields += number(0 if data else 3 << 7) + number(1) + number(len(name)) + name.encode()
        blocks.append(rar5_block(2, 2, fields, data))
    if is_solid:
        # A recovery record, which libarchive reads to find the next header.
        record = bytes(17 << 20)
        fields = number(4) + number(len(record)) + number(0) + struct.pack("<L", zlib.crc32(record))
        blocks.append(rar5_block(3, 2, fields + number(0) + number(0) + number(2) + b"RR", record))
    blocks.append(rar5_block(5, 0, number(0)))
    write(path, b"".join(blocks))


def crc16(data):
    checksum = 0
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0xA001 if checksum & 1 else 0)
    return checksum


def lzh(path):
    """Stored files, with headers of level 0."""
    archive = b""
    for name, data in FILES.items():
        head = b"-lh0-" + struct.pack("<LLLBBB", len(data), len(data), 0x51214800, 0x20, 0, len(name))
        head += name.encode() + struct.pack("<H", crc16(data))
        archive += bytes([len(head), sum(head) & 0xFF]) + head + data
    write(path, archive + b"\0")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def make(kind, path):
    path = os.path.abspath(path)
    with tempfile.TemporaryDirectory() as folder:
        tree(folder)
        if kind in BSDTAR:
            run("bsdtar", "-C", folder, *BSDTAR[kind], "-cf", path, *sorted(os.listdir(folder)))
        elif kind in CPIO:
            names = run("find", ".", "-mindepth", "1", cwd=folder, capture_output=True).stdout
            with open(path, "wb") as file:
                run("cpio", "-o", "--quiet", "-H", CPIO[kind], cwd=folder, input=names, stdout=file)
        elif kind == "ar":
            ar(path, folder, ["a", "empty", "d/large", "name with space"])
        elif kind == "deb":
            deb(path, folder)
        elif kind == "cab":
            run("gcab", "-zc", path, *FILES, cwd=folder)
        else:
            {"rar": rar, "rar5": rar5, "solid.rar5": lambda path: rar5(path, True), "lzh": lzh}[kind](path)


def described(folder):
    """By path: the type and what there is of mode, names, time and target, and the content."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            item = [status.st_mode >> 12]
            if os.path.islink(path):
                item.append(os.readlink(path))
            elif not os.path.isdir(path):
                with open(path, "rb") as file:
                    item += [status.st_mode & 0o777, status.st_nlink, status.st_mtime_ns, file.read()]
            found[os.path.relpath(path, folder)] = item
    return found


def compare(path, folder):
    with tempfile.TemporaryDirectory() as expected:
        run("bsdtar", "-C", expected, "-xpf", path, env=dict(os.environ, LC_ALL="C.UTF-8"))
        wanted, found = described(expected), described(folder)
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            print(name, *(str(items.get(name))[:80] for items in (wanted, found)), sep=" | ")
    print(len(wanted))


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](*sys.argv[2:])
