"""compare_archive.py ARCHIVE FOLDER: compares every entry of the archive, as Python reads it, with the folder.

Compares content, size, time and permissions. Prints each difference and the number of compared entries.
"""
import os
import stat
import struct
import sys
import time
import zipfile


def modified(info):
    """Seconds since the epoch: from the Info-ZIP field, or else from the DOS local time."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == 0x5455 and size >= 5 and extra[4] & 1:
            return struct.unpack("<i", extra[5:9])[0]
        extra = extra[4 + size :]
    return int(time.mktime(info.date_time + (0, 0, -1)))


def permissions(info):
    unix = info.external_attr >> 16
    if info.create_system == 3 and unix:
        return unix & 0o777
    return 0o444 if info.external_attr & 1 else 0o644


def compare(archive, folder):
    entries = {info.filename: info for info in archive.infolist()}
    count = 0
    for info in entries.values():
        path = os.path.join(folder, info.filename)
        if info.is_dir():
            assert stat.S_ISDIR(os.lstat(path).st_mode), path
            continue
        seen = os.lstat(path)
        if stat.S_ISLNK(seen.st_mode):
            content = os.readlink(path).encode()
        else:
            with open(path, "rb") as file:
                content = file.read()
            shown = (seen.st_size, stat.S_IMODE(seen.st_mode), int(seen.st_mtime))
            expected = (info.file_size, permissions(info), modified(info))
            if shown != expected:
                print("%s: size, mode, time %s, not %s" % (info.filename, shown, expected))
        if content != archive.read(info):
            print("%s: different content" % info.filename)
        count += 1
    print(count)


with zipfile.ZipFile(sys.argv[1]) as archive:
    compare(archive, sys.argv[2])
