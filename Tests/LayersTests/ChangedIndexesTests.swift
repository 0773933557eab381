import Posix
import TestSupport
import Testing

@testable import Layers

/// Which layers a change of the stack concerns.
@Suite struct ChangedIndexesTests {
  private func stack(former: [Int]?, count: Int, retired: Int = 0) throws -> (TemporaryFolder, LayerStack) {
    let folder = try TemporaryFolder()
    let layers = try (0..<count + retired).map { index in
      Layer.directory(
        try DirectoryLayer(path: folder.folder(ByteString("\(index)")).bytes, index: index, covered: nil))
    }
    return (
      folder, LayerStack(layers: Array(layers[..<count]), retired: Array(layers[count...]), former: former)
    )
  }

  @Test(
    "the layers that came, went or moved",
    arguments: [
      // The present layers are 0, 1 and 2, the retired ones 3 and 4.
      ([0, 1, 2], []), ([1, 2], [0]), ([0, 3, 1, 2], [3]), ([3, 4, 2], [0, 1, 3, 4]), ([2], [0, 1]),
      ([1, 0, 2], [0]), ([0, 3, 2], [1, 3]),
    ] as [([Int], Set<Int>)])
  func changed(former: [Int], expected: Set<Int>) throws {
    let (folder, stack) = try stack(former: former, count: 3, retired: 2)
    defer { withExtendedLifetime(folder) {} }
    let changed = try #require(stack.changedIndexes)
    if former == [1, 0, 2] {
      #expect(changed == [0] || changed == [1], "one of the two that changed places is enough")
    } else {
      #expect(changed == expected)
    }
  }

  @Test("no layers changed where the stack is the predecessor's")
  func same() throws {
    let (folder, stack) = try stack(former: nil, count: 2)
    #expect(stack.changedIndexes == nil)
    withExtendedLifetime(folder) {}
  }

  @Test("what a layer does to a directory below it")
  func effect() throws {
    let folder = try TemporaryFolder()
    for path in ["0/plain", "0/opaque", "0/hidden"] as [ByteString] { _ = try folder.folder(path) }
    try (folder / "0/file").write("")
    try (folder / "0/opaque/.wh..wh..opq").write("")
    for name in ["hidden", "absent"] { try (folder / ByteString("0/.wh.\(name)")).write("") }
    let root = try DirectoryLayer(path: (folder / "0").bytes, index: 0, covered: nil).root
    func effect(_ name: String) throws -> String {
      switch try withCName(Array(name.utf8), { root.effect(on: $0) }) {
      case .none: "none"
      case .parts(let parts): "part of \(parts[0].layer)"
      case .hides: "hides"
      }
    }
    #expect(try effect("plain") == "part of 0")
    #expect(try effect("other") == "none")
    for name in ["file", "opaque", "hidden", "absent"] { #expect(try effect(name) == "hides", "\(name)") }
  }
}
