import Posix
import TestSupport
import Testing

/// Programs and libraries executed from a mount.
extension MountTests {
  @Suite struct ProgramTests {
    @Test("a program runs from the mount with its libraries", .timeLimit(.minutes(1)))
    func program() throws {
      let fixture = try Fixture(isFilled: false)
      let setup = MountSetup(main: "/usr", point: fixture.point, substitutions: [fixture.substitution])
      try withMount(setup) { mount in
        let libraries = try (mount.point / libraryBelowUsr()).parent
        var command = Command([mount.point / "bin/cat", "/proc/self/maps"])
        command.environment["LD_LIBRARY_PATH"] = libraries.text
        let seen = try command.check(timeout: 20).outputText
        #expect(seen.contains("\(mount.point.text)/bin/cat"))
        #expect(seen.contains("\(libraries.text)/libc.so.6"))
      }
    }

    /// The path below /usr of this process's C library.
    private func libraryBelowUsr() throws -> ByteString {
      let maps = try ByteString("/proc/self/maps").readText()
      let paths = maps.split(separator: "\n").compactMap { $0.split(separator: " ").last }
      guard let path = paths.first(where: { $0.hasPrefix("/usr/") && $0.hasSuffix("/libc.so.6") }) else {
        throw TestFailure("this system's libc is not below /usr")
      }
      return ByteString(String(path.dropFirst("/usr/".count)))
    }

    @Test("Python runs from the mount with its library and extension modules", .timeLimit(.minutes(2)))
    func python() throws {
      let script = "import sys; print(sys.base_prefix); print(sys.executable)"
      let found = try Command("python3", "-c", script).check().outputText.split(separator: "\n")
      let (prefix, executable) = (ByteString(String(found[0])), ByteString(String(found[1])))
      let fixture = try Fixture(isFilled: false)
      let json = try Command(["python3", "-c", "import json; print(json.__file__)"]).check().outputText
      let overridden = ByteString(String(json.dropLast())).parent / "tool.py"
      guard overridden.hasPrefix(prefix + "/") else {
        throw TestFailure("\(overridden) is not below \(prefix)")
      }
      let relative = ByteString([UInt8](overridden.bytes.dropFirst(prefix.count + 1)))
      try (fixture.substitution / relative).parent.makeDirectories()
      try (fixture.substitution / relative).write("MARK = 'from the substitution'\n")

      let setup = MountSetup(main: prefix, point: fixture.point, substitutions: [fixture.substitution])
      try withMount(setup) { mount in
        var programs = [executable]
        if executable.hasPrefix(prefix + "/") {
          programs.append(mount.point / ByteString([UInt8](executable.bytes.dropFirst(prefix.count + 1))))
        }
        for program in programs {
          try expectImports(program, home: mount.point)
        }
      }
    }

    private func expectImports(_ program: ByteString, home: ByteString) throws {
      var command = Command([
        program, "-S", "-B", "-c",
        """
        import sys, json.tool, email.message, asyncio, ctypes, xml.dom.minidom, unittest, _ctypes
        print(json.tool.MARK)
        for module in (json, email.message, asyncio, xml.dom.minidom, unittest, _ctypes):
          assert module.__file__.startswith(sys.argv[1]), module.__file__
        ctypes.CDLL(_ctypes.__file__)
        print(len(json.loads("[1,2,3]")))
        """, home,
      ])
      command.environment["PYTHONHOME"] = home.text
      let outcome = try command.run(timeout: 60)
      #expect(outcome.status == 0, "\(outcome.errorText)")
      #expect(outcome.outputText == "from the substitution\n3\n")
    }
  }
}
