import BundleResources
import Foundation
import FoundationNetworking

/// The bundle's logo.
struct Logo: Equatable {
  let data: Data
  let mimeType: String

  /// Loads the logo like any other URL: a substitution's logo if there is one, otherwise the bundle's.
  ///
  /// ``ResourceURLProtocol`` must have a source.
  /// - Throws: `URLError`, such as `.fileDoesNotExist`.
  static func load() async throws -> Logo {
    guard let url = URL(string: "rsrc:///logo.svg") else { throw URLError(.badURL) }
    let session = URLSession(configuration: ResourceURLProtocol.configuration)
    defer { session.finishTasksAndInvalidate() }
    let (data, response) = try await session.data(from: url)
    return Logo(data: data, mimeType: response.mimeType ?? "application/octet-stream")
  }

  /// Copies the logo to a file.
  /// - Throws: ``GreeterError/notWritten(_:_:)``.
  func write(to file: URL) throws(GreeterError) {
    do { try data.write(to: file) } catch { throw .notWritten(file, error) }
  }
}
