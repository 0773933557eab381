import Bundles
import Posix
import Routing

/// What a mount tells of the bundle that its layers make up.
struct BundleStatus {
  /// CFBundleIdentifier.
  var identifier: String?
  /// CFBundleDevelopmentRegion.
  var developmentRegion: String?
  /// Those that any layer has, sorted.
  var localizations: [String] = []
  /// Those that are searched, in order.
  var searched: [String] = []
  /// The path of the resource folder; empty for the root.
  var folder = ""
  /// The scheme of resources' URLs.
  var scheme: String
  /// Why the rest is not known.
  var reason: String?

  /// Writes the JSON object.
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

  /// Lines for a person.
  var lines: [String] {
    if let reason { return ["bundle: cannot be read: \(reason)"] }
    let languages = localizations.isEmpty ? "none" : localizations.joined(separator: ", ")
    return [
      "bundle: \(identifier ?? "without an identifier"); development region: \(developmentRegion ?? "none")",
      "localizations: \(languages); searched: \(searched.joined(separator: ", "))",
      "resources: \(scheme):///NAME, in /\(folder)",
    ].map(Self.printable)
  }

  /// The text without what would steer a terminal: a bundle can be anybody's.
  private static func printable(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
  }
}

extension Volume {
  /// The bundle as it is now.
  var bundleStatus: BundleStatus {
    var status = BundleStatus(scheme: resources.scheme)
    do throws(Errno) {
      let infoPlist = try resources.lookup.infoPlist()
      status.identifier = infoPlist.identifier
      status.developmentRegion = infoPlist.developmentRegion
      status.localizations = try resources.lookup.localizations().map(\.text)
      status.searched = try resources.lookup.searchedLocalizations().map(\.text)
      status.folder = try resources.lookup.layout().resourceFolder.map(\.text).joined(separator: "/")
    } catch {
      status.reason = "\(error)"
    }
    return status
  }

  /// As `StatusProtocol.Form.resources` tells it; nothing if it cannot be read.
  var resourceSearchPath: [UInt8] {
    do throws(Errno) {
      let folder = try resources.lookup.layout().resourceFolder
      let path = folder.joinedPath
      return try ([path] + resources.lookup.searchedLocalizations()).flatMap { $0 + [0] }
    } catch {
      return []
    }
  }
}
