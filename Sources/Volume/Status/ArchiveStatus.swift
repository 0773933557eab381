import Layers
import Routing

/// The part of `bundlefs status` about a layer that is an archive.
struct ArchiveStatus {
  private let figures: ArchiveLayer.Statistics
  /// Why the last readable content is shown instead of the current one.
  private let note: String?
  /// Whether the names of skipped entries are shown: some may be in folders that not everyone may list.
  private let showsNames: Bool

  init(_ layer: ArchiveLayer, showsNames: Bool) {
    self.showsNames = showsNames
    figures = layer.statistics
    note = layer.reloadError?.message
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
    }
  }

  var lines: [String] {
    var lines = [
      "\(figures.format) archive: entries \(figures.entries); files \(figures.files), folders \(figures.folders)"
    ]
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
