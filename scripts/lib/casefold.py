#!/usr/bin/env python3
"""casefold.py BUNDLEFS: compares which spellings are one name in a mount with case=insensitive and in ext4's casefold.

Names are made of every character in four planes of Unicode, of all that decompose or have cases, and of sequences of
combining marks. A directory with `chattr +F` on a loop device is asked where the kernel has CONFIG_UNICODE, otherwise
debugfs(8), which has the same tables. Prints the differences by cause; fails at one that has none of those that
NamesWithoutCase.md justifies.
"""
import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
from mounting import Mount  # noqa: E402

MARKS = "\u0300\u0301\u0307\u0323\u0327\u0345\u05b0\u0653\u3099\U0001d165"
IGNORED = {0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, *range(0x180B, 0x180F),
           *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10),
           *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)}
# Letters whose other case or composition Unicode 13 and 14 have added.
NEWER = {0x2C2F, 0x2C5F, 0xA7C0, 0xA7C1, *range(0xA7C7, 0xA7CB), *range(0xA7D0, 0xA7DA), 0xA7F5, 0xA7F6,
         *range(0x10570, 0x105BD), 0x11930, 0x11935, 0x11938}
PLANES = [range(0x80, 0xD800), range(0xE000, 0xF000), range(0xF900, 0x20000), range(0x2F800, 0x2FA20),
          range(0xE0000, 0xE0200)]


def spellings(text):
    """The text in all cases, composed and decomposed."""
    found = {text}
    for _ in range(2):
        for one in list(found):
            found |= {one.lower(), one.upper(), one.title(), one.casefold(), one.swapcase()}
            found |= {unicodedata.normalize(form, one) for form in ("NFC", "NFD")}
    return found


