import Glibc
import Posix
import WebServer

/// A file that only this user can read, and that leads a browser to an address: every user can read the arguments of
/// programs in /proc.
struct UIAddressFile {
  /// Its absolute path.
  var path: [UInt8] { Array("\(folder.path)/\(Self.name)".utf8) }

  private static let name = "page.html"
  private let folder: UITemporaryFolder

  /// - Parameter parents: the folders for temporary files, of which the first that can be used is.
  /// - Returns: nil if there is none.
  static func leading(to address: String, in parents: [String]? = nil) -> UIAddressFile? {
    let write = { (folder: UITemporaryFolder) in
      let file = UIAddressFile(folder: folder)
      if (try? file.write(WebPageLink.page(to: address))) != nil { return true }
      unlink("\(folder.path)/\(Self.name)")
      return false
    }
    let folder =
      if let parents { UITemporaryFolder.make(in: parents, use: write) } else {
        UITemporaryFolder.make(use: write)
      }
    return folder.map { UIAddressFile(folder: $0) }
  }

  private func write(_ text: String) throws(Errno) {
    let folder = try Descriptor.open(Array(folder.path.utf8), [.pathOnly, .directory, .noFollow])
    let file = try withCName(Array(Self.name.utf8)) { name throws(Errno) in try folder.createFile(name) }
    try file.writeInOneCall(Array(text.utf8))
  }

  func remove() {
    unlink("\(folder.path)/\(Self.name)")
    folder.remove()
  }
}
