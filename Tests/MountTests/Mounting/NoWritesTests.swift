import Glibc
import Posix
import TestSupport
import Testing

/// No request makes the daemon write to a file.
extension MountTests {
  @Suite struct NoWritesTests {
    @Test("no request makes the daemon open a file for writing or change one", .timeLimit(.minutes(1)))
    func calls() throws {
      let fixture = try Fixture()
      try makeArchive(fixture.folder / "archive.zip")
      var setup = fixture.setup
      setup.substitutions.append(fixture.folder / "archive.zip")
      // Announcements modify the mount itself and nothing else: see `AnnounceSafetyTests`.
      setup.options.append("announce=off")
      let log = fixture.folder / "calls"
      let before = try listing(fixture)
      try withMount(setup) { mount in
        let tracer = try trace(mount, to: log)
        defer { try? tracer.kill() }
        try Command.shell(Self.attempts, mount.point, fixture.substitution).check(timeout: 30)
        try mount.command("invalidate")
        #expect(try listing(fixture) == before)
        // The log must not be empty.
        let hasCalls = eventually(within: 10) { (try? log.readText().contains("openat")) == true }
        #expect(hasCalls)
      }
      let changes = try log.readText().split(separator: "\n").filter(Self.isChange)
      #expect(changes.isEmpty, "\(changes.joined(separator: "\n"))")
    }

    /// Every kind of change, to files of each layer, the control file, and by URLs.
    private static let attempts = #"""
      cd "$1" || exit 9
      for file in plain.txt replaced.txt folder/inner.txt entry new; do
        { echo x > $file; echo x >> $file; rm -f $file; mv $file other; ln $file other; ln -sf $file other
          chmod 777 $file; chown 1 $file; touch $file; truncate -s 0 $file; setfattr -n user.x -v y $file
          setfattr -x user.x $file; mkfifo other; mkdir other; rmdir folder; fallocate -l 100 $file
          dd if=/dev/zero of=$file bs=10 count=1 conv=notrunc; cat $file; getfattr -d -m - $file; } &>/dev/null
      done
      for line in 'route A s:B' 'unroute A' 'route A s:B' 'x:1' 'x:../../x' 'match x:1' reset bundlefs:///sync \
        bundlefs:///invalidate bundlefs:///invalidate/../../etc rsrc:///plain.txt rsrc:///../../etc/passwd \
        'rsrc:///%2e%2e/x' '{' "$(printf '%70000s' x)"; do
        echo "$line" > .routes; echo "$line" >> .routes
      done 2>/dev/null
      { cat rsrc:///plain.txt rsrc:/../../etc/passwd; echo x > rsrc:/plain.txt; mkdir rsrc:/x; rm .routes
        : > .routes; mv .routes x; truncate -s 100 .routes; find . -type f -exec cat {} +; ls -lR; df .; } &>/dev/null
      # Changes in a layer cause events.
      echo seen > "$2/seen"; cat seen; rm "$2/seen"
      """#

    private static func isChange(_ line: Substring) -> Bool {
      // The daemon unpacks archive entries into unnamed files.
      if line.contains("O_TMPFILE") || line.contains("/dev/null") { return false }
      // getxattrat(2), which an older strace does not know and always records.
      if line.contains("syscall_0x1d0(") { return false }
      if line.contains("open") { return ["O_WRONLY", "O_RDWR", "O_CREAT"].contains { line.contains($0) } }
      // All other traced calls change something.
      return line.contains("(") && !line.contains("resumed")
    }

    /// Records the daemon's system calls that open or change files.
    private func trace(_ mount: Mount, to log: ByteString) throws -> Child {
      let calls = """
        open,openat,openat2,open_by_handle_at,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,\
        linkat,symlink,symlinkat,mknod,mknodat,truncate,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,\
        utimes,utimensat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,mount
        """
      let tracer = try Child(
        Command([
          "strace", "-f", "-q", "-e", ByteString("trace=\(calls)"), "-e", "signal=none", "-o", log, "-p",
          ByteString("\(mount.worker)"),
        ]))
      let status = ByteString("/proc/\(mount.worker)/status")
      let isAttached = try eventually(within: 10) {
        try status.readText().contains("TracerPid:\t\(tracer.pid)\n")
      }
      guard isAttached else { throw TestFailure("strace does not attach: \(tracer.errorText)") }
      return tracer
    }

    /// The layers' entries with metadata and checksums.
    private func listing(_ fixture: Fixture) throws -> String {
      try Command.shell(
        #"for layer; do find "$layer" ! -path "$layer" -printf '%P %i %m %U %s %T@ %l\n' | sort; done; md5sum "$1"/*.txt"#,
        fixture.main, fixture.folder / "archive.zip"
      ).check().outputText
    }

    private func makeArchive(_ path: ByteString) throws {
      let builder = ZipBuilder([
        .init("entry", "an entry\n", .deflated),
        .init("large", [UInt8](repeating: 7, count: 3 << 20), .deflated),
      ])
      try Command("touch", path.text).check()
      try path.overwrite(builder.bytes, at: 0)
    }
  }
}