def all_names():
    names = {letter.encode() for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    for plane in PLANES:
        for point in plane:
            names |= {("a%cb" % point).encode(), ("A%cB" % point).encode()}
            character = chr(point)
            if spellings(character) != {character}:
                for mark in ("", *MARKS):
                    names |= {one.encode() for one in spellings(character + mark)}
    random.seed(1)
    for _ in range(20000):
        marks = [random.choice(MARKS) for _ in range(3)]
        for _ in range(2):
            random.shuffle(marks)
            names.add(("q" + "".join(marks)).encode())
            names.add(("Q" + "".join(marks)).encode())
    # Not UTF-8: cut off, too long, a surrogate.
    names |= {letter + rest for letter in (b"a", b"A") for rest in (b"\xff", b"\xc3", b"\xc1\x81", b"\xed\xa0\x80")}
    return sorted(name for name in names if len(name) < 250)


def groups_of_debugfs(names, folder):
    """By name, what debugfs hashes it to after it has folded it."""
    commands = os.path.join(folder, "commands")
    with open(commands, "wb") as file:
        file.writelines(b"dx_hash -c -e utf8-12.1 -h half_md4 %s\n" % name for name in names)
    output = subprocess.run(["debugfs", "-f", commands], check=True, capture_output=True).stdout
    # After each command's echo comes its result; names that are not UTF-8 have no hash.
    results = re.split(rb"^debugfs: dx_hash .*\n", output, flags=re.MULTILINE)[1:]
    if len(results) != len(names):
        raise SystemExit("casefold.py: debugfs answered for %d of %d names" % (len(results), len(names)))
    hashes = (re.search(rb" is (0x\w+ \(minor 0x\w+\))$", result.strip()) for result in results)
    return [found[1] if found else name for found, name in zip(hashes, names)]


def groups_of_kernel(names, point):
    """By name, the number of the first name that the file system takes for the same."""
    folder = os.path.join(point, "folded")
    os.mkdir(folder)
    subprocess.run(["chattr", "+F", folder], check=True)
    root, groups = os.open(folder, os.O_RDONLY), []
    for number, name in enumerate(names):
        try:
            os.symlink(str(number), name, dir_fd=root)
            groups.append(number)
        except FileExistsError:
            groups.append(int(os.readlink(name, dir_fd=root)))
    os.close(root)
    return groups


def groups_of_ext4(names, folder):
    image, point = os.path.join(folder, "image"), os.path.join(folder, "ext4")
    os.mkdir(point)
    subprocess.run(["mkfs.ext4", "-qF", "-O", "casefold", "-E", "encoding=utf8", "-N", str(2 * len(names)),
                    image, "1G"],
                   check=True, stdout=subprocess.DEVNULL)
    mounted = subprocess.run(["mount", "-o", "loop", image, point], stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        print("judge: debugfs, since this kernel mounts no ext4 with casefold")
        return groups_of_debugfs(names, folder)
    print("judge: ext4 of Linux " + os.uname().release)
    try:
        return groups_of_kernel(names, point)
    finally:
        subprocess.run(["umount", point], check=True)


def make_layer(folder, names, numbers):
    """Makes a symbolic link for each of the numbered names, whose target is the number."""
    os.mkdir(folder)
    for number in numbers:
        os.symlink(str(number), os.fsencode(folder) + b"/" + names[number])


def groups_of_mount(binary, names, candidates, folder):
    """By name, the number of the first candidate that the mount takes for the same, or None."""
    layer, empty, point = (os.path.join(folder, name) for name in ("layer", "empty", "mount"))
    make_layer(layer, names, candidates)
    os.mkdir(empty)
    groups = []
    with Mount(binary, [empty, layer], point, "case=insensitive,announce=off"):
        # Otherwise another entry of a name would find itself.
        for name in set(names[number] for number in candidates).difference(os.listdir(os.fsencode(point))):
            os.unlink(os.fsencode(layer) + b"/" + name)
        subprocess.run([binary, "sync", point], check=True)
        root = os.open(point, os.O_RDONLY)
        for name in names:
            try:
                groups.append(int(os.readlink(name, dir_fd=root)))
            except FileNotFoundError:
                groups.append(None)
        os.close(root)
    return groups


def by_definition(name):
    """What canonical caseless matching compares (Unicode, D145)."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return name
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())


def differences(left, right):
    """The numbers of the names that are in another group than the first one of their group, in the other judgement."""
    first = {}
    for number, (one, other) in enumerate(zip(left, right)):
        place = first.setdefault(one, number)
        if right[place] != other:
            yield place, number


def cause(one, other):
    """Why ext4 judges otherwise; None is a fault."""
    text = unicodedata.normalize("NFD", one.decode() + other.decode())
    points = {ord(character) for character in text}
    if points & IGNORED:
        return "characters that ext4 ignores"
    if points & NEWER:
        return "letters that are newer than ext4's Unicode 12.1"
    if 0x345 in points and any(unicodedata.combining(chr(point)) for point in points - {0x345}):
        return "marks around an iota below, which ext4 folds before it orders them"
    return None


def report(names, pairs):
    """Prints the pairs by cause.

    Returns whether each has one.
    """
    causes = collections.defaultdict(list)
    for one, other in pairs:
        causes[cause(names[one], names[other])].append((names[one], names[other]))
    for reason, found in causes.items():
        examples = ", ".join(ascii(one.decode()) + " and " + ascii(other.decode()) for one, other in found[:3])
        print("%d pairs: %s: %s" % (len(found), reason or "UNEXPLAINED", examples))
    return None not in causes


def main():
    binary, names = sys.argv[1], all_names()
    definition = [by_definition(name) for name in names]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        ext4 = groups_of_ext4(names, folder)
        first = {}
        for number, both in enumerate(zip(ext4, definition)):
            first.setdefault(both, number)
        mount = groups_of_mount(binary, names, sorted(first.values()), folder)
    faults = list(differences(mount, definition)) + list(differences(definition, mount))
    print("%d names: %d for ext4, %d for the mount" % (len(names), len(set(ext4)), len(set(mount))))
    for one, other in faults[:10]:
        print("against the definition: %a and %a" % (names[one], names[other]))
    print("one name for ext4 only:")
    is_justified = report(names, differences(ext4, mount))
    print("one name for the mount only:")
    is_justified = report(names, differences(mount, ext4)) and is_justified
    sys.exit(0 if is_justified and not faults else 1)


main()
