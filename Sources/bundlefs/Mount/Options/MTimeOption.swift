import Layers

/// The option `mtime=file`, `mtime=visible` or `mtime=visible:FILE`.
enum MTimeOption: Equatable {
  /// Each file's own.
  case file
  /// The later one of the file's own and the moment when this version became the visible one.
  /// - Parameter record: the file that keeps them, an absolute path; nil for a place that suits the mount.
  case visible(record: [UInt8]?)

  var shown: String {
    switch self {
    case .file: "file"
    case .visible(nil): "visible"
    // Not resolved: it may lead into the mount, which nothing serves when a new program takes over.
    case .visible(let record?): "visible:\(record.shown)"
    }
  }
}

extension MountOption {
  func mtime() throws(Failure) -> MTimeOption {
    let prefix = Array("visible:".utf8)
    switch value {
    case Array("file".utf8): return .file
    case Array("visible".utf8): return .visible(record: nil)
    case let value? where value.starts(with: prefix):
      let record = Self.unescape(Array(value[prefix.count...]))
      let isFile = record.last != UInt8(ascii: "/") && !record.contains(0)
      if record.first == UInt8(ascii: "/"), isFile { return .visible(record: record) }
    default: break
    }
    throw .usage(
      "invalid option '\(text)': expected \(name)=file, \(name)=visible or \(name)=visible:FILE, with an absolute path"
    )
  }
}
