"""A user who acts on a mount, and on an own layer beneath it, and looks for what that user must not get.

Arguments: the mount, the folder of the users' layers (named by their IDs), the seed, and the number of steps.

Each file's first line says its owner and mode, so that no model of what the mount shows at a moment is needed: whatever a
user reads must be readable for that user by the first line, and a line that a user has appended may only be in a file that
the line lets that user write to. The only mode that a user sets is in `CHOSEN`. Prints a line for each breach.
"""
import os
import random
import sys

mount, layers, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
NAMES = [f"n{number}" for number in range(6)]
FOLDERS = ["", "d0/", "d1/"]
MODES = [0o600, 0o644, 0o666]
CHOSEN = {1000: 0o1600, 1001: 0o0700, 1002: 0o0400}


def first_line(owner, mode):
    return f"owner={owner} mode={mode:o}\n"


def parse(text):
    """The owner and mode of a first line; None for a part of a file without one."""
    line = text.split("\n")[0].split()
    if len(line) != 2 or not line[0].startswith("owner=") or not line[1].startswith("mode="):
        return None
    return int(line[0][6:]), int(line[1][5:], 8)


def may(user, found, bit):
    owner, mode = found
    return user == owner or mode & bit != 0


class User:
    def __init__(self, user):
        self.user = user
        self.layer = f"{layers}/{user}"
        self.random = random.Random(seed * 1000 + user)
        self.open = []
        self.breaches = []

    def path(self):
        return self.random.choice(FOLDERS) + self.random.choice(NAMES)

    # In the user's own layer.

    def make(self):
        mode = self.random.choice(MODES)
        target = f"{self.layer}/{self.path()}"
        aside = f"{self.layer}/aside"
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(first_line(self.user, mode))
        os.chmod(aside, mode)
        os.rename(aside, target)

    def take(self):
        os.unlink(f"{self.layer}/{self.path()}")

    def move(self):
        os.rename(f"{self.layer}/{self.path()}", f"{self.layer}/{self.path()}")

    def folder(self):
        os.mkdir(f"{self.layer}/{self.random.choice(FOLDERS[1:])}", self.random.choice([0o700, 0o755]))

    def take_folder(self):
        name = self.random.choice(FOLDERS[1:])
        for entry in os.listdir(f"{self.layer}/{name}"):
            os.unlink(f"{self.layer}/{name}/{entry}")
        os.rmdir(f"{self.layer}/{name}")

    # In the mount.

    def opens(self):
        flags = self.random.choice([os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_APPEND])
        self.open.append((os.open(f"{mount}/{self.path()}", flags), flags))
        if len(self.open) > 8:
            os.close(self.open.pop(0)[0])

    def descriptor(self):
        return self.random.choice(self.open)

    def reads(self):
        text = os.pread(self.descriptor()[0], 200, 0).decode()
        found = parse(text)
        if found and not may(self.user, found, 0o004):
            self.breaches.append(f"user {self.user} has read {text!r}")

    def appends(self):
        fd, flags = self.descriptor()
        if flags & os.O_APPEND:
            os.write(fd, f"by={self.user}\n".encode())

    def chmods(self):
        os.fchmod(self.descriptor()[0], CHOSEN[self.user])

    def chmods_path(self):
        os.chmod(f"{mount}/{self.path()}", CHOSEN[self.user])

    def times(self):
        os.utime(self.descriptor()[0], (1, 1))

    def makes(self):
        mode = self.random.choice(MODES)
        path = f"{mount}/{self.path()}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, first_line(self.user, mode).encode())
        os.fchmod(fd, mode)
        os.close(fd)

    def removes(self):
        os.unlink(f"{mount}/{self.path()}")

    def renames(self):
        os.rename(f"{mount}/{self.path()}", f"{mount}/{self.path()}")

    def links(self):
        os.link(f"{mount}/{self.path()}", f"{mount}/{self.path()}")

    ACTIONS = (
        [make] * 4 + [take] * 4 + [move] * 2 + [folder, take_folder] + [opens] * 8 + [reads] * 8 + [appends] * 4
        + [chmods] * 3 + [chmods_path, times, makes, removes, renames, links]
    )

    def run(self):
        os.umask(0)
        done = 0
        for _ in range(steps):
            try:
                self.random.choice(self.ACTIONS)(self)
                done += 1
            except (OSError, IndexError, UnicodeDecodeError):
                pass
        for breach in self.breaches:
            print(breach, flush=True)
        # A mount that refuses everything breaches nothing.
        if done < steps // 10:
            print(f"user {self.user} has done {done} of {steps} steps only", flush=True)


User(os.getuid()).run()
