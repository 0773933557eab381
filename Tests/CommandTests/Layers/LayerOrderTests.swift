import TestSupport
import Testing

@testable import bundlefs

/// How `bundlefs layers` changes the order. The paths lead nowhere, so they are compared as bytes.
@Suite struct LayerOrderTests {
  private static let start = ["/l/a", "/l/b", "/l/c", "/m/app"]

  private func order(_ paths: [String] = start, isWritable: Bool = false) -> LayerOrder {
    LayerOrder(paths.map { Array($0.utf8) }, isWritable: isWritable, from: Array("/here".utf8))
  }

  /// The paths after a change, MAIN included.
  private func paths(
    _ order: LayerOrder, _ change: (inout LayerOrder) throws -> Void
  ) rethrows -> [String] {
    var order = order
    try change(&order)
    #expect(order.substitutions == order.paths.dropLast())
    return order.paths.map(\.shown)
  }

  /// The message with which a change is refused; it must leave the order as it is.
  private func refusal(_ order: LayerOrder, _ change: (inout LayerOrder) throws -> Void) throws -> String {
    var changed = order
    let failure = try #require(throws: Failure.self) { try change(&changed) }
    #expect(changed.paths == order.paths && failure.status == 1 && !failure.message.contains("\n"))
    return failure.message
  }

  private func bytes(_ names: String...) -> [[UInt8]] { names.map { Array($0.utf8) } }
  private func bytes(_ name: String) -> [UInt8] { Array(name.utf8) }

