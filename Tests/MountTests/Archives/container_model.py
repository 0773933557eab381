"""container_model.py make SEED FORMAT FILE: writes a random archive, and FILE.model, what a mount of it must show.
container_model.py check FILE FOLDER SEED: compares a folder with FILE.model in a random order, and prints differences.

FORMAT is tar, tar.gz, tar.bz2, tar.xz, tar.zst or 7z. libarchive writes 7z and zstd, Python the others.
"""
import bz2
import ctypes
import gzip
import hashlib
import io
import json
import lzma
import os
import random
import stat
import sys
import tarfile
import unicodedata

KINDS = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}
NAMES = ["a", "b", "c.txt", "Größe", "日本語", "x" * 120, "with space", "e\u0301", "日" * 60]


def content(source):
    size = source.choice([0, 1, 511, 512, 513, 4096, 70_000, 300_000, 1_500_000])
    start = source.randbytes(min(size, 5000))
    return (start * (size // max(1, len(start)) + 1))[:size]


def names(source):
    folders = [""] + ["/".join(source.choices(NAMES, k=source.randint(1, 3))) + "-d" for _ in range(6)]
    for number in range(source.randint(5, 60)):
        folder = source.choice(folders)
        name = "%s%d" % (source.choice(NAMES), number)
        yield folder + "/" + name if folder else name


def entries(source, precise):
    """The entries of an archive in its order: path, kind, mode, time in nanoseconds, content or target."""
    files, all_entries = [], []
    for path in names(source):
        mode, time = 0o400 | source.randrange(0o1000), source.randrange(-(10**8), 2**32) * 10**9
        # libarchive adds the fraction of a time before 1970 in the wrong direction.
        if precise and time >= 0:
            time += source.randrange(10**7) * 100
        kind = source.choice(["file"] * 8 + ["link", "hard", "folder"])
        if kind == "hard" and files:
            all_entries.append((path, "hard", mode, time, source.choice(files)))
        elif kind == "link":
            all_entries.append((path, "link", 0o777, time, source.choice(NAMES)))
        elif kind == "folder":
            all_entries.append((path, "folder", mode | 0o100, time, None))
        else:
            files.append(path)
            all_entries.append((path, "file", mode, time, content(source)))
    return all_entries


def model(all_entries):
    shown = {}
    for path, kind, mode, time, data in all_entries:
        if kind == "hard":
            shown[path] = shown[data]
            continue
        item = {"kind": kind, "mode": mode, "time": time}
        if kind == "file":
            item.update(size=len(data), digest=hashlib.sha256(data).hexdigest(), file=path)
        if kind == "link":
            item["target"] = data
        shown[path] = item
    return shown


def tar(all_entries, source):
    """Entries with a prefix of ./ or none, in the formats of GNU or of POSIX."""
    output, style = io.BytesIO(), source.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
    types = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE}
    prefix = source.choice(["", "./"])
    with tarfile.open(fileobj=output, mode="w", format=style) as archive:
        for path, kind, mode, time, data in all_entries:
            info = tarfile.TarInfo(prefix + path)
            info.type, info.mode = types[kind], mode
            # Python writes a time before 1970 in GNU's format, and fractions in POSIX's.
            info.mtime = time // 10**9
            if style == tarfile.PAX_FORMAT and time % 10**9:
                info.pax_headers = {"mtime": "%d.%09d" % divmod(time, 10**9)}
            if kind in ("link", "hard"):
                info.linkname = data if kind == "link" else prefix + data
            if kind == "file":
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if kind == "file" else None)
    return output.getvalue(), style == tarfile.PAX_FORMAT


