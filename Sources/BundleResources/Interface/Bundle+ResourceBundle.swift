import Foundation
import CLibrary
import Posix

extension Bundle: ResourceBundle {
  /// Whether a table has a string for a key.
  public func hasLocalizedString(forKey key: String, table tableName: String?) -> Bool {
    // One of them is not the string.
    ["\0", "\0\0"].contains { localizedString(forKey: key, value: $0, table: tableName) != $0 }
  }

  /// Lists the resources with an extension.
  public func resourceURLs(withExtension ext: String?, subdirectory subpath: String?) -> [URL] {
    urls(forResourcesWithExtension: ext, subdirectory: subpath)?.map { $0 as URL } ?? []
  }

  /// Loads a resource.
  /// - Throws: `URLError`, as `LayeredBundle`.
  public func data(
    forResource name: String, withExtension ext: String?, subdirectory subpath: String?
  ) throws(URLError) -> Data {
    guard let url = url(forResource: name, withExtension: ext, subdirectory: subpath) else {
      throw URLError(.fileDoesNotExist, bundleURL, "'\(name)': there is no such resource", nil)
    }
    do { return try Data(contentsOf: url) } catch {
      let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
      let number = underlying.flatMap { $0.domain == NSPOSIXErrorDomain ? CInt(exactly: $0.code) : nil }
      let errno = url.hasDirectoryPath ? Errno.isDirectory : Errno(rawValue: number ?? EIO)
      throw URLError(errno, url)
    }
  }
}
