import Routing

enum PassthroughMode: Sendable {
  case off
  case impossible(String)
  case possible(Passthrough)
  /// It was possible, and the process is about to end or to hand over.
  case ended

  /// For `bundlefs status`; nil without `-o passthrough`.
  var status: PassthroughStatus? {
    switch self {
    case .off, .ended: nil
    case .impossible(let reason): PassthroughStatus(reason: reason)
    case .possible(let passthrough): passthrough.figures
    }
  }
}

/// What `bundlefs status` shows about passthrough.
struct PassthroughStatus {
  /// Bytes from which on files are passed through; nil if none can be.
  var smallest: UInt64?
  /// Nodes that are open with a backing file now.
  var open = 0
  /// Whether the files of the layer that takes the changes are passed through, whatever their size, and no others.
  var isOfUpperLayer = false
  var opened: UInt64 = 0
  var refused: UInt64 = 0
  /// Why no file can be passed through, or why the last one was refused.
  var reason: String?

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("smallest", smallest)
      json.member("open", open)
      json.member("opened", opened)
      json.member("refused", refused)
      json.member("reason", reason)
    }
  }

  var line: String {
    guard let smallest else { return "passthrough: none: \(reason ?? "")" }
    let refusals = refused == 0 ? "" : "; refused: \(refused), the last one: \(reason ?? "")"
    let files = isOfUpperLayer ? "in the layer that takes the changes" : "from \(smallest) bytes on"
    return "passthrough, \(files): \(open) files now, opened \(opened) times\(refusals)"
  }
}
