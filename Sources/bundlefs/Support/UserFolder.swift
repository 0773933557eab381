import Glibc
import Posix

/// A folder of the user's, as the XDG Base Directory Specification places it.
enum UserFolder {
  /// The value of an environment variable; nil or empty if it is not set.
  typealias Variable = (String) -> [UInt8]?

  static func environment(_ name: String) -> [UInt8]? { getenv(name).map { [UInt8](bytesOf: $0) } }

  /// - Parameters:
  ///   - name: the variable that names the folder. The specification has relative paths ignored.
  ///   - place: where it is in the home directory otherwise.
  ///   - isUsable: whether a home directory may be used.
  /// - Returns: nil without either.
  static func base(
    _ name: String, orInHome place: String, _ variable: Variable, isUsable: ([UInt8]) -> Bool = { _ in true }
  ) -> [UInt8]? {
    let isAbsolute = { (path: [UInt8]) in path.first == UInt8(ascii: "/") }
    if let folder = variable(name), isAbsolute(folder) { return folder }
    guard let home = variable("HOME"), isAbsolute(home), isUsable(home) else { return nil }
    return home + Array("/\(place)".utf8)
  }

  /// Makes a folder and those above it, for the user alone.
  static func make(_ path: [UInt8]) throws(Failure) {
    let parts = path.split(separator: UInt8(ascii: "/"))
    for count in 1...parts.count {
      let folder = [UInt8(ascii: "/")] + Array(parts[..<count].joined(separator: [UInt8(ascii: "/")]))
      if (try? Descriptor.open(folder, [.pathOnly, .directory])) != nil { continue }
      do throws(Errno) { try Descriptor.makeDirectory(folder, mode: 0o700) } catch {
        if error != .fileExists { throw .failed("\(folder.shown): \(error)") }
      }
    }
  }
}

extension [UInt8] {
  /// A path's folder, without a slash at its end, and last component.
  var folderAndName: (folder: [UInt8], name: [UInt8]) {
    guard let slash = lastIndex(of: UInt8(ascii: "/")) else { return (Array(".".utf8), self) }
    return (slash == 0 ? [UInt8(ascii: "/")] : Array(self[..<slash]), Array(self[(slash + 1)...]))
  }
}
