import Foundation
import Layers
import Posix

/// The content of a resource, read piece by piece as it is asked for, so that a file of any size needs little memory.
///
/// ```swift
/// for try await piece in try await source.bytes(URL(string: "rsrc:///film.mp4")!) { decoder.append(piece) }
/// ```
///
/// Every iteration begins at the first byte. The file stays open, so the content is that of the file which was found,
/// also if another one takes its place; a file that is changed in place is read as it then is. Cancelling the task ends
/// an iteration with `URLError.cancelled`, even while the file does not answer.
public struct ResourceBytes: AsyncSequence, Sendable {
  public typealias Element = Data
  public typealias Failure = URLError

  /// The most bytes of a piece. No piece is empty.
  public static let pieceSize = 256 << 10

  /// The resource without its content: type, encoding, length, and the range that is read.
  public let resource: LoadedResource
  private let file: LayerFile
  private let loaders: LoaderPool

  init(_ resource: LoadedResource, _ file: LayerFile, _ loaders: LoaderPool) {
    self.resource = resource
    self.file = file
    self.loaders = loaders
  }

  public func makeAsyncIterator() -> Iterator {
    Iterator(
      url: resource.url, file: file, loaders: loaders, next: resource.range?.lowerBound ?? 0,
      end: resource.range?.upperBound)
  }

  /// Reads one piece after the other.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let url: URL
    fileprivate let file: LayerFile
    fileprivate let loaders: LoaderPool
    fileprivate var next: Int
    /// nil for the end of the file.
    fileprivate var end: Int?

    /// The next piece; nil at the end.
    /// - Throws: `URLError`: `.cancelled`; the errors of ``ResourceSource/load(_:)`` that reading can have.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(URLError) -> Data? {
      if Task.isCancelled { throw URLError(.cancelled) }
      let (url, file, start) = (url, file, next)
      let size = Swift.min(ResourceBytes.pieceSize, end.map { $0 - start } ?? .max)
      if size <= 0 { return nil }
      let piece = try await loaders.result { Self.read(file, at: start, size: size, url) }.get()
      next += piece.count
      if piece.isEmpty { end = next }
      return piece.isEmpty ? nil : piece
    }

    private static func read(_ file: LayerFile, at start: Int, size: Int, _ url: URL) -> Result<
      Data, URLError
    > {
      var piece = Data(count: size)
      let outcome = piece.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in try file.read(into: buffer, at: Int64(start)) }
      }
      return outcome.map { $0 == size ? piece : piece.prefix($0) }.mapError { URLError($0, url) }
    }
  }
}
