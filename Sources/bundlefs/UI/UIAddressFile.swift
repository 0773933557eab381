import Glibc
import Posix
import WebServer

/// A file that only this user can read, and that leads a browser to an address: every user can read the arguments of
/// programs in /proc.
struct UIAddressFile {
  /// Its absolute path.
  var path: [UInt8] { Array("\(folder)/\(Self.name)".utf8) }

  private static let name = "page.html"
  private let folder: String

  /// - Parameter parents: the folders for temporary files, of which the first that can be used is.
  /// - Returns: nil if there is none.
  static func leading(to address: String, in parents: [String] = Self.parents) -> UIAddressFile? {
    for parent in parents where parent.hasPrefix("/") {
      guard let file = UIAddressFile(below: parent) else { continue }
      if (try? file.write(WebPageLink.page(to: address))) != nil { return file }
      file.remove()
    }
    return nil
  }

  private init?(below parent: String) {
    // Only its owner may enter what mkdtemp(3) makes.
    var template = Array((parent + "/bundlefs-ui-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static var parents: [String] {
    let set = ["XDG_RUNTIME_DIR", "TMPDIR"].compactMap { (name: String) in getenv(name) }
    return set.map { String(cString: $0) } + ["/tmp"]
  }

  private func write(_ text: String) throws(Errno) {
    let folder = try Descriptor.open(Array(folder.utf8), [.pathOnly, .directory, .noFollow])
    let file = try withCName(Array(Self.name.utf8)) { name throws(Errno) in try folder.createFile(name) }
    try file.writeInOneCall(Array(text.utf8))
  }

  func remove() {
    unlink("\(folder)/\(Self.name)")
    rmdir(folder)
  }
}
