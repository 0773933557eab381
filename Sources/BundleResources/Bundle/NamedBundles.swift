import Foundation
import Posix

/// The bundles that are named in URLs of files in archives: `rsrc://bundle-1/logo.png`. A name is valid as long as its
/// bundle exists, and is used once in a process.
enum NamedBundles {
  private struct Reference {
    weak var bundle: LayeredBundle?
  }

  private static let bundles = Locked<[String: Reference]>([:])
  private static let count = Locked(0)
  private static let prefix = "bundle-"

  static func newName() -> String {
    count.withLock { count in
      count += 1
      return prefix + String(count)
    }
  }

  static func add(_ bundle: LayeredBundle) {
    bundles.withLock { $0[bundle.name] = Reference(bundle: bundle) }
    ResourceURLProtocol.loadURLsOfBundles()
  }

  static func remove(_ name: String) { _ = bundles.withLock { $0.removeValue(forKey: name) } }

  /// Whether a URL's host has the form of a name.
  static func isName(_ host: String) -> Bool { host.hasPrefix(prefix) }

  /// The bundle of a URL's host; nil if it does not exist any more, and for other hosts.
  static func bundle(_ host: String?) -> LayeredBundle? {
    guard let host, isName(host) else { return nil }
    return bundles.withLock { $0[host]?.bundle }
  }
}
