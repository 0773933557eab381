import Glibc
import Posix
import TestSupport
import Testing

@testable import Layers

/// Changes of open files.
@Suite struct FileChangeTests {
  private func opened(_ fixture: UpperFixture, _ name: ByteString) throws -> LayerFile {
    guard case .file(let file) = try fixture.tree().openOwn([name]) else { throw TestFailure("no file") }
    return file
  }

  @Test("no attribute undoes another one that is set with it")
  func order() throws {
    let fixture = try UpperFixture()
    let path = fixture.upper / "file"
    try path.write("content")
    var changes = AttributeChanges()
    (changes.owner, changes.group, changes.permissions, changes.size) = (1000, 1001, 0o6755, 3)
    changes.modified = .at(TimeSpec(seconds: 5, nanoseconds: 6))
    try opened(fixture, "file").change(changes)
    let status = try path.status()
    #expect(status.owner == 1000 && status.group == 1001 && status.permissions == 0o6755 && status.size == 3)
    #expect(status.modified == TimeSpec(seconds: 5, nanoseconds: 6))
  }

  @Test("a new size clears the set-ID bits if it is to", arguments: [(0o6755, 0o755), (0o6745, 0o2745)])
  func clearsPrivileges(mode: UInt32, cleared: UInt32) throws {
    let fixture = try UpperFixture()
    let path = fixture.upper / "file"
    try path.write("content")
    try path.setMode(mode)
    var changes = AttributeChanges()
    changes.size = 1
    try opened(fixture, "file").change(changes)
    #expect(try path.status().permissions == mode)
    changes.clearsPrivileges = true
    try opened(fixture, "file").change(changes)
    #expect(try path.status().permissions == cleared)
  }

  @Test("a symbolic link has an owner and times, but no mode")
  func symbolicLink() throws {
    let fixture = try UpperFixture()
    let path = fixture.upper / "link"
    try path.makeLink(to: "nowhere")
    var changes = AttributeChanges()
    changes.permissions = 0o600
    #expect(try errorNumber { try opened(fixture, "link").change(changes) } == .notSupported)
    changes = AttributeChanges()
    (changes.owner, changes.accessed, changes.modified) = (
      7, .now, .at(TimeSpec(seconds: -5, nanoseconds: 1))
    )
    try opened(fixture, "link").change(changes)
    let status = try path.status()
    #expect(status.owner == 7 && status.modified == TimeSpec(seconds: -5, nanoseconds: 1))
  }

  @Test("appended bytes go to the end, and a full disk takes what fits")
  func write() throws {
    let fixture = try UpperFixture(tmpfs: "1m")
    let path = fixture.upper / "file"
    try path.write("one")
    let file = try opened(fixture, "file").reopened(.write)
    let two = [UInt8]("two".utf8)
    let appended = try two.withBytes { bytes throws(Errno) in try file.write(bytes, at: 0, appends: true) }
    #expect(try appended == 3 && path.readText() == "onetwo")
    let large = [UInt8](repeating: 1, count: 4 << 20)
    let written = try file.write(large, at: 0)
    #expect(written > 0 && written <= 1 << 20)
    #expect(try errorNumber { _ = try file.write(large, at: 2 << 20) } == .noSpace)
    try file.synchronize(dataOnly: true)
    try fixture.tree().upper.layer.root.synchronize(dataOnly: false)
  }

  @Test("space is allocated, and extended attributes are set and removed")
  func others() throws {
    let fixture = try UpperFixture()
    let path = fixture.upper / "file"
    try path.write("x")
    let file = try opened(fixture, "file")
    try file.reopened(.readWrite).allocate(mode: 0, at: 0, count: 5000)
    #expect(try path.status().size == 5000)
    try [UInt8]("v".utf8).withBytes { value throws(Errno) in
      try file.setExtendedAttribute("user.note", value, flags: 0)
    }
    #expect(try path.attribute("user.note") == [UInt8]("v".utf8))
    try file.removeExtendedAttribute("user.note")
    #expect(try path.attributeNames() == [])
  }
}
