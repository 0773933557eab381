"""What the parts of scripts/bench that are written in Python share: a mount, and the probe."""
import os
import subprocess
import time


class Mount:
    """A mount by a process in the foreground."""

    def __init__(self, binary, layers, point, *options):
        os.makedirs(point, exist_ok=True)
        self.binary, self.point = binary, point
        arguments = [word for option in options for word in ("-o", option)]
        self.process = subprocess.Popen([binary, layers[-1], point, "-o", "substitution=" + ":".join(layers[:-1]), "-f"]
                                        + arguments, stderr=subprocess.PIPE)
        while not os.path.ismount(point):
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read())
            time.sleep(0.0005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.binary, "unmount", "--lazy", self.point])
        self.process.wait()


def run_probe(probe, *arguments):
    """In ns, the time of each access, if the probe measures that."""
    output = subprocess.run([probe, *arguments], check=True, capture_output=True, text=True).stdout
    return float(output.split()[0]) if output else 0


def listed(path):
    """The names of a list that the probe reads."""
    with open(path, "rb") as file:
        return file.read().rstrip(b"\0").split(b"\0")
