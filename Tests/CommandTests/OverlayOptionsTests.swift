import Posix
import TestSupport
import Testing
import Volume

@testable import Layers
@testable import bundlefs

/// The options of fuse-overlayfs.
@Suite struct OverlayOptionsTests {
  private let folder: TemporaryFolder
  private let (upper, work): (ByteString, ByteString)

  init() throws {
    folder = try TemporaryFolder()
    (upper, work) = (try folder.folder("upper"), try folder.folder("work"))
  }

  private func arguments(
    _ options: String, program: String = "/usr/bin/fuse-overlayfs", operands: [String] = ["mnt"]
  ) throws -> MountArguments {
    try MountArguments(([program, "-o", options] + operands).map { Array($0.utf8) })
  }

  private var writable: String { "lowerdir=a:b,upperdir=\(upper.text),workdir=\(work.text)" }

  @Test("the first lower directory is the topmost one below the upper one")
  func order() throws {
    for program in ["fuse-overlayfs", "/x/fuse-overlayfs", "bundlefs"] {
      let read = try arguments(writable, program: program)
      let layers = read.options.layers(above: read.main).map(\.path.shown)
      #expect(layers == [upper.text, "a", "b"] && read.mountPoint.shown == "mnt", "\(program)")
      #expect(read.options.workDirectory?.shown == work.text)
    }
  }

  @Test("a backslash makes a colon, a comma or a backslash part of a name; @/ has no meaning")
  func escapes() throws {
    let read = try arguments(#"lowerdir=/x/a\:b:/x/c\,d@/e:/f\\g"#)
    #expect(
      read.options.layers(above: read.main).map(\.path.shown) == ["/x/a:b", "/x/c,d@/e", #"/f\g"#])
  }

  @Test("nothing is added to the view, and other users may enter only if root mounts")
  func defaults() throws {
    let read = try arguments("lowerdir=a,,volatile")
    #expect(read.options.control.name.isEmpty && read.options.resources.scheme.isEmpty)
    #expect(read.options.extendedAttributes == .layers && !read.options.announces)
    #expect(read.options.passed.contains(Array("ro".utf8)) && read.options.writable == .off)
    #expect(read.options.shown["resource_scheme"] == "none")
    for isRoot in [true, false] {
      var options = MountOptions()
      try options.read(Array(writable.utf8))
      #expect(try options.completeOverlay(isRoot: isRoot) == Array("b".utf8))
      let passed = options.passed.map(\.shown)
      #expect(passed.contains("noatime") && !passed.contains("ro") && options.trustsUpper)
      #expect(passed.contains("allow_other") == isRoot && passed.contains("suid") == isRoot)
    }
  }

  @Test("what is given counts more than what is usual")
  func given() throws {
    let read = try arguments(
      "nosuid,control=.routes,xattr=on,timeout=5,fsname=x,noxattrs=0,\(writable)")
    #expect(read.options.control.name.shown == ".routes" && read.options.extendedAttributes == .on)
    #expect(read.options.cache == .seconds(5) && read.options.fsname?.shown == "x")
    #expect(!read.options.passed.contains(Array("suid".utf8)))
    #expect(try arguments("lowerdir=a,noxattrs=1").options.extendedAttributes == .off)
  }

  @Test("what holds after an upgrade says the same without the options of fuse-overlayfs")
  func lasting() throws {
    let read = try arguments("\(writable),volatile,timeout=5,threaded=1,noxattrs=1,fsync=0")
    var options = MountOptions()
    for option in read.options.lasting { try options.read(option) }
    try options.check()
    var (former, present) = (read.options.shown, options.shown)
    for name in ["substitution", "writable", "workdir"] { (former[name], present[name]) = (nil, nil) }
    #expect(former == present && options.cache == .seconds(5))
  }

  @Test(
    "what changes nothing is taken",
    arguments: [
      "volatile", "static_nlink", "threaded=0", "threaded=1", "fsync=0", "sync=0", "fast_ino=1",
      "writeback=1",
      "xino=off", "xino=auto", "ino32_t", "metacopy=off", "index=off", "redirect_dir=off", "nfs_export=off",
      "xattr_permissions=0", "private", "max_write=131072", "kernel_cache", "nodev", "rw",
      "uidmapping=0:1:2",
    ])
  func harmless(option: String) throws {
    #expect(throws: Never.self) { try arguments("lowerdir=a,\(option)") }
  }

  @Test(
    "what cannot be had is refused by its name",
    arguments: [
      "noacl", "plugins=x", "xino=on", "metacopy=on", "index=on", "redirect_dir=on", "nfs_export=on",
      "xattr_permissions=2", "context=\"a:b:c:s0:c1", "threaded=x", "noxattrs", "noxattrs=x", "timeout=x",
      "lowerdir=", "lowerdir=a::b", "substitution=c", "frobnicate",
    ])
  func refused(option: String) throws {
    let failure = try #require(throws: Failure.self) { try arguments("lowerdir=a,\(option)") }
    let name = option == "timeout=x" ? "cache" : String(option.prefix { $0 != "=" })
    #expect(failure.status == 2 && failure.message.contains(name), "\(failure.message)")
  }

  @Test("options that do not make up a mount are refused")
  func incomplete() throws {
    let (upper, work) = ("upperdir=\(upper.text)", "workdir=\(work.text)")
    for (options, expected) in [
      ("lowerdir=a,\(upper)", "'upperdir' needs 'workdir=DIR'"), ("\(upper),\(work)", "lowerdir=DIR"),
      ("lowerdir=a,writable=b", "'writable'"), ("lowerdir=a,\(upper)/none,\(work)", "/none: "),
      ("lowerdir=a,\(upper),\(work)/none", "/none: "),
    ] {
      let failure = try #require(throws: Failure.self) { try arguments(options) }
      #expect(failure.message.contains(expected), "\(failure.message)")
    }
    #expect(throws: Failure.self) { try arguments("volatile", program: "bundlefs", operands: ["a", "b"]) }
    #expect(throws: Failure.self) { try arguments("lowerdir=a", operands: []) }
    #expect(throws: Failure.self) { try arguments("lowerdir=a", operands: ["b", "c"]) }
    #expect(
      try arguments("lowerdir=a", program: "mount.bundlefs", operands: ["x", "c"]).mountPoint.shown == "c")
    // As in `bundlefs run`.
    var options = MountOptions()
    try options.read(Array("lowerdir=a".utf8))
    #expect(throws: Failure.self) { try options.check() }
  }

  @Test("a work directory is reached from the layer's root; neither contains the other")
  func workDirectory() {
    func directory(_ work: String, _ layer: String) -> [String]? {
      WorkDirectory(Array(work.utf8), for: Array(layer.utf8)).map {
        [$0.ancestor.shown, $0.path.shown, $0.layer.shown]
      }
    }
    #expect(directory("/a/b/work", "/a/b/diff") == ["..", "../work", "diff"])
    #expect(directory("/w", "/a/b/diff") == ["../../..", "../../../w", "a/b/diff"])
    #expect(directory("/a/bc", "/a/b") == ["..", "../bc", "b"])
    for layer in ["/a/b", "/a", "/", "/a/b/c"] { #expect(directory("/a/b", layer) == nil) }
  }
}
