import Layers
import Posix

/// The folders of a bundle in which a resource is looked for, in order.
///
/// A resource in a sub-folder lies in that folder of the unlocalized resources and of each localization:
/// `DIR/NAME`, `fr.lproj/DIR/NAME`, as Foundation has it; never in `DIR/fr.lproj/NAME`.
struct ResourceFolders: Sendable {
  /// One of the folders.
  struct Folder: Sendable {
    let place: MergedPath
    /// The localization that it belongs to, as its folder is called without `.lproj`; nil: unlocalized.
    let localization: [UInt8]?
  }

  /// The bundle's resource folder in the merged view.
  private let resources: MergedPath
  /// The path below the resource folder or a localization.
  private let subfolder: [[UInt8]]

  /// - Returns: nil where the merged view has no resource folder.
  init?(
    of stack: LayerStack, layout: BundleLayout, subfolder: [[UInt8]], for access: ResourceAccess
  ) throws(Errno) {
    guard let place = try MergedPath(rootOf: stack, for: access).directory(at: layout.resourceFolder) else {
      return nil
    }
    resources = place
    self.subfolder = subfolder
  }

  /// The folder of what is not localized.
  func unlocalized() throws(Errno) -> Folder? {
    try resources.directory(at: subfolder).map { Folder(place: $0, localization: nil) }
  }

  /// The folders of a localization in its spellings; there is more than one only where a bundle has two.
  func localized(_ localization: [UInt8]) throws(Errno) -> [Folder] {
    var folders: [Folder] = []
    for name in Language.folderNames(of: localization) where Self.isEntryName(name) {
      guard let place = try resources.directory(at: [name] + subfolder) else { continue }
      folders.append(Folder(place: place, localization: Language.localization(ofFolder: name)))
    }
    return folders
  }

  /// All that are searched: the unlocalized one, then one after the other those of the localizations.
  func all(localizations: [[UInt8]]) throws(Errno) -> [Folder] {
    var folders: [Folder] = []
    if let folder = try unlocalized() { folders.append(folder) }
    for localization in localizations { folders += try localized(localization) }
    return folders
  }

  /// Whether a directory could have an entry of that name; `.` and `..` are none.
  static func isEntryName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
  }
}
