import Layers
import Posix

/// Finds the path of a layer whose comma, colon or `@/` was not escaped, so that it was taken for a separator.
struct UnescapedSeparator {
  /// How many pieces of a path are put together at most.
  private static let mostPieces = 8
  private static let (comma, colon) = (UInt8(ascii: ","), UInt8(ascii: ":"))
  private static let pathOptions = [
    "substitution", "writable", "workdir", "lowerdir", "upperdir", "routes", "archive_password_file",
    "http_cache", "http_headers_file",
  ]

  /// Whether there is a file or directory, or an archive before `!/`.
  var exists: ([UInt8]) -> Bool = { path in
    let mark = path.indices.first { path[$0...].starts(with: "!/".utf8) }
    return [path, Array(path[..<(mark ?? path.endIndex)])].contains { path in
      !path.isEmpty && (try? Descriptor.open(path, [.pathOnly, .noFollow])) != nil
    }
  }

  /// - Parameter options: as they were given, with their backslashes, in a list with commas between them.
  /// - Returns: a sentence that shows the escaped spelling; nil if no path that exists was torn.
  func hint(inOptions options: [[UInt8]]) -> String? {
    for (first, option) in options.enumerated() {
      guard let equals = option.firstIndex(of: UInt8(ascii: "=")),
        Self.pathOptions.contains(Array(option[..<equals]).shown)
      else { continue }
      for last in first..<min(options.count, first + Self.mostPieces) {
        let text = Array(options[first...last].joined(separator: [Self.comma])).dropFirst(equals + 1)
        let parts = MountOption.splitLayers(Array(text))
        let paths = Self.joined(parts).filter { run in
          run.count > 1 || run.contains { MountOption.split($0, at: Self.comma).count > 1 }
        }
        if let path = existing(paths.map { MountOption.unescape(Array($0.joined(separator: [Self.colon]))) })
        {
          return Self.sentence(path)
        }
      }
    }
    return nil
  }

  /// - Parameter layer: which may be taken to be laid at a folder.
  func hint(for layer: LaidPath) -> String? {
    layer.place.isEmpty || exists(layer.path) ? nil : existing([layer.shown]).map(Self.sentence)
  }

  /// - Parameter layers: what stood between colons, without backslashes.
  func hint(inLayers layers: [[UInt8]]) -> String? {
    let paths = Self.joined(layers).filter { $0.count > 1 }
    return existing(paths.map { Array($0.joined(separator: [Self.colon])) }).map(Self.sentence)
  }

  /// All runs of neighbours.
  private static func joined(_ parts: [[UInt8]]) -> [ArraySlice<[UInt8]>] {
    parts.indices.flatMap { first in
      (first..<min(parts.count, first + mostPieces)).map { parts[first...$0] }
    }
  }

  private func existing(_ paths: [[UInt8]]) -> [UInt8]? { paths.first(where: exists) }

  private static func sentence(_ path: [UInt8]) -> String {
    "the path '\(path.shown)' exists; write it as '\(LaidPath(atRoot: MountOption.escape(path)).name.shown)', in quotes"
  }
}
