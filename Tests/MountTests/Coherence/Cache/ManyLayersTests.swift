import Posix
import TestSupport
import Testing

/// Directories of many layers, whose names are indexed.
extension MountTests {
  @Suite struct ManyLayersTests {
    /// Layers that have `folder` with a file of their own, top first, the last one being the main layer.
    private static func withLayers(
      _ count: Int, options: [ByteString] = [], _ body: (Mount, [ByteString]) throws -> Void
    ) throws {
      let folder = try TemporaryFolder()
      let layers = try (0..<count).map { number in
        let layer = try folder.folder(ByteString("layer\(number)"))
        try (layer / "folder").makeDirectory()
        try (layer / ByteString("folder/own-\(number)")).write("\(number)")
        return layer
      }
      var setup = MountSetup(
        main: layers[count - 1], point: try folder.folder("mount"), substitutions: layers.dropLast())
      setup.options = options
      try withMount(setup) { mount in
        // An index is made of the listing.
        _ = try (mount.point / "folder").names()
        try body(mount, layers)
      }
    }

    /// Nothing waits for an event here: a lookup of a name that the kernel does not know sees what is in the layers.
    @Test(
      "a name that was never asked for is found as soon as a layer has it", .timeLimit(.minutes(2)),
      arguments: [4, 12])
    func newNames(count: Int) throws {
      try Self.withLayers(count) { mount, layers in
        for number in 0..<3000 {
          let name = ByteString("folder/new-\(number)")
          let layer = layers[number % count]
          switch number % 3 {
          case 0: try (layer / name).write("x")
          case 1: try (layer / name).makeDirectory()
          default: try (layer / name).makeHardLink(of: layer / ByteString("folder/own-\(number % count)"))
          }
          #expect((try? (mount.point / name).status()) != nil, "\(number)")
        }
      }
    }

    @Test("a name that has just gone from all layers is not found", .timeLimit(.minutes(2)))
    func formerNames() throws {
      // The announcer looks up what comes, and the kernel then knows it.
      try Self.withLayers(8, options: ["announce=off"]) { mount, layers in
        for number in 0..<1000 { try (layers[number % 8] / ByteString("folder/old-\(number)")).write("x") }
        try mount.barrier()
        for number in 0..<1000 {
          let name = ByteString("folder/old-\(number)")
          try (layers[number % 8] / name).remove()
          #expect((try? (mount.point / name).status()) == nil, "\(number)")
        }
      }
    }

    @Test("an entry that moves from layer to layer stays visible", .timeLimit(.minutes(2)))
    func movedNames() throws {
      try Self.withLayers(8) { mount, layers in
        for number in 0..<1000 {
          let name = ByteString("folder/moved-\(number)")
          let (first, second) = (layers[number % 8], layers[(number * 3 + 1) % 8])
          try (first / name).write("x")
          #expect(try (mount.point / name).readText() == "x")
          if first != second {
            try (second / name).write("x")
            try (first / name).remove()
          }
          #expect((try? (mount.point / name).status()) != nil, "\(number)")
        }
      }
    }
  }
}
