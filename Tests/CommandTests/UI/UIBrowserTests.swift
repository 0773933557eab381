import Posix
import TestSupport
import Testing
import WebServer

@testable import bundlefs

/// How `bundlefs ui` starts other programs.
@Suite struct UIBrowserTests {
  @Test("the file that leads to the page is its owner's alone, and is removed")
  func addressFile() throws {
    let folder = try TemporaryFolder()
    let address = "http://127.0.0.1:1/?token=2"
    let file = try #require(UIAddressFile.leading(to: address, in: ["relative", "/none", folder.path.text]))
    let path = ByteString(file.path)
    #expect(try path.readText().contains("content=\"0;url=\(address)\""))
    let attributes = { (path: ByteString) in try Descriptor.open(path.bytes, [.pathOnly]).attributes() }
    #expect(try attributes(path).mode & 0o777 == 0o600)
    #expect(try attributes(path.parent).mode & 0o777 == 0o700)
    file.remove()
    #expect(try folder.path.names() == [])
    #expect(UIAddressFile.leading(to: address, in: ["/none"]) == nil)
  }

  @Test("only directories are opened, and not through links")
  func folders() throws {
    let folder = try TemporaryFolder()
    try (folder / "directory").makeDirectory()
    try (folder / "file").write("")
    try (folder / "link").makeLink(to: "directory")
    let mountPoint = MountPoint(path: folder.path.bytes)
    try UIBrowser.check([], in: mountPoint)
    try UIBrowser.check([Array("directory".utf8)], in: mountPoint)
    for name in ["file", "link", "none"] {
      #expect(throws: WebError.self, "\(name)") { try UIBrowser.check([Array(name.utf8)], in: mountPoint) }
    }
  }

  @Test("what is started has the umask and the arguments that are given")
  func umask() throws {
    let folder = try TemporaryFolder()
    let output = folder / "output"
    let script = Array(#"{ umask; printf '%s|' "$@"; } >"$0""#.utf8)
    ChildProcess.runApart(
      ["sh", "-c"].map { Array($0.utf8) } + [script, output.bytes, Array("a b'$".utf8), []], umask: 0o027)
    #expect(try output.readText() == "0027\na b'$||")
  }
}
