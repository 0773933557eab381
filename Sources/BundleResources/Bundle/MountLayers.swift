import Bundles
import ControlClient
import Layers
import Posix
import Routing

/// The layers of a mount, as its status names them.
final class MountLayers: Sendable {
  fileprivate struct State {
    var reader: LayerReader?
    /// The layers and options of the reader.
    var description: Description?
    /// When the status was read.
    var time: TimeSpec?
  }

  fileprivate struct Description: Equatable {
    let layers: [LaidPath]
    var options: ResourceOptions
  }

  /// An absolute path.
  let mountPoint: [UInt8]
  private let caches: Bool
  private let stringOrder: ResourceOptions.StringOrder
  private let state = Locked(order: 10, State())
  /// Reading the status takes the daemon time in proportion to the files that the kernel knows.
  private static let maxAge: Int64 = 1000

  init(mountPoint: [UInt8], caches: Bool, stringOrder: ResourceOptions.StringOrder = .layer) {
    (self.mountPoint, self.caches, self.stringOrder) = (mountPoint, caches, stringOrder)
  }

  /// Reads the status again at the next use.
  func invalidate() {
    let reader = state.withLock { state in
      state.time = nil
      return state.reader
    }
    reader?.cache?.removeAll()
  }

  /// - Throws: ENOTCONN where nothing is mounted; what opening a layer answers.
  func reader() throws(PathError) -> LayerReader {
    try state.withLock { state throws(PathError) in
      let now = TimeSpec.monotonic
      if let reader = state.reader, let time = state.time, now.milliseconds(since: time) < Self.maxAge {
        return reader
      }
      // Cleared for the case that the mount is gone.
      let former = state
      state = State()
      let description = try describe()
      let isSame = former.description == description
      let reader =
        if isSame, let reader = former.reader { reader } else {
          try LayerReader(layers: description.layers, options: description.options, caches: caches)
        }
      state = State(reader: reader, description: description, time: now)
      return reader
    }
  }

  private func describe() throws(PathError) -> Description {
    let text: [UInt8]
    do throws(Errno) { text = try StatusClient.read(.json, at: mountPoint) } catch {
      throw PathError(mountPoint: mountPoint, error)
    }
    guard let status = JSONValue(text), var description = Description(status) else {
      throw PathError(errno: .ioError, path: mountPoint, reason: "a status of another version of bundlefs")
    }
    description.options.stringOrder = stringOrder
    return description
  }
}

extension PathError {
  /// Why a mount does not answer.
  init(mountPoint: [UInt8], _ error: Errno) {
    switch error {
    case .noSuchFileOrDirectory, .notDirectory:
      self.init(
        errno: .socketNotConnected, path: mountPoint,
        reason: "no such directory; no bundlefs is mounted there")
    case .inappropriateIOCTLForDevice:
      self.init(errno: .socketNotConnected, path: mountPoint, reason: "no bundlefs is mounted there")
    case .socketNotConnected:
      let path = String(decoding: mountPoint, as: UTF8.self)
      self.init(
        errno: error, path: mountPoint,
        reason: "the process that serves the mount is dead; remove it with 'bundlefs unmount \(path)'")
    default: self.init(errno: error, path: mountPoint)
    }
  }
}

extension MountLayers.Description {
  /// nil if the status is of another version.
  fileprivate init?(_ status: JSONValue) {
    guard case .array(let layers)? = status["layers"] else { return nil }
    self.layers = layers.compactMap { layer in
      if case .boolean(true)? = layer["absent"] { return nil }
      let name = layer["encodedPath"]?.string.flatMap { PercentCoding.decoded($0) }
      return name.flatMap { try? LaidPath(name: $0) }
    }
    if self.layers.isEmpty { return nil }
    var languages: [[UInt8]]?
    if case .array(let names)? = status["bundle"]?["searched"] {
      languages = names.compactMap(\.string).filter { $0 != "Base" }.map { Array($0.utf8) }
    }
    options = ResourceOptions(
      languages: languages, scale: status["options"]?["scale"]?.string.flatMap { Int($0) },
      idiom: status["options"]?["idiom"]?.string.flatMap(ResourceOptions.Idiom.init))
  }
}
