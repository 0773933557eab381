"""compare.py BUNDLEFS FOLDER: compares the archives below a folder with what others read: zip archives with Python and
bsdtar, the others with GNU tar or else bsdtar.

Of a content of more than LIMIT bytes, the first LIMIT are compared. Prints each difference as `ARCHIVE: ENTRY: reason`,
then how often each reason occurred. Exits with status 1 if there is a reason other than those of the manual.
"""
import collections
import errno
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile

# The differences that bundlefs(8) names.
KNOWN = {
    "encrypted",
    "damaged; bsdtar alone reads it",
    "damaged; Python reads it, 7z does not",
    "method that is not supported",
    "skipped name",
    "not a zip archive, or its end is missing",
    "a damaged zip archive",
    "a damaged archive",
    "encrypted 7z archives cannot be read",
    "compressed, but not a tar archive",
}
REFUSALS = [reason for reason in KNOWN if "archive" in reason]


LIMIT = 64 << 20
# Of `create_system`: DOS, OS/2 and Windows, where a backslash may be a slash.
WINDOWS = {0, 6, 10, 11, 14}


class Timeout(Exception):
    pass


def limited(seconds, function, *arguments):
    """Calls the function; raises Timeout if it takes longer."""

    def expire(*_):
        raise Timeout()

    signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        return function(*arguments)
    finally:
        signal.alarm(0)


def run(command, seconds=60):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)


