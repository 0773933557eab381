import Layers
import Posix
import TestSupport
import Testing

@testable import Volume

/// A rename through the mount moves what the kernel takes a name for, which another program can have replaced just before,
/// so that the kernel has not been notified yet.
@Suite struct RenameKnowledgeTests {
  @Test("the event of a rename is dropped if the layer has the file that the kernel has moved")
  func sameFile() throws {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("a")
    try fixture.lookUp("a")
    try fixture.rename("a", to: "b")
    #expect(fixture.cause(of: .movedTo, at: "b") == .ours)
    #expect(try (fixture.upper / "b").readText() == "a")
  }

  @Test("a file that was replaced before the rename is another program's change at the new name")
  func replacedFile() throws {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("former")
    try fixture.lookUp("a")
    try (fixture.upper / "a").replace(Array("new".utf8))
    try fixture.rename("a", to: "b")
    #expect(fixture.cause(of: .movedTo, at: "b") == .others)
    #expect(try (fixture.upper / "b").readText() == "new")
  }

  @Test("the same for a directory")
  func replacedDirectory() throws {
    let fixture = try WritableStore()
    for name in ["same", "replaced"] {
      try (fixture.upper / ByteString(name)).makeDirectory()
      try fixture.lookUp(name)
    }
    try (fixture.upper / "replaced").rename(to: fixture.upper / "elsewhere")
    try (fixture.upper / "replaced").makeDirectory()
    try fixture.rename("same", to: "b")
    try fixture.rename("replaced", to: "c")
    #expect(fixture.cause(of: [.movedTo, .isDirectory], at: "b") == .ours)
    #expect(fixture.cause(of: [.movedTo, .isDirectory], at: "c") == .others)
  }

  @Test("exchanged names are compared each with the file that the kernel has moved there")
  func exchange() throws {
    let fixture = try WritableStore()
    for name in ["a", "b"] {
      try (fixture.upper / ByteString(name)).write(name)
      try fixture.lookUp(name)
    }
    try (fixture.upper / "a").replace(Array("new".utf8))
    try fixture.rename("a", to: "b", .exchange)
    #expect(fixture.cause(of: .movedTo, at: "a") == .ours)
    #expect(fixture.cause(of: .movedTo, at: "b") == .others)
  }

  @Test("a rename to another name of the same file, which changes nothing, invalidates both names")
  func sameEntry() throws {
    let fixture = try WritableStore()
    try (fixture.upper / "a").write("a")
    try fixture.lookUp("a")
    try (fixture.upper / "b").makeHardLink(of: fixture.upper / "a")
    try fixture.lookUp("b")
    try fixture.rename("a", to: "b")
    #expect(fixture.invalidatedNames() == ["a", "b"])
  }

  @Test("a renamed file that another program has changed before is invalidated")
  func changedFile() throws {
    for isChanged in [false, true] {
      let fixture = try WritableStore()
      try (fixture.upper / "a").write("former")
      let node = try fixture.lookUp("a")
      fixture.own.recordNewFile(node, try fixture.status(of: "a"))
      if isChanged { try (fixture.upper / "a").write("new") }
      try fixture.rename("a", to: "b")
      // The name is gone.
      #expect(fixture.cause(of: .modified, at: "a") == .ours)
      fixture.own.willClose(node)
      #expect(fixture.cause(of: .closeWrite, at: "b") == (isChanged ? .others : .ours))
      #expect(fixture.invalidatedFiles() == (isChanged ? [node] : []))
    }
  }
}
