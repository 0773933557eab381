import TestSupport

/// Random archives made by Python's zipfile, each with a folder of its expected content.
enum ArchiveGenerator {
  /// Makes two versions, `1` and `2`, of two archives, `a` and `b`: `a1.zip` with the folder `a1/`, and so on. All
  /// contain a folder `in`. Also makes a plain folder `dir/`.
  static func make(seed: UInt64, in folder: ByteString) throws {
    try Command(["python3", "-c", ByteString(script), folder, ByteString("\(seed)")]).check()
  }

  private static let script = #"""
    import io, os, random, struct, sys, time, zipfile, zlib
    root, seed = os.fsencode(sys.argv[1]), int(sys.argv[2])
    random = random.Random(seed)
    METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]

    class Info(zipfile.ZipInfo):
      """An entry whose name is flagged UTF-8, UTF-8 without the flag, or code page 437."""
      coding = "utf-8"
      isFlagged = True
      def _encodeFilenameFlags(self):
        name = self.filename.encode(self.coding)
        isFlagged = self.isFlagged and not self.filename.isascii()
        return name, self.flag_bits | (0x800 if isFlagged else 0)

    class Pipe(io.RawIOBase):
      """Not seekable, so that zipfile writes data descriptors."""
      def __init__(self, file): self.file = file
      def writable(self): return True
      def write(self, data): return self.file.write(data)
      def flush(self): self.file.flush()

    def name():
      return random.choice(["a", "b", "c", "d", "e.txt", "f.bin", "Contents", "ü", "né", "░x", "wide name", "back\\slash", ".hidden"])

    def content():
      size = random.choice([0, 1, 10, 100, 5000, 70000, 300000])
      if random.random() < 0.5: return random.randbytes(size)
      return (b"%d " % random.randrange(10) * size)[:size]

    def tree(depth):
      made = {}
      for _ in range(random.randrange(1, 7)):
        kind = random.random()
        if kind < 0.3 and depth < 4: made[name()] = ("dir", tree(depth + 1), random.random() < 0.5, attributes())
        elif kind < 0.4: made[name()] = ("link", random.choice(["a", "../b", "nowhere", "e.txt", "x" * 300]), attributes())
        elif kind < 0.45 and depth < 4: made[".wh." + random.choice("abcd")] = ("file", b"", attributes())
        elif kind < 0.47 and depth > 0: made[".wh..wh..opq"] = ("file", b"", attributes())
        else: made[name()] = ("file", content(), attributes())
      if not depth: made["in"] = ("dir", tree(1), False, attributes())
      return made

    def attributes():
      return random.choice([0o644, 0o755, 0o600, 0o444, 0o640]), random.randrange(400000000, 2000000000) // 2 * 2

    def mutated(made):
      result = {}
      for key, value in made.items():
        chance = random.random()
        if chance < 0.15 and key != "in": continue
        if chance < 0.3 and value[0] == "file": value = ("file", content(), attributes())
        elif chance < 0.4 and value[0] == "file": value = ("file", value[1], attributes())
        elif value[0] == "dir": value = ("dir", mutated(value[1]), value[2], value[3])
        result[key] = value
      if random.random() < 0.7: result[name()] = ("file", content(), attributes())
      return result

    def entry(path, mode, when):
      info = Info(path, time.localtime(when)[:6])
      info.create_system, info.external_attr = 3, mode << 16
      info.compress_type = random.choice(METHODS)
      try:
        info.filename.encode("cp437"); isDOS = random.random() < 0.3
      except UnicodeEncodeError: isDOS = False
      if isDOS: info.coding, info.isFlagged = "cp437", False
      elif random.random() < 0.3: info.isFlagged = False
      if random.random() < 0.4: info.extra = struct.pack("<HHBi", 0x5455, 5, 1, when)
      return info

    def entries(made, prefix):
      for key, value in made.items():
        path = prefix + key
        if value[0] == "dir":
          if value[2]: yield entry(path + "/", 0o40000 | value[3][0], value[3][1]), b""
          yield from entries(value[1], path + "/")
        elif value[0] == "link": yield entry(path, 0o120777, value[2][1]), value[1].encode()
        else: yield entry(path, 0o100000 | value[2][0], value[2][1]), value[1]

    def pack(made, path):
      listed = list(entries(made, ""))
      random.shuffle(listed)
      with open(path, "wb") as file:
        if random.random() < 0.2: file.write(b"#!/bin/sh\n" * random.randrange(1, 50))
        with zipfile.ZipFile(Pipe(file) if random.random() < 0.3 else file, "w") as archive:
          for info, data in listed:
            with archive.open(info, "w", force_zip64=random.random() < 0.3) as target: target.write(data)
          if random.random() < 0.3: archive.comment = random.randbytes(random.randrange(2000))

    def unpack(made, path):
      os.mkdir(path)
      newest = 0
      for key, value in made.items():
        inner = path + b"/" + key.encode()
        if value[0] == "dir":
          if is_empty(value): continue
          when = unpack(value[1], inner)
          if value[2]:
            os.chmod(inner, value[3][0]); when = value[3][1]
            os.utime(inner, (when, when))
        elif value[0] == "link":
          os.symlink(value[1], inner); when = value[2][1]
          os.utime(inner, (when, when), follow_symlinks=False)
        else:
          with open(inner, "wb") as file: file.write(value[1])
          os.chmod(inner, value[2][0]); when = value[2][1]
          os.utime(inner, (when, when))
        newest = max(newest, when)
      os.chmod(path, 0o755)
      os.utime(path, (newest, newest))
      return newest

    def is_empty(value):
      """Whether the archive has no entry for a folder."""
      return not value[2] and all(inner[0] == "dir" and is_empty(inner) for inner in value[1].values())

    unpack(tree(0), root + b"/dir")
    for which in (b"a", b"b"):
      made = tree(0)
      made["in"][1]["always"] = ("file", b"here", attributes())
      for version in (b"1", b"2"):
        pack(made, root + b"/" + which + version + b".zip")
        unpack(made, root + b"/" + which + version)
        made = mutated(made)
        made["in"][1]["always"] = ("file", b"here", attributes())
    """#
}
