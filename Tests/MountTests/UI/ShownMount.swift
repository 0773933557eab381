import Posix
import TestSupport
import Testing

/// A mount of a few layers, `bundlefs ui` for it, and a browser with its page.
final class ShownMount {
  /// Also that of the user's configuration.
  let folder: TemporaryFolder
  let main: ByteString
  /// The substitutions, topmost first.
  let layers: [ByteString]
  let mount: Mount
  /// Of the page, once the browser has been let in.
  let address: String
  let page: PageDriver
  private let server: Child

  /// - Parameters:
  ///   - layers: the substitutions' names, topmost first.
  ///   - fill: makes MAIN and the layers, by name.
  init(_ layers: [ByteString], options: [ByteString] = [], _ fill: (ByteString, [ByteString]) throws -> Void)
    throws
  {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    let folder = folder
    self.layers = try layers.map { try folder.folder($0) }
    try fill(main, self.layers)
    var setup = MountSetup(main: main, point: try folder.folder("mount"), substitutions: self.layers)
    setup.options = options
    setup.lifetime = 300
    mount = try Mount(setup)
    let environment = ["XDG_CONFIG_HOME": folder.path.text]
    let server = try Child(
      Command([try Binary.underTest(), "ui", mount.point, "--no-open"], environment: environment))
    self.server = server
    let isServing = eventually(within: 30) { server.outputText.contains("\n") || server.status() != nil }
    guard isServing, let line = server.outputText.split(separator: "\n").first else {
      throw TestFailure("bundlefs ui does not start: \(server.errorText)")
    }
    page = try PageDriver()
    try page.load(String(line))
    try page.wait(Self.isLoaded)
    address = try page.text("location.href")
  }

  /// Whether the page shows the layers and the whole tree, and learns of changes.
  static let isLoaded = """
    document.querySelector(".connection").textContent === "Live" && document.querySelector(".layer")
      && !document.getElementById("files-count").textContent.endsWith("…")
    """

  /// Ends the page, the server and the mount.
  /// - Parameter isExpected: whether an error of the page belongs to the test.
  func end(isExpected: (String) -> Bool = { _ in false }) throws {
    #expect(try page.faults().filter { !isExpected($0) } == [])
    server.signal(2)
    #expect(try server.wait(timeout: 20).status == 0)
    try mount.unmount()
  }

  /// The selector of an entry's row.
  static func row(_ path: String) -> String {
    #".entry:not([hidden])[title="\#(path)"]"#
  }

  /// Selects an entry and waits for its versions.
  func select(_ path: String) throws {
    try page.click(Self.row(path))
    let name = try PageDriver.literal(String(path.split(separator: "/").last ?? ""))
    try page.wait("document.querySelector('#file h2')?.textContent === \(name)")
  }

  /// The paths, marks and winners of the shown entries, in order.
  func rows() throws -> [String] {
    try page.texts(
      """
      [...document.querySelectorAll(".entry:not([hidden])")].map(row => [row.title,
        row.querySelector(".entry-mark").textContent, row.querySelector(".entry-layer .layer-name")?.textContent ?? ""
      ].join("|"))
      """)
  }

  /// Waits until these are the shown entries.
  func wait(for rows: [String], location: SourceLocation = #_sourceLocation) throws {
    var found: [String] = []
    let isShown = try eventually(within: 30) {
      found = try self.rows()
      return found == rows
    }
    #expect(isShown, "the page shows \(found)", sourceLocation: location)
  }

  /// Waits until these are the layers in the page, with their numbers, and "off" for those that are switched off.
  func wait(forLayers names: String) throws {
    try page.wait(
      """
      [...document.querySelectorAll(".layer")].map(item =>
        item.row.badge + " " + item.row.name + (item.row.isOn ? "" : " off")).join() === "\(names)"
      """)
  }
}
