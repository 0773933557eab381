import Bundles
import Posix
import Routing

/// The part of `bundlefs status` about the merged bundle.
struct BundleStatus {
  var identifier: String?
  var developmentRegion: String?
  /// The localizations of all layers, sorted.
  var localizations: [String] = []
  var searched: [String] = []
  /// The path of the resource folder; empty for the root.
  var folder = ""
  var scheme: String
  var reason: String?

  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("identifier", identifier)
      json.member("developmentRegion", developmentRegion)
      json.name("localizations")
      json.strings(localizations)
      json.name("searched")
      json.strings(searched)
      json.member("resources", folder)
      json.member("scheme", scheme)
      json.member("reason", reason)
    }
  }

  var lines: [String] {
    if let reason { return ["bundle: unreadable: \(reason)"] }
    let languages = localizations.isEmpty ? "none" : localizations.joined(separator: ", ")
    return [
      "bundle: \(identifier ?? "without an identifier"); development region: \(developmentRegion ?? "none")",
      "localizations: \(languages); searched: \(searched.joined(separator: ", "))",
      scheme.isEmpty ? "resources: no URLs" : "resources: \(scheme):///NAME, in /\(folder)",
    ]
  }
}

extension BundleStatus {
  init(_ resolver: ResourceResolver) {
    scheme = resolver.scheme
    do throws(Errno) {
      let infoPlist = try resolver.lookup.infoPlist()
      identifier = infoPlist.identifier
      developmentRegion = infoPlist.developmentRegion
      localizations = try resolver.lookup.localizations().map(\.text)
      searched = try resolver.lookup.searchedLocalizations().map(\.text)
      folder = try resolver.lookup.layout().resourceFolder.map(\.text).joined(separator: "/")
    } catch {
      reason = "\(error)"
    }
  }
}
