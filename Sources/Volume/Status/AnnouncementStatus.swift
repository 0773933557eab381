import Routing

/// The part of `bundlefs status` about the events that were sent to watchers of the mount.
struct AnnouncementStatus {
  let mode: AnnounceMode
  let figures: AnnouncementFigures?

  private var reason: String? {
    if case .unavailable(let reason) = mode { reason } else { nil }
  }

  var line: String {
    guard let figures else {
      return "announced to watchers: nothing" + (reason.map { " (\($0))" } ?? "")
    }
    let drop = figures.lastDrop.map { " (the last: \($0))" } ?? ""
    return "announced to watchers: events \(figures.announced), coalesced \(figures.coalesced), "
      + "dropped \(figures.dropped)\(drop)"
  }

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("on", figures != nil)
      json.member("reason", reason)
      json.member("events", figures?.announced ?? 0)
      json.member("coalesced", figures?.coalesced ?? 0)
      json.member("dropped", figures?.dropped ?? 0)
      json.member("lastDrop", figures?.lastDrop)
    }
  }
}
