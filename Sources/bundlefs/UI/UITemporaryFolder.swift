import Glibc
import Posix

/// A folder for temporary files that only this user may enter.
struct UITemporaryFolder {
  let path: String

  /// - Parameter parents: the folders of which the first is taken where `use` succeeds.
  /// - Returns: nil if there is none.
  static func make(in parents: [String] = Self.parents, use: (UITemporaryFolder) -> Bool)
    -> UITemporaryFolder?
  {
    for parent in parents where parent.hasPrefix("/") {
      guard let folder = UITemporaryFolder(below: parent) else { continue }
      if use(folder) { return folder }
      folder.remove()
    }
    return nil
  }

  private init?(below parent: String) {
    // Only its owner may enter what mkdtemp(3) makes.
    var template = Array((parent + "/bundlefs-ui-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { return nil }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static var parents: [String] {
    let set = ["XDG_RUNTIME_DIR", "TMPDIR"].compactMap { (name: String) in getenv(name) }
    return set.map { String(cString: $0) } + ["/tmp"]
  }

  /// Removes it, once it is empty.
  func remove() { rmdir(path) }
}
