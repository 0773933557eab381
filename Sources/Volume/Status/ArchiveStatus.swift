import Layers
import RemoteFiles
import Routing

/// The part of `bundlefs status` about a layer that is an archive.
struct ArchiveStatus {
  private let figures: ArchiveLayer.Statistics
  /// Why the last readable content is shown instead of the current one.
  private let note: String?
  private let remote: RemoteFile.Statistics?
  /// Whether the names of skipped entries are shown: some may be in folders that not everyone may list.
  private let showsNames: Bool

  init(_ layer: ArchiveLayer, showsNames: Bool) {
    self.showsNames = showsNames
    figures = layer.statistics
    note = layer.reloadError?.message
    remote = layer.remote?.statistics
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("format", figures.format)
      json.member("entries", figures.entries)
      json.member("files", figures.files)
      json.member("folders", figures.folders)
      json.name("skipped")
      json.array(figures.skipped) { json, skipped in
        json.object { json in
          json.member("reason", skipped.reason.rawValue)
          json.member("count", skipped.count)
          json.name("names")
          json.strings(showsNames ? skipped.names.map(Self.text) : [])
        }
      }
      json.name("unreadable")
      json.array(figures.unreadable) { json, unreadable in
        json.object { json in
          json.member("reason", unreadable.reason)
          json.member("count", unreadable.count)
        }
      }
      json.member("backslashes", figures.backslashed)
      json.member("appended", figures.hasAppended)
      json.member("note", note)
      if let remote {
        json.name("server")
        remote.write(to: &json)
      }
    }
  }

  var lines: [String] {
    var lines = [
      "\(figures.format) archive: entries \(figures.entries); files \(figures.files), folders \(figures.folders)"
    ]
    if let remote { lines += remote.lines }
    if let note { lines.append("last readable content shown: \(note)") }
    for skipped in figures.skipped {
      let names = (showsNames ? skipped.names : []).prefix(5).map(Self.text).joined(separator: ", ")
      let list = names.isEmpty ? "" : ": \(names)" + (skipped.count > 5 ? ", …" : "")
      lines.append("skipped \(skipped.count) (\(skipped.reason.rawValue))\(list)")
    }
    // An archive may use any number of methods.
    for unreadable in figures.unreadable.prefix(8) {
      lines.append("unreadable \(unreadable.count) (\(unreadable.reason))")
    }
    if figures.backslashed > 0 {
      lines.append("backslashes taken for slashes in \(figures.backslashed) names from Windows")
    }
    if figures.hasAppended { lines.append("another tar archive follows its end, which is not shown") }
    return lines
  }

  private static func text(_ name: [UInt8]) -> String { String(escaping: name) }
}

extension RemoteFile.Statistics {
  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("url", String(escaping: url))
      json.member("size", size)
      json.member("cached", cached)
      json.member("downloaded", isWhole)
      if let answered { json.member("answered", answered) }
      if let silent { json.member("silent", silent) }
      json.member("fault", fault)
    }
  }

  var lines: [String] {
    let way =
      isWhole ? "downloaded as a whole, since its server has no ranges or no validators" : "read by ranges"
    let answer = answered.map { "the server answered \($0) s ago" } ?? "the server has not answered yet"
    var lines = ["on a server, \(way): \(cached) of \(size) bytes cached; \(answer)"]
    if let silent {
      lines.append("the server does not answer, since \(silent) s: only what is cached can be read")
    }
    if let fault { lines.append("the server's present state is not shown: \(fault)") }
    return lines
  }
}

extension ContentCacheStatistics {
  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("budget", budget)
      json.member("bytes", bytes)
      json.member("entries", contents)
      json.member("hits", hits)
      json.member("misses", misses)
    }
  }

  var line: String {
    let reads = hits + misses
    let rate = reads == 0 ? "none" : "\(hits * 100 / reads) % of \(reads) cached"
    return "unpacked from archives: entries \(contents), \(bytes) of \(budget) bytes; reads: \(rate)"
  }
}
