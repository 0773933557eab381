import Glibc
import Layers
import Posix

/// Opens the layers of a plan.
struct LayerOpener {
  let plan: MountPlan
  let covered: CoveredMountPoint?
  /// The roots that a predecessor has opened, by layer.
  private let roots: [LayerRootRecord]
  private let contents: ContentCache

  init(
    _ plan: MountPlan, covered: CoveredMountPoint?, roots: [LayerRootRecord] = [],
    archives: ArchiveRegistry? = nil
  ) throws(Failure) {
    self.plan = plan
    self.roots = roots
    self.covered = covered
    contents = ContentCache(
      budget: plan.arguments.options.cacheSize ?? MemoryLimit.share(atMost: ContentCache.defaultBudget),
      passwords: try plan.arguments.options.archivePasswordFile.map(PasswordFile.init)?.passwords() ?? [],
      registry: archives)
  }

  /// - Returns: the layers; the one of them that takes changes, if any; and the cache of their archives' contents, if
  ///   there are any.
  func open() throws(Failure) -> (LayerStack, UpperLayer?, ContentCache?) {
    var layers: [Layer] = []
    for layer in plan.layers {
      let role = layers.count < plan.layers.count - 1 ? "substitution" : "MAIN"
      layers.append(try open(layer, as: "\(role) \(layer.given.shown)", index: layers.count))
    }
    let hasArchive = layers.contains { $0.archive != nil }
    return (LayerStack(layers: layers), try upper(layers), hasArchive ? contents : nil)
  }

  private func open(
    _ layer: MountPlan.LayerPath, as role: String, index: Int
  ) throws(Failure) -> Layer {
    if let archive = layer.archive {
      do throws(ArchiveError) {
        return .archive(try archive.open(index: index, plan.arguments.options.archiveEncoding, contents))
      } catch {
        throw .failed("\(role): \(error.message)")
      }
    }
    do throws(Errno) { return .directory(try directory(layer.path, index: index)) } catch {
      throw .failed("\(role): \(Self.reason(error, layer.path))")
    }
  }

  private func directory(_ path: [UInt8], index: Int) throws(Errno) -> DirectoryLayer {
    let isWritable = plan.isWritable && index == 0
    if index < roots.count, let root = roots[index].root {
      let file = try Descriptor.duplicate(of: roots[index].file)
      return DirectoryLayer(
        path: path, index: index, covered: covered, root: root, file: file, isWritable: isWritable)
    }
    return try DirectoryLayer(
      path: try realPath(path), index: index, covered: covered, isWritable: isWritable)
  }

  private func upper(_ layers: [Layer]) throws(Failure) -> UpperLayer? {
    guard plan.isWritable, let folder = layers.first?.folder else { return nil }
    do throws(Errno) { return try UpperLayer(folder) } catch {
      throw .failed("writable: \(folder.path.shown) takes no changes: \(error); use 'writable=DIR'")
    }
  }

  private static func reason(_ error: Errno, _ path: [UInt8]) -> String {
    switch error {
    case .noSuchFileOrDirectory: "no such directory"
    case .notDirectory: "neither a directory nor a zip archive"
    case .socketNotConnected: "the mount there is dead; remove it with 'fusermount3 -u \(path.shown)'"
    default: "\(error)"
    }
  }
}
