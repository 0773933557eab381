import Glibc
import Posix
import TestSupport
import Testing

/// Trees of this machine are walked and read by ordinary programs.
extension MountTests {
  @Suite struct RealTreeTests {
    @Test("find, tar and concurrent sha256sum read a large tree", .timeLimit(.minutes(5)))
    func largeTree() throws {
      let tree = try RealTree(main: "/usr/share")
      #expect(tree.files.count > 1000, "the tree is too small for this test")
      let replaced = Set(tree.replaced)
      try withMount(tree.setup) { mount in
        let seen = try RealTree.outline(mount.point, without: replaced)
        let expected = try RealTree.outline(tree.main, without: replaced)
        #expect(Set(seen).symmetricDifference(expected).sorted().prefix(10) == [])
        #expect(seen.count == expected.count)

        let sums = try tree.checksums(of: tree.files, in: mount.point)
        let expectedSums = try tree.checksums(of: tree.files, in: tree.main)
          .merging(try tree.checksums(of: tree.replaced, in: tree.substitution)) { $1 }
        let different = tree.files.filter { sums[$0] != expectedSums[$0] }
        #expect(different.prefix(10) == [])
        #expect(sums.count == tree.files.count && expectedSums.count == tree.files.count)

        let archived = try Command.shell(
          #"set -o pipefail; tar c -C "$1" . | tar t | wc -l"#, mount.point
        )
        .check(timeout: 120)
        #expect(archived.outputText == "\(seen.count + 1)\n")
      }
    }

    @Test("diff -r finds no difference from a copy, and concurrent greps agree", .timeLimit(.minutes(3)))
    func copiedTree() throws {
      let tree = try RealTree(main: "/usr/include")
      let copy = tree.folder / "copy"
      try Command("cp", "-a", tree.main.text, copy.text).check(timeout: 120)
      try Command("cp", "-a", tree.substitution.text + "/.", copy.text).check(timeout: 120)
      try withMount(tree.setup) { mount in
        let difference = try Command(
          "diff", "-r", "--no-dereference", copy.text, mount.point.text
        ).run(timeout: 120)
        #expect(
          difference.status == 0, "\(difference.outputText.prefix(500))\(difference.errorText.prefix(500))")
        let greps = try (0..<4).map { _ in
          try Child(.shell(#"cd "$1" && grep -rc --include='[a-m]*' include . | sort"#, mount.point))
        }
        let outputs = try greps.map { try $0.wait(timeout: 90) }
        let expected = try Command.shell(#"cd "$1" && grep -rc --include='[a-m]*' include . | sort"#, copy)
          .run()
        for output in outputs {
          #expect(
            output.output == expected.output && output.errors.isEmpty, "\(output.errorText.prefix(500))")
        }
      }
    }

    @Test("mapped files have the right content", .timeLimit(.minutes(2)))
    func mapping() throws {
      let tree = try RealTree(main: "/usr/include")
      try withMount(tree.setup) { mount in
        for path in tree.files.prefix(600) {
          let content = try mapped(mount.point / path)
          let expected =
            try tree.replaced.contains(path)
            ? RealTree.replacement(of: path) : (tree.main / path).read()
          #expect(content == expected, "\(path)")
        }
      }
    }

    private func mapped(_ path: ByteString) throws -> [UInt8] {
      try path.withOpen(O_RDONLY) { file in
        let size = Int(try ByteString.status(of: file).size)
        if size == 0 { return [] }
        guard let map = mmap(nil, size, PROT_READ, MAP_SHARED, file, 0), map != MAP_FAILED else {
          throw DiskError("mmap", path, .current)
        }
        defer { munmap(map, size) }
        return [UInt8](UnsafeRawBufferPointer(start: map, count: size))
      }
    }

    @Test("the end of a sparse 5 GiB file is readable", .timeLimit(.minutes(1)))
    func sparseFile() throws {
      let fixture = try Fixture()
      let size = 5 << 30
      let end = [UInt8]("the very end".utf8)
      try (fixture.main / "large").write("the beginning")
      try (fixture.main / "large").setSize(size)
      try (fixture.main / "large").overwrite(end, at: size - end.count)
      try withMount(fixture.setup) { mount in
        #expect(try (mount.point / "large").status().size == Int64(size))
        let tail = try Command("tail", "-c", "\(end.count)", (mount.point / "large").text).check(timeout: 20)
        #expect(tail.output == end)
        try (mount.point / "large").withOpen(O_RDONLY) { file in
          var buffer = [UInt8](repeating: 9, count: 100)
          #expect(pread(file, &buffer, 100, off_t(size - 50)) == 50)
          #expect([UInt8](buffer[..<50]) == [UInt8](repeating: 0, count: 50 - end.count) + end)
          #expect(pread(file, &buffer, 100, off_t(size)) == 0)
          #expect(pread(file, &buffer, 100, off_t(3 << 30)) == 100)
          #expect(buffer.allSatisfy { $0 == 0 })
        }
      }
    }
  }
}
