import Posix
import TestSupport
import Testing

/// Permissions, malicious names and refused changes below `MOUNTPOINT/rsrc:`.
extension MountTests.ExclusiveTests.ResourcePathTests {
  @Test(
    "malicious names fail", .timeLimit(.minutes(1)),
    arguments: [
      ("outside", Errno.noSuchFileOrDirectory), ("climbing/passwd", .noSuchFileOrDirectory),
      ("..%2f..%2fetc%2fpasswd", .invalidArgument),
      ("%2e%2e", .invalidArgument), ("images/%2e%2e", .invalidArgument), ("logo.png%00", .invalidArgument),
      ("images%2ficon.svg", .noSuchFileOrDirectory), ("%zz", .noSuchFileOrDirectory),
      ("%", .noSuchFileOrDirectory), ("?", .noSuchFileOrDirectory),
      ("%2fetc%2fpasswd", .noSuchFileOrDirectory), ("logo.png/x", .notDirectory),
      ("Main.strings?localization=..%2f", .invalidArgument),
      ("Main.strings?localization=de", .noSuchFileOrDirectory),
      ("images?localization=en", .noSuchFileOrDirectory),
      ("..;/etc", .noSuchFileOrDirectory), ("\u{1}", .noSuchFileOrDirectory),
    ] as [(String, Errno)])
  func maliciousNames(name: String, error: Errno) throws {
    let bundle = try BundleFixture()
    try withMount(bundle.setup()) { mount in
      try expectErrno(error, "\(name)") { _ = try (mount.resources / ByteString(name)).read() }
      #expect(try (mount.resources / "logo.png").readText() == "main's logo")
    }
  }

  @Test("names of arbitrary bytes and lengths do no harm", .timeLimit(.minutes(1)))
  func randomNames() throws {
    let bundle = try BundleFixture()
    try withMount(bundle.setup("scale=2")) { mount throws in
      var random = SplitMix64(seed: 5)
      let alphabet = Array("ab./-~@%2fFe0?&=# ".utf8) + [0xFF, 0x80]
      for _ in 0..<2000 {
        let count = [1, 2, 3, 8, 255].randomElement(using: &random) ?? 1
        let name = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
        _ = try? (mount.resources / ByteString(name)).status()
      }
      #expect(try (mount.resources / "logo.png").readText() == "main's logo")
    }
  }

  @Test("the resource folder is read-only", .timeLimit(.minutes(1)))
  func readOnly() throws {
    let bundle = try BundleFixture()
    try withMount(bundle.setup()) { mount in
      try expectErrno(.readOnlyFileSystem) { try (mount.resources / "new").makeDirectory() }
      try expectErrno(.readOnlyFileSystem) { try (mount.resources / "new").write("x") }
      try expectErrno(.readOnlyFileSystem) { try (mount.resources / "logo.png").remove() }
      try expectErrno(.readOnlyFileSystem) { try mount.resources.setMode(0o777) }
    }
  }

  @Test("permissions apply to files, folders and their names", .timeLimit(.minutes(1)))
  func permissions() throws {
    let bundle = try BundleFixture()
    try bundle.put(
      [
        "private/secret.txt": "secret", "private/inner/deep.txt": "deep", "open/plain.txt": "plain",
        "open/mine.txt": "mine", "unlisted/known.txt": "known",
      ], in: bundle.main)
    try (bundle.main / "private").setMode(0o700)
    try (bundle.main / "unlisted").setMode(0o711)
    try (bundle.main / "open" / "mine.txt").setMode(0o600)
    try (bundle.main / "open" / "way").makeLink(to: "../private")
    try withMount(bundle.setup("allow_other", "routes_mode=666")) { mount in
      #expect(try (mount.resources / "private" / "secret.txt").readText() == "secret")
      #expect(try (mount.resources / "open" / "way" / "inner" / "deep.txt").readText() == "deep")
      let outcome = try mount.bash(
        """
        cd "$M" && cat rsrc:/open/plain.txt rsrc:/unlisted/known.txt; echo; ls rsrc:/open rsrc:/unlisted
        for path in private private/secret.txt private/nosuch open/way open/way/secret.txt private/inner; do
          stat -c found rsrc:/$path; done
        cat rsrc:/open/mine.txt; find rsrc:/ | grep -c -e secret -e deep -e known
        """, user: MountTests.UnprivilegedTests.nobody)
      #expect(
        outcome.outputText
          == "plainknown\nrsrc:/open:\nmine.txt\nplain.txt\nway\n\nrsrc:/unlisted:\nfound\nfound\n0\n",
        "an inaccessible folder is visible, its entries are not")
      let messages = outcome.errorText.split(separator: "\n")
      #expect(messages.count == 5, "\(outcome.errorText)")
      #expect(messages.filter { $0.hasSuffix("No such file or directory") }.count == 4)
      #expect(messages.last?.hasSuffix("Permission denied") == true)
    }
  }

  @Test("a listing that root has read tells another user nothing", .timeLimit(.minutes(1)))
  func listingCache() throws {
    let bundle = try BundleFixture()
    try bundle.put(["private/secret.txt": "secret", "private/inner/deep.txt": "deep"], in: bundle.main)
    try (bundle.main / "private").setMode(0o700)
    // From any offset but the first, the kernel answers from its cache without asking whether it is current.
    let script = """
      python3 -c '
      import ctypes, os, sys
      libc = ctypes.CDLL(None)
      os.setgroups([])
      os.setgid(65534)
      os.setuid(65534)
      folder = os.open(sys.argv[1], os.O_RDONLY)
      for offset in (2, 1, 0):
        os.lseek(folder, offset, os.SEEK_SET)
        buffer = ctypes.create_string_buffer(65536)
        count = libc.syscall(217 if os.uname().machine == "x86_64" else 61, folder, buffer, 65536)
        print(offset, b"secret" in buffer.raw[:max(count, 0)])
      ' "$M"/rsrc:/private 2>&1
      """
    try withMount(bundle.setup("allow_other")) { mount in
      for _ in 0..<3 {
        #expect(try (mount.resources / "private").names() == ["inner", "secret.txt"])
        let outcome = try mount.bash(script)
        #expect(outcome.outputText == "2 False\n1 False\n0 False\n", "\(outcome.outputText)")
      }
      #expect(try (mount.resources / "private").names() == ["inner", "secret.txt"])
    }
  }

  @Test("the control file reveals no file that the user could not open", .timeLimit(.minutes(1)))
  func controlPermissions() throws {
    let bundle = try BundleFixture()
    try bundle.put(["private/secret.txt": "secret", "mine.txt": "mine"], in: bundle.main)
    try (bundle.main / "private").setMode(0o700)
    try (bundle.main / "mine.txt").setMode(0o600)
    try withMount(bundle.setup("allow_other", "routes_mode=666")) { mount in
      let script = """
        for path in logo.png private/secret.txt private/nosuch private mine.txt; do
          echo rsrc:///$path > "$R"; done
        """
      _ = try mount.bash(script, user: MountTests.UnprivilegedTests.nobody)
      #expect(
        try mount.routesText().summaries == [
          "resolved", "rejected ENOENT", "rejected ENOENT", "rejected EACCES", "rejected EACCES",
        ])
      _ = try mount.bash(script)
      #expect(
        try mount.routesText().summaries.suffix(5) == [
          "resolved", "resolved", "rejected ENOENT", "resolved", "resolved",
        ])
    }
  }
}
