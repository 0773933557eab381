import Routing

/// What `bundlefs status` tells of the events that programs which watch the mount were sent.
struct AnnouncementStatus {
  private let mode: AnnounceMode
  private let figures: AnnouncementFigures?

  init(_ mode: AnnounceMode, _ figures: AnnouncementFigures?) {
    self.mode = mode
    self.figures = figures
  }

  private var reason: String? {
    if case .unavailable(let reason) = mode { reason } else { nil }
  }

  /// A line for a person.
  var line: String {
    guard let figures else {
      return "announced to watchers: nothing" + (reason.map { ", since \($0)" } ?? "")
    }
    let drop = figures.lastDrop.map { " (the last one: \($0))" } ?? ""
    return "announced to watchers: events \(figures.told), coalesced \(figures.coalesced), "
      + "dropped \(figures.dropped)\(drop)"
  }

  /// A JSON object (RFC 8259).
  var json: String {
    #"{"on":\#(figures != nil),"reason":\#(reason.map(JSONText.quoted) ?? "null"),"#
      + #""events":\#(figures?.told ?? 0),"coalesced":\#(figures?.coalesced ?? 0),"#
      + #""dropped":\#(figures?.dropped ?? 0),"#
      + #""lastDrop":\#(figures?.lastDrop.map(JSONText.quoted) ?? "null")}"#
  }
}