def write_by_libarchive(path, all_entries, set_format, filter_name=None):
    library = ctypes.CDLL("libarchive.so.13")
    for name in ("archive_write_new", "archive_entry_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.archive_error_string.restype = ctypes.c_char_p
    archive = ctypes.c_void_p(library.archive_write_new())

    def call(name, *arguments):
        if getattr(library, name)(archive, *arguments) < 0:
            raise OSError("%s: %s" % (name, library.archive_error_string(archive)))

    call(set_format)
    if filter_name:
        call("archive_write_add_filter_" + filter_name)
    call("archive_write_open_filename", os.fsencode(path))
    for name, kind, mode, time, data in all_entries:
        entry = ctypes.c_void_p(library.archive_entry_new())
        library.archive_entry_set_pathname_utf8(entry, name.encode())
        library.archive_entry_set_filetype(entry, ctypes.c_uint(KINDS.get(kind, stat.S_IFREG)))
        library.archive_entry_set_perm(entry, ctypes.c_uint(mode))
        library.archive_entry_set_mtime(entry, ctypes.c_longlong(time // 10**9), ctypes.c_long(time % 10**9))
        if kind == "link":
            library.archive_entry_set_symlink_utf8(entry, data.encode())
        if kind == "file":
            library.archive_entry_set_size(entry, ctypes.c_longlong(len(data)))
        call("archive_write_header", entry)
        if kind == "file" and data:
            call("archive_write_data", data, ctypes.c_size_t(len(data)))
        library.archive_entry_free(entry)
    call("archive_write_close")
    library.archive_write_free(archive)


def composed(text):
    return unicodedata.normalize("NFC", text)


def make(seed, kind, path):
    source = random.Random(seed)
    chosen = entries(source, precise=True)
    if kind == "7z":
        # The format has no hard links, and libarchive writes no time before 1970 into it and composes characters.
        chosen = [
            (composed(name), sort, mode, max(0, time), composed(data) if sort == "link" else data)
            for name, sort, mode, time, data in chosen
            if sort != "hard"
        ]
        write_by_libarchive(path, chosen, "archive_write_set_format_7zip")
    else:
        data, is_precise = tar(chosen, source)
        if not is_precise:
            chosen = [(name, sort, mode, time // 10**9 * 10**9, data) for name, sort, mode, time, data in chosen]
        if kind == "tar.zst":
            write_by_libarchive(path, [("data", "file", 0o644, 0, data)], "archive_write_set_format_raw", "zstd")
        else:
            compress = {"tar": bytes, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}
            with open(path, "wb") as file:
                file.write(compress[kind](data))
    with open(path + ".model", "w") as file:
        json.dump(model(chosen), file)


def difference(path, item):
    seen = os.lstat(path)
    if stat.S_IFMT(seen.st_mode) != KINDS[item["kind"]]:
        return "kind %o" % seen.st_mode
    if stat.S_IMODE(seen.st_mode) != item["mode"] or seen.st_mtime_ns != item["time"]:
        return "mode %o, time %d" % (seen.st_mode, seen.st_mtime_ns)
    if item["kind"] == "link":
        return None if os.readlink(path) == item["target"] else os.readlink(path)
    if item["kind"] == "file":
        with open(path, "rb") as file:
            data = file.read()
        if len(data) != item["size"] or seen.st_size != item["size"]:
            return "size %d, read %d" % (seen.st_size, len(data))
        if hashlib.sha256(data).hexdigest() != item["digest"]:
            return "content"
    return None


def check(path, folder, seed):
    with open(path + ".model") as file:
        shown = json.load(file)
    seen = set()
    for parent, folders, files in os.walk(folder):
        seen.update(os.path.relpath(os.path.join(parent, name), folder) for name in folders + files)
    implied = {"/".join(name.split("/")[:depth]) for name in shown for depth in range(1, name.count("/") + 1)}
    for name in seen ^ (set(shown) | implied):
        print("%r: %s" % (name, "extra" if name in seen else "missing"))
    order, inodes = sorted(shown), {}
    random.Random(seed).shuffle(order)
    for name in order:
        found = difference(os.path.join(folder, name), shown[name])
        if found:
            print("%r: %s, not %r" % (name, found, shown[name]))
        if "file" in shown[name]:
            status = os.lstat(os.path.join(folder, name))
            names = sum(other.get("file") == shown[name]["file"] for other in shown.values())
            if inodes.setdefault(shown[name]["file"], status.st_ino) != status.st_ino or status.st_nlink != names:
                print("%r: inode %d, links %d, not %d" % (name, status.st_ino, status.st_nlink, names))
    if len(set(inodes.values())) != len(inodes):
        print("files share an inode number")
    print(len(order))


if sys.argv[1] == "make":
    make(int(sys.argv[2]), sys.argv[3], sys.argv[4])
else:
    check(sys.argv[2], sys.argv[3], int(sys.argv[4]))