def output(command):
    """The first LIMIT bytes that a command prints; nothing if it fails before."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with process:
        data = process.stdout.read(LIMIT)
        is_cut = len(data) == LIMIT
        if is_cut:
            process.kill()
    return data if is_cut or process.returncode == 0 else b""


def is_whole(path):
    """Whether 7z finds no fault in an archive."""
    return run(["7z", "t", "-p", path]).returncode == 0


def is_folder(info):
    return info.filename.endswith(("/", "\\") if info.create_system in WINDOWS else "/")


def names_of(info):
    """The names that an entry may have: Python decodes those that are not flagged as code page 437."""
    yield info.filename
    if info.create_system in WINDOWS:
        yield info.filename.replace("\\", "/")
    if not info.flag_bits & 1 << 11:
        try:
            raw = info.orig_filename.encode("cp437")
            yield raw.decode("utf-8")
        except UnicodeError:
            pass
    extra = info.extra
    while len(extra) >= 4:
        number, size = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        if number == 0x7075 and size > 5:
            name = extra[9 : 4 + size].decode("utf-8", "surrogateescape")
            yield name
            # As WinZip writes it.
            yield name.replace("\\", "/")
        extra = extra[4 + size :]


def content_in_mount(point, name):
    """The content or link target of an entry, or an errno."""
    path = os.path.join(os.fsencode(point), os.fsencode(name))
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink(path)
        if stat.S_ISDIR(mode):
            return None
        with open(path, "rb") as file:
            return file.read(LIMIT)
    except OSError as error:
        return error.errno


def content_elsewhere(archive, path, info):
    """The content as Python or else bsdtar reads it, None if neither can, and whether Python can."""
    try:
        with archive.open(info) as file:
            return file.read(LIMIT), True
    except Exception:  # zipfile raises errors of all kinds for damage.
        pass
    pattern = "".join("\\" + letter if letter in "*?[]\\" else letter for letter in info.filename)
    # Without a password it would ask for one, for encrypted entries.
    return output(["bsdtar", "-xOf", path, "--passphrase", "unknown", "--", pattern]) or None, False


CONTAINERS = (".tar", ".tgz", ".tbz2", ".txz", ".tzst", ".7z")


def is_container(path):
    name = path.lower()
    return name.endswith(CONTAINERS) or os.path.splitext(name)[0].endswith(".tar")


def members(path):
    """The files and symbolic links of a tar or 7z archive: the name, and the content or link target."""
    with tempfile.TemporaryDirectory() as folder:
        # Python's tarfile misreads incremental archives, and sparse files without a hole at their end.
        for command in (["tar", "--no-same-owner"], ["bsdtar"]):
            if run(command + ["-xf", path, "-C", folder]).returncode == 0:
                break
        else:
            return
        for parent, _, names in os.walk(folder):
            for full in (os.path.join(parent, name) for name in names):
                if os.path.islink(full):
                    yield os.path.relpath(full, folder), os.fsencode(os.readlink(full))
                elif os.path.isfile(full):
                    with open(full, "rb") as file:
                        yield os.path.relpath(full, folder), file.read(LIMIT)


def is_normal(name):
    parts = name.split("/")
    return not name.startswith("/") and ".." not in parts and "\0" not in name and bool(name.strip("./"))


class Comparison:
    def __init__(self, bundlefs):
        self.bundlefs = bundlefs
        self.reasons = collections.Counter()
        self.equal = 0

    def report(self, path, entry, reason, detail=""):
        self.reasons[reason] += 1
        print("%s: %s: %s%s" % (path, entry, reason, detail and ": " + detail), flush=True)

    def compare(self, path):
        with tempfile.TemporaryDirectory() as point:
            try:
                mounted = run([self.bundlefs, path, point, "-o", "announce=off"])
            except subprocess.TimeoutExpired:
                return self.report(path, "-", "the mount hangs")
            if mounted.returncode != 0:
                return self.refused(path, mounted.stderr.decode(errors="replace").strip())
            try:
                self.compare_entries(path, point)
            finally:
                run([self.bundlefs, "unmount", "--lazy", point])

    def refused(self, path, message):
        reason = "refused"
        for known in REFUSALS:
            if known in message:
                reason = known
        if is_container(path):
            if reason == "refused" and next(members(path), None):
                reason = "refused although others read it"
            return self.report(path, "-", reason, message)
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
                if entries and all(content_elsewhere(archive, path, info)[0] is not None for info in entries):
                    reason = "refused although others read it"
                    if not is_whole(path):
                        reason = "damaged; Python reads it, 7z does not"
        except Exception:  # zipfile raises errors of all kinds for damage.
            pass
        self.report(path, "-", reason, message)

    def compare_entries(self, path, point):
        status = json.loads(run([self.bundlefs, "status", point, "--json"]).stdout)
        layers = status.get("layers", [])
        has_skipped = any(layer.get("archive", {}).get("skipped") for layer in layers)
        if is_container(path):
            for name, expected in members(path):
                self.compare_member(path, point, name, expected, has_skipped)
            return
        try:
            archive = zipfile.ZipFile(path)
        except Exception as error:
            return self.report(path, "-", "Python cannot read it", str(error))
        with archive:
            last = {info.filename: info for info in archive.infolist() if not is_folder(info)}
            for info in last.values():
                self.compare_entry(path, point, archive, info, has_skipped)

    def compare_member(self, path, point, name, expected, has_skipped):
        shown = limited(60, content_in_mount, point, name) if is_normal(name) else errno.ENOENT
        if shown == expected:
            self.equal += 1
        elif isinstance(shown, bytes):
            self.report(path, name, "wrong content", "%d bytes" % len(shown))
        elif shown is None or shown in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            self.report(path, name, "skipped name" if has_skipped else "missing")
        else:
            self.report(path, name, "unreadable", os.strerror(shown))

    def compare_entry(self, path, point, archive, info, has_skipped):
        shown = errno.ENOENT
        for name in names_of(info):
            if not is_normal(name):
                continue
            shown = limited(60, content_in_mount, point, name)
            if shown != errno.ENOENT:
                break
        expected, by_python = content_elsewhere(archive, path, info)
        if shown == expected or (isinstance(shown, int) and expected is None and shown == errno.EIO):
            self.equal += 1
        elif isinstance(shown, bytes):
            kind = "wrong content" if expected is not None else "readable here only"
            self.report(path, info.filename, kind, "%d bytes" % len(shown))
        elif shown is None:
            self.report(path, info.filename, "skipped name" if has_skipped else "a folder instead of a file")
        elif shown in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            self.report(path, info.filename, "skipped name" if has_skipped else "missing")
        elif shown == errno.EACCES and info.flag_bits & 1:
            self.report(path, info.filename, "encrypted")
        elif shown == errno.EOPNOTSUPP:
            self.report(path, info.filename, "method that is not supported", str(info.compress_type))
        elif shown == errno.EIO and not by_python:
            self.report(path, info.filename, "damaged; bsdtar alone reads it")
        elif shown == errno.EIO and not is_whole(path):
            self.report(path, info.filename, "damaged; Python reads it, 7z does not")
        else:
            self.report(path, info.filename, "unreadable", os.strerror(shown))


def is_archive(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    ends = (".zip", ".jar", ".whl", ".apk", ".ipa", ".docx", ".odt", ".epub", ".xpi")
    if path.lower().endswith(ends) or is_container(path):
        return True
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:
        # It has the end of an archive, but one that Python does not read.
        return True


def main():
    # Whatever an archive declares.
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    comparison = Comparison(sys.argv[1])
    archives = 0
    for folder, _, files in os.walk(sys.argv[2]):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not is_archive(path):
                continue
            archives += 1
            try:
                comparison.compare(path)
            except Timeout:
                comparison.report(path, "-", "a read hangs")
    print("%d archives, %d equal entries" % (archives, comparison.equal))
    for reason, count in comparison.reasons.most_common():
        print("%6d %s" % (count, reason))
    harmless = KNOWN | {"Python cannot read it", "readable here only"}
    sys.exit(1 if set(comparison.reasons) - harmless or not archives else 0)


main()
