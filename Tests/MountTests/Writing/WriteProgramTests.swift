import Glibc
import Posix
import TestSupport
import Testing

/// Programs in a writable mount.
extension MountTests {
  @Suite struct WriteProgramTests {
    @Test("locks of flock(2) and fcntl(2) exclude other processes", .timeLimit(.minutes(1)))
    func locks() throws {
      try withWritable { mount, _ in
        let file = mount.point / "plain.txt"
        try file.withFile(O_RDWR) { open in
          #expect(flock(open, LOCK_EX) == 0)
          #expect(try Command(["flock", "-n", file, "true"]).run().status == 1)
          // The file is copied while the lock is held.
          try ByteString.put("x", in: open, at: 0)
          #expect(try Command(["flock", "-n", file, "true"]).run().status == 1)
          #expect(flock(open, LOCK_UN) == 0)
          #expect(try Command(["flock", "-n", file, "true"]).run().status == 0)
        }
        let script = """
          import fcntl, os, sys
          f = open(sys.argv[1], 'r+')
          fcntl.lockf(f, fcntl.LOCK_EX)
          if os.fork() == 0:
              g = open(sys.argv[1], 'r+')
              try: fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
              except BlockingIOError: os._exit(0)
              os._exit(1)
          sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
          """
        try Command(["python3", "-c", ByteString(script), file]).check()
      }
    }

    @Test("SQLite with a rollback journal and with a write-ahead log", .timeLimit(.minutes(3)))
    func sqlite() throws {
      let fixture = try Fixture()
      let script = """
        import sqlite3, sys
        base = sqlite3.connect(sys.argv[1], timeout=60)
        base.execute('pragma journal_mode=' + sys.argv[2])
        base.execute('create table if not exists t (writer, number)')
        base.commit()
        for number in range(40):
            base.execute('insert into t values (?, ?)', (sys.argv[3], number))
            base.commit()
        """
      let check = """
        import sqlite3, sys
        base = sqlite3.connect(sys.argv[1])
        print(base.execute('pragma integrity_check').fetchone()[0], base.execute('select count(*) from t').fetchone()[0])
        """
      let count = "first"
      for mode in ["delete", "wal"] {
        // A database that exists in MAIN already.
        let path = fixture.main / ByteString(mode)
        try Command(["python3", "-c", ByteString(script), path, ByteString(mode), ByteString(count)]).check()
      }
      try withWritable(fixture: fixture) { mount, fixture in
        for mode in ["delete", "wal"] {
          let path = mount.point / ByteString(mode)
          let writers = try ["a", "b"].map {
            try Child(Command(["python3", "-c", ByteString(script), path, ByteString(mode), ByteString($0)]))
          }
          for writer in writers {
            let outcome = try writer.wait(timeout: 90)
            #expect(outcome.status == 0, "\(mode): \(outcome.errorText)")
          }
          let outcome = try Command(["python3", "-c", ByteString(check), path]).check()
          #expect(outcome.outputText == "ok 120\n", "\(mode)")
          let own = try Command(["python3", "-c", ByteString(check), fixture.main / ByteString(mode)]).check()
          #expect(own.outputText == "ok 40\n", "\(mode)")
        }
      }
    }

    @Test("a program that was just written runs", .timeLimit(.minutes(1)))
    func execution() throws {
      try withWritable { mount, fixture in
        for round in 0..<5 {
          let program = mount.point / ByteString("program\(round)")
          try Command("cp", "/bin/true", program.text).check()
          #expect(try Command([program]).run().status == 0)
          // By the layer, as soon as nothing has it open for writing.
          let own = fixture.substitution / ByteString("program\(round)")
          #expect(eventually(within: 20) { (try? Command([own]).run().status) == 0 })
        }
      }
    }

    @Test("sed, cp, tar and rsync", .timeLimit(.minutes(2)))
    func commonPrograms() throws {
      try withWritable { mount, fixture in
        let script = """
          set -e
          cd "$1"
          sed -i s/main/MAIN/ plain.txt folder/inner.txt
          cp -a folder copied
          tar cf - only | tar xf - -C copied
          mkdir tree && for ((i = 0; i < 200; i++)); do echo $i > tree/$i; done
          rm -r tree/1*
          mv tree moved
          if command -v rsync > /dev/null; then rsync -a --delete moved/ folder/; else rm folder/*; cp -a moved/* folder/; fi
          diff -r moved folder
          """
        try Command.shell(script, mount.point).check(timeout: 90)
        #expect(try (mount.point / "plain.txt").readText() == "MAIN's plain\n")
        #expect(try (mount.point / "copied/inner.txt").readText() == "MAIN's inner\n")
        #expect(try (mount.point / "copied/only/deep/file.txt").readText() == "deep\n")
        #expect(try (mount.point / "folder").names() == (mount.point / "moved").names())
        try expectUntouchedMain(fixture)
        let merged = try (mount.point / "folder").names()
        try withOverlay(fixture) { overlay in
          let names = try (overlay / "folder").names()
          #expect(names == merged)
        }
      }
    }
  }
}
