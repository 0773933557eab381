import Glibc
import Posix
import TestSupport
import Testing

/// Whatever is asked of it, the daemon writes to no file.
extension MountTests {
  @Suite struct NothingWrittenTests {
    @Test("no request makes the daemon open a file for writing, or change one", .timeLimit(.minutes(1)))
    func calls() throws {
      let fixture = try Fixture()
      try makeArchive(fixture.folder / "archive.zip")
      var setup = fixture.setup
      setup.substitutions.append(fixture.folder / "archive.zip")
      // What is announced goes through the mount itself, and to nothing else: see `AttackTests`.
      setup.options.append("announce=off")
      let log = fixture.folder / "calls"
      let before = try listing(fixture)
      try withMount(setup) { mount in
        let tracer = try trace(mount, to: log)
        defer { try? tracer.kill() }
        try Command.shell(Self.attempts, mount.point, fixture.substitution).check(timeout: 30)
        try mount.command("invalidate")
        #expect(try listing(fixture) == before)
        // So that the log is not just empty.
        let isSeen = eventually(within: 10) { (try? log.readText().contains("openat")) == true }
        #expect(isSeen)
      }
      let changes = try log.readText().split(separator: "\n").filter(Self.isChange)
      #expect(changes.isEmpty, "\(changes.joined(separator: "\n"))")
    }

    /// Everything that a program can try, on files of each layer, on the control file, and by URLs.
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
      # Outside, too, things happen that the daemon hears of.
      echo seen > "$2/seen"; cat seen; rm "$2/seen"
      """#

    private static func isChange(_ line: Substring) -> Bool {
      // What is unpacked goes to files without a name.
      if line.contains("O_TMPFILE") || line.contains("/dev/null") { return false }
      // getxattrat(2), which reads; an older strace records what it does not know.
      if line.contains("syscall_0x1d0(") { return false }
      if line.contains("open") { return ["O_WRONLY", "O_RDWR", "O_CREAT"].contains { line.contains($0) } }
      // Calls of other kinds are traced only when they change something.
      return line.contains("(") && !line.contains("resumed")
    }

    /// Records the calls of the daemon that open files or change them.
    private func trace(_ mount: Mount, to log: ByteString) throws -> Child {
      let calls = """
        open,openat,openat2,open_by_handle_at,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,\
        linkat,symlink,symlinkat,mknod,mknodat,truncate,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,utime,\
        utimes,utimensat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,mount
        """
      let tracer = try Child(
        Command([
          "strace", "-f", "-q", "-e", ByteString("trace=\(calls)"), "-e", "signal=none", "-o", log, "-p",
          ByteString("\(mount.process.pid)"),
        ]))
      let status = ByteString("/proc/\(mount.process.pid)/status")
      let isAttached = try eventually(within: 10) {
        try status.readText().contains("TracerPid:\t\(tracer.pid)\n")
      }
      guard isAttached else { throw TestFailure("strace does not attach: \(tracer.errorText)") }
      return tracer
    }

    /// All that the layers have, with contents and times.
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