  @Test("set replaces all substitutions; MAIN stays")
  func set() throws {
    #expect(
      try paths(order()) { try $0.set(bytes("x", "/y/./z//", "/l/a")) } == [
        "/here/x", "/y/z", "/l/a", "/m/app",
      ])
    #expect(try paths(order()) { try $0.set([]) } == ["/m/app"])
  }

  @Test("add keeps the order of several layers at each position")
  func add() throws {
    func added(_ position: LayerPosition) throws -> [String] {
      try paths(order()) { try $0.add(bytes("x", "/y"), position) }
    }
    #expect(try added(.top) == ["/here/x", "/y", "/l/a", "/l/b", "/l/c", "/m/app"])
    #expect(try added(.bottom) == ["/l/a", "/l/b", "/l/c", "/here/x", "/y", "/m/app"])
    #expect(try added(.above(bytes("b"))) == ["/l/a", "/here/x", "/y", "/l/b", "/l/c", "/m/app"])
    #expect(try added(.below(bytes("/l/b"))) == ["/l/a", "/l/b", "/here/x", "/y", "/l/c", "/m/app"])
    #expect(try added(.above(bytes("app"))) == added(.bottom))
    #expect(try added(.above(bytes("MAIN"))) == added(.bottom))
  }

  @Test("add refuses what is a layer already, and what is given twice")
  func addedTwice() throws {
    let present = try refusal(order()) { try $0.add(bytes("/x", "/l/b/"), .top) }
    #expect(present.contains("/l/b is already a layer") && present.contains("move"))
    let main = try refusal(order()) { try $0.add(bytes("/m/app"), .top) }
    #expect(main.contains("/m/app is already a layer") && main.contains("MAIN"))
    #expect(try refusal(order()) { try $0.add(bytes("x", "./x"), .top) }.contains("/here/x is given twice"))
  }

  @Test("remove takes paths and names, several at once")
  func remove() throws {
    #expect(try paths(order()) { try $0.remove(bytes("a", "/l/c")) } == ["/l/b", "/m/app"])
    #expect(try paths(order()) { try $0.remove(bytes("b", "/l/b", "l/b")) } == ["/l/a", "/l/c", "/m/app"])
    #expect(try refusal(order()) { try $0.remove(bytes("a", "app")) }.contains("/m/app is MAIN"))
  }

  @Test("move brings each layer to each place")
  func move() throws {
    func moved(_ name: String, _ position: LayerPosition) throws -> String {
      try paths(order()) { try $0.move(bytes(name), position) }.map { String($0.last!) }.joined()
    }
    #expect(try moved("c", .top) == "cabp" && moved("a", .top) == "abcp")
    #expect(try moved("a", .bottom) == "bcap" && moved("c", .bottom) == "abcp")
    #expect(try moved("a", .above(bytes("c"))) == "bacp" && moved("c", .above(bytes("a"))) == "cabp")
    #expect(try moved("a", .below(bytes("c"))) == "bcap" && moved("c", .below(bytes("a"))) == "acbp")
    #expect(try moved("a", .above(bytes("b"))) == "abcp" && moved("b", .below(bytes("a"))) == "abcp")
    #expect(try moved("a", .above(bytes("app"))) == "bcap")
  }

  @Test("move refuses MAIN, places below it, and a layer next to itself")
  func moveRefusals() throws {
    #expect(try refusal(order()) { try $0.move(bytes("app"), .top) }.contains("MAIN, which cannot be moved"))
    #expect(
      try refusal(order()) { try $0.move(bytes("a"), .below(bytes("app"))) }.contains("no layer can be below")
    )
    for position in [LayerPosition.above(bytes("a")), .below(bytes("/l/a"))] {
      #expect(try refusal(order()) { try $0.move(bytes("a"), position) }.contains("next to itself"))
    }
  }

  @Test("an unknown name lists the layers, an ambiguous one its candidates")
  func names() throws {
    let unknown = try refusal(order()) { try $0.remove(bytes("d")) }
    #expect(unknown == "'d' is not a layer; the layers are /l/a, /l/b, /l/c, MAIN /m/app")
    let twins = order(["/x/ui", "/y/ui", "/y/gui", "/m/app"])
    let ambiguous = try refusal(twins) { try $0.remove(bytes("ui")) }
    #expect(ambiguous.contains("/x/ui, /y/ui") && !ambiguous.contains("gui;"))
    #expect(try paths(twins) { try $0.remove(bytes("y/ui")) } == ["/x/ui", "/y/gui", "/m/app"])
    // A path wins over a name.
    let nested = order(["/here/ui", "/y/ui", "/m/app"])
    #expect(try paths(nested) { try $0.remove(bytes("ui")) } == ["/y/ui", "/m/app"])
    #expect(try refusal(order()) { try $0.remove(bytes("/a")) }.contains("is not a layer"))
  }

  @Test("the layer that takes changes stays on top")
  func writable() throws {
    let writable = order(isWritable: true)
    for change: (inout LayerOrder) throws -> Void in [
      { try $0.remove(bytes("a")) }, { try $0.move(bytes("a"), .bottom) },
      { try $0.add(bytes("/x"), .above(bytes("a"))) }, { try $0.move(bytes("b"), .above(bytes("a"))) },
      { try $0.set(bytes("/x", "/l/a")) },
    ] {
      #expect(try refusal(writable, change).contains("/l/a takes the changes"))
    }
    #expect(try paths(writable) { try $0.add(bytes("/x"), .top) }[1] == "/x")
    #expect(try paths(writable) { try $0.move(bytes("c"), .top) }[0...1] == ["/l/a", "/l/c"])
    for list in [bytes("/l/a", "/x"), bytes("/x")] as [[[UInt8]]] {
      #expect(try paths(writable) { try $0.set(list) } == ["/l/a", "/x", "/m/app"])
    }
    #expect(try paths(writable) { try $0.set([]) } == ["/l/a", "/m/app"])
  }

  @Test("symbolic links lead to the layers, of archives, too")
  func links() throws {
    let folder = try TemporaryFolder()
    let target = try folder.folder("mods/ui")
    try (folder / "app.zip").write("")
    try (folder / "link").makeLink(to: target)
    try (folder / "zip").makeLink(to: folder / "app.zip")
    let main = folder / "main"
    func order(_ paths: [ByteString]) -> LayerOrder {
      LayerOrder(paths.map(\.bytes), isWritable: false, from: folder.path.bytes)
    }
    let added = try paths(order([main])) { try $0.add(bytes("link", "zip!/Payload"), .top) }
    #expect(added == [target.text, (folder / "app.zip!/Payload").text, main.text])
    #expect(try paths(order([target, main])) { try $0.remove(bytes("link")) } == [main.text])
    #expect(try paths(order([target, main])) { try $0.remove([(folder / "link").bytes]) } == [main.text])
    #expect(
      try refusal(order([target, main])) { try $0.add(bytes("link"), .top) }.contains("already a layer"))
  }
}
