import Layers
import Posix

/// The folders of a bundle that are searched for a resource, in order.
///
/// As in Foundation, a sub-folder is below the localization: `DIR/NAME`, `fr.lproj/DIR/NAME`; never
/// `DIR/fr.lproj/NAME`.
struct ResourceFolders: Sendable {
  struct Folder: Sendable {
    let path: MergedPath
    /// The name of the localization's folder without `.lproj`; nil for the unlocalized folder.
    let localization: [UInt8]?
  }

  private let resources: MergedPath
  /// The path below the resource folder or a localization's folder.
  private let subfolder: [[UInt8]]

  /// nil if the merged view has no resource folder.
  init?(
    of stack: LayerStack, layout: BundleLayout, subfolder: [[UInt8]], for access: ResourceAccess
  ) throws(Errno) {
    guard let resources = try MergedPath(rootOf: stack, for: access).directory(at: layout.resourceFolder)
    else { return nil }
    self.resources = resources
    self.subfolder = subfolder
  }

  func unlocalized() throws(Errno) -> Folder? {
    try resources.directory(at: subfolder).map { Folder(path: $0, localization: nil) }
  }

  /// The folders of a localization. A bundle may have one for each spelling.
  func localized(_ localization: [UInt8]) throws(Errno) -> [Folder] {
    var folders: [Folder] = []
    for name in Language.folderNames(of: localization) where Self.isEntryName(name) {
      guard let path = try resources.directory(at: [name] + subfolder) else { continue }
      folders.append(Folder(path: path, localization: Language.localization(ofFolder: name)))
    }
    return folders
  }

  func all(localizations: [[UInt8]]) throws(Errno) -> [Folder] {
    var folders: [Folder] = []
    if let folder = try unlocalized() { folders.append(folder) }
    for localization in localizations { folders += try localized(localization) }
    return folders
  }

  static func isEntryName(_ name: [UInt8]) -> Bool {
    (1...255).contains(name.count) && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
      && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
  }
}
