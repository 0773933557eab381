import Posix
import TestSupport
import Testing

/// Trees deeper than PATH_MAX.
extension MountTests {
  @Suite struct DeepTreeTests {
    private static let depth = 6_000

    @Test("a tree of 6,000 levels is walked, moved at its top and invalidated", .timeLimit(.minutes(5)))
    func deepTree() throws {
      let fixture = try Fixture()
      // Such a tree cannot be made by path.
      try python(
        """
        os.chdir(sys.argv[1])
        os.mkdir('top')
        os.chdir('top')
        for _ in range(\(Self.depth)):
            os.mkdir('d')
            os.chdir('d')
        open('end', 'w').write('the end')
        """, fixture.main)
      defer { _ = try? Command("rm", "-rf", fixture.main.text).run(timeout: 120) }
      try withMount(fixture.setup) { mount in
        // After the top was moved, the daemon must look up every level again from the end.
        try python(
          """
          import subprocess
          point, main, program = sys.argv[1:]
          def go():
              os.chdir(point + '/top')
              for _ in range(\(Self.depth)): os.chdir('d')
          def sync(command): subprocess.run([program, command, point], check=True, cwd='/')
          go()
          assert open('end').read() == 'the end'
          os.rename(main + '/top', main + '/away')
          sync('sync')
          os.rename(main + '/away', main + '/top')
          sync('sync')
          assert open('end').read() == 'the end'
          sync('invalidate')
          assert open('end').read() == 'the end'
          go()
          assert open('end').read() == 'the end'
          """, mount.point, fixture.main, try Binary.underTest())
      }
    }

    private func python(_ script: String, _ arguments: ByteString...) throws {
      let program: [ByteString] = ["python3", "-c", ByteString("import os, sys\n" + script)]
      try Command(program + arguments).check(timeout: 200)
    }
  }
}
