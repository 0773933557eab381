import Layers
import Testing

@Suite struct LaidPathTests {
  private func read(_ name: String) throws -> LaidPath { try LaidPath(name: Array(name.utf8)) }

  @Test(
    "only '@/' after a name separates",
    arguments: [
      ("/mods/a.zip@/Data", "/mods/a.zip", "Data"), ("mod@/Data/Scripts/", "mod", "Data/Scripts"),
      ("a.ipa!/Payload@/x", "a.ipa!/Payload", "x"), ("/mods/icon@2x", "/mods/icon@2x", ""),
      ("/mnt/@/home", "/mnt/@/home", ""), ("@/home", "@/home", ""), ("node_modules/@babel/core@", nil, ""),
      ("me\\@/mods", "me@/mods", ""), ("me\\@/mods@/Data", "me@/mods", "Data"),
      ("m@///.//Data", "m", "Data"), ("m@/@/x", "m", "@/x"), ("back\\slash@x", nil, ""), ("", nil, ""),
    ] as [(String, String?, String)])
  func parts(name: String, path: String?, folder: String) throws {
    let laid = try read(name)
    #expect(laid.path == Array((path ?? name).utf8))
    #expect(laid.folder == Array(folder.utf8))
    #expect(try LaidPath(name: laid.name) == laid)
  }

  @Test("a path without '@/' is its own name", arguments: ["/a/b", "icon@2x", "/mnt/@/x", "a\\@b", "a\\"])
  func unchanged(path: String) throws {
    let laid = LaidPath(atRoot: Array(path.utf8))
    #expect(laid.name == laid.path && laid.shown == laid.path)
    #expect(try read(path) == laid)
  }

  @Test("any path has a name that is read again", arguments: ["me@/mods", "me\\@/mods", "a@/b@/c", "\\@/x"])
  func escaped(path: String) throws {
    let laid = LaidPath(atRoot: Array(path.utf8))
    #expect(try LaidPath(name: laid.name) == laid)
    #expect(laid.shown == laid.path)
  }

  @Test(
    "a folder that no mount can have is refused",
    arguments: [
      "m@/", "m@//.", "m@/../x", "m@/a/..", "m@/.wh.x", "a@/b@/c", "m@/\(String(repeating: "x", count: 256))",
    ])
  func refused(name: String) { #expect(throws: LaidPath.Fault.self) { try read(name) } }

  @Test(
    "a folder that cannot be written in a name, or is too long, is refused",
    arguments: ["p@/q", String(repeating: "a/", count: 2048)])
  func refusedFolder(place: String) {
    #expect(throws: LaidPath.Fault.self) { try LaidPath(Array("m".utf8), at: Array(place.utf8)) }
    #expect(throws: Never.self) { try LaidPath(Array("m".utf8), at: Array(place.utf8.dropLast(2))) }
  }
}
