import BundleResources
import Foundation
import FoundationNetworking
import Posix
import TestSupport
import Testing

/// A bundle with a substitution in a temporary directory, and a unique scheme.
final class ResourceFixture: Sendable {
  let folder: TemporaryFolder
  let main: ByteString
  let substitution: ByteString
  let point: ByteString
  let scheme: String
  private static let counter = Locked(0)

  init() throws {
    folder = try TemporaryFolder()
    main = try folder.folder("main")
    substitution = try folder.folder("substitution")
    point = try folder.folder("mount")
    let number = Self.counter.withLock { counter in
      counter += 1
      return counter
    }
    scheme = "rsrc\(number)"
  }

  deinit { ResourceURLProtocol.unregister(scheme: scheme) }

  /// Creates a file of the main bundle and its parent directories.
  func make(_ path: ByteString, _ content: String) throws {
    try Self.make(main / path, [UInt8](content.utf8))
  }

  /// Creates a file of the substitution and its parent directories.
  func override(_ path: ByteString, _ content: String) throws {
    try Self.make(substitution / path, [UInt8](content.utf8))
  }

  /// Creates overridden and localized files and one in a subdirectory.
  func makeOverridden() throws {
    try make("a.txt", "main")
    try override("a.txt", "substitution")
    try make("fr.lproj/b.txt", "main fr")
    try make("en.lproj/b.txt", "main en")
    try override("en.lproj/b.txt", "substitution en")
    try make("de.lproj/b.txt", "main de")
    try make("sub/c d.txt", "main sub")
  }

  /// Creates a file of the main bundle with non-repeating content.
  func make(_ path: ByteString, size: Int) throws {
    try Self.make(main / path, Self.bytes(size))
  }

  static func bytes(_ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  private static func make(_ path: ByteString, _ content: [UInt8]) throws {
    try path.parent.makeDirectories()
    try path.write(content)
  }

  /// A source without a mount; French takes precedence over English.
  func source(_ options: LookupOptions = LookupOptions(languages: ["fr", "en"])) throws -> ResourceSource {
    try ResourceSource(main: main.url, substitution: [substitution.url], options: options)
  }

  /// Registers the source without a mount.
  func register(_ options: LookupOptions = LookupOptions(languages: ["fr", "en"])) throws {
    try ResourceURLProtocol.register(try source(options), scheme: scheme)
  }

  /// A URL of the fixture's scheme.
  func url(_ rest: String) throws -> URL { try #require(URL(string: "\(scheme):\(rest)")) }
}

extension ByteString {
  /// The file URL of a directory.
  var url: URL { URL(fileURLWithPath: text, isDirectory: true) }
}

/// The code of the error that the body throws; nil if it throws none.
func code(_ body: () throws -> Void) -> URLError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? URLError)?.code ?? .unknown
  }
}

/// The code of the error that the body throws; nil if it throws none.
func code(_ body: () async throws -> Void) async -> URLError.Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? URLError)?.code ?? .unknown
  }
}

/// Runs the body with a session for resources.
func withSession<Result>(_ body: (URLSession) async throws -> Result) async throws -> Result {
  let session = URLSession(configuration: ResourceURLProtocol.configuration)
  defer { session.finishTasksAndInvalidate() }
  return try await body(session)
}

/// The value of `BUNDLEFS_SEED`, or else the test's own seed.
func seed(_ own: UInt64) -> UInt64 { Binary.variable("BUNDLEFS_SEED").flatMap { UInt64($0) } ?? own }
