import Posix
import TestSupport
import Testing

/// The extended attribute `user.mime_type`.
extension MountTests {
  @Suite struct MIMETypeTests {
    @Test("every regular file has a MIME type by its name or content", .timeLimit(.minutes(1)))
    func types() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let folder = mount.point / "Contents" / "Resources"
        for (name, type) in [
          ("logo.png", "image/png"), ("page.html", "text/html"), ("images/icon.svg", "image/svg+xml"),
          ("data", "application/octet-stream"), ("100%.txt", "text/plain"),
        ] as [(ByteString, String)] {
          for _ in 0..<2 {
            #expect(try (folder / name).attribute("user.mime_type") == Array(type.utf8), "\(name)")
          }
          #expect(try !(folder / name).attributeNames().contains("user.mime_type"), "no copy is to have it")
          _ = try (folder / name).read()
          #expect(try (folder / name).attribute("user.mime_type") == Array(type.utf8), "\(name), open")
        }
        for other in [folder, mount.point, mount.resources, mount.controlFile] {
          try expectErrno(.noData) { _ = try other.attribute("user.mime_type") }
          #expect(try !other.attributeNames().contains("user.mime_type"))
        }
        let type = try Command(
          "getfattr", "--only-values", "-n", "user.mime_type", (folder / "logo.png").text
        )
        .check()
        #expect(type.outputText == "image/png")
      }
    }

    @Test("a backing file's own user.mime_type takes precedence", .timeLimit(.minutes(1)))
    func backingAttribute() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let (file, seen) = (bundle.main / "data", mount.point / "Contents" / "Resources" / "data")
        try file.setAttribute("user.mime_type", Array("application/x-own".utf8))
        #expect(try seen.attribute("user.mime_type") == Array("application/x-own".utf8))
        #expect(try seen.attributeNames().filter { $0 == "user.mime_type" }.count == 1)
        try mount.writeControl("rsrc:///data")
        #expect(try mount.routesText().lines.last?.contains(#""mimeType":"application/x-own""#) == true)
        try file.removeAttribute("user.mime_type")
        #expect(try seen.attribute("user.mime_type") == Array("application/octet-stream".utf8))
      }
    }

    @Test("reading the MIME type does not pin the open file's content", .timeLimit(.minutes(1)))
    func unpinnedContent() throws {
      let bundle = try BundleFixture()
      try withMount(bundle.setup()) { mount in
        let seen = mount.point / "Contents" / "Resources" / "data"
        try seen.withOpen(0) { file in
          #expect(try seen.attribute("user.mime_type") == Array("application/octet-stream".utf8))
          try (bundle.main / "data").replace("text")
          try mount.barrier()
          #expect(
            try ByteString.readAll(file) == Array("text".utf8), "an unread open file has the new content")
        }
        #expect(try seen.attribute("user.mime_type") == Array("text/plain".utf8))
      }
    }
  }
}
