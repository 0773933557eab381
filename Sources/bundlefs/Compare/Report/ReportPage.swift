import Bundles
import Glibc
import Layers
import Posix
import Routing

/// The comparison of a mount as one page of HTML, which needs no other file, no script and no network.
struct ReportPage {
  private let mountPoint: MountPoint
  private let start: [[UInt8]]
  private let mounted: MountedLayers
  private let versions: ReportVersions
  private let labels: [String]

  /// - Parameter start: the path below which the mount is compared.
  init(_ mountPoint: MountPoint, from start: [[UInt8]]) throws(Failure) {
    (self.mountPoint, self.start) = (mountPoint, start)
    let mount = try UIMount(mountPoint, id: 0)
    let status = try mount.status()
    mounted = status.mounted
    labels = LayerLabels(mounted.layers.map(\.shown)).all
    versions = ReportVersions(UILayers(mount: mount, status: status), labels)
  }

  /// Writes the page, whole or not at all.
  /// - Returns: the directories that could not be compared.
  func write(to path: [UInt8]) throws(Failure) -> [ComparisonWalker.Fault] {
    var walker = try walker()
    try Failure.naming(path.shown) { () throws(Errno) in
      let file = try WholeFile(path)
      try file.append(head)
      var tree = ReportTree(start: start)
      while let entry = walker.next() {
        guard entry.name.isCounted else { continue }
        let text = tree.steps(to: entry.path) + ReportTree.item(entry, labels, versions)
        try file.append(text)
        if entry.name.kind == .directory { tree.enter(entry.path) }
      }
      try file.append(tree.end() + end(walker.tally, walker.faults))
      try file.place()
    }
    return walker.faults
  }

  private func walker() throws(Failure) -> ComparisonWalker {
    do throws(Errno) {
      var walker = try ComparisonWalker(
        of: mountPoint, from: start, includesUnchanged: false, showsProgress: true)
      try walker.begin()
      return walker
    } catch {
      throw .failed("\(shownStart): \(ComparisonWalker.Fault(path: start, error: error).reason)")
    }
  }

  private var shownStart: String { String(escaping: ([mountPoint.path] + start).joinedPath) }

  private var head: String {
    """
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="\(ReportStyle.policy)">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="referrer" content="no-referrer">
    <title>\(HTMLText.escaped(shownStart)) – bundlefs diff</title>
    <style>\(ReportStyle.sheet)</style>
    </head>
    <body>
    <header>
    <p class="maker">bundlefs diff</p>
    <h1><bdi>\(HTMLText.escaped(shownStart))</bdi></h1>
    <p class="hint">Made on \(Self.time(Glibc.time(nil))). The topmost layer that has a name wins.</p>
    </header>
    <main>
    <section aria-labelledby="changes">
    <h2 id="changes">What the layers change</h2>
    <ul class="tree">

    """
  }

  private func end(_ tally: ComparisonTally, _ faults: [ComparisonWalker.Fault]) -> String {
    let isEmpty =
      tally.total.overrides + tally.total.adds + tally.total.hides + tally.merged + tally.excluded == 0
    return """
      </ul>
      \(isEmpty && tally.collisions == 0 ? "<p class=\"hint\">The layers change nothing here.</p>\n" : "")</section>
      <section aria-labelledby="layers">
      <h2 id="layers">Layers</h2>
      <p class="hint">\(HTMLText.escaped(tally.summary))</p>
      \(table(tally))
      </section>
      \(faults.isEmpty ? "" : Self.section(faults))</main>
      </body>
      </html>

      """
  }

  private func table(_ tally: ComparisonTally) -> String {
    let rows = mounted.layers.indices.map { index in
      let (layer, count) = (mounted.layers[index], tally.layers[index])
      let isMain = index == mounted.layers.count - 1
      let numbers = [count.overrides, count.adds, count.hides].map { "<td>\(isMain ? "" : "\($0)")</td>" }
        .joined()
      let problems = layer.problems.map { "<p class=\"problem\">\(HTMLText.escaped($0))</p>" }.joined()
      return """
        <tr><th scope="row">\(versions.badge(index)) <bdi>\(HTMLText.escaped(labels[index]))</bdi></th>\
        <td class="path"><bdi>\(HTMLText.escaped(layer.shown))</bdi>\(problems)</td>\(numbers)</tr>
        """
    }
    return """
      <div class="scroll" tabindex="0" role="group" aria-label="Layers, topmost first"><table>
      <thead><tr><th scope="col">Layer</th><th scope="col">Path</th><th scope="col">Overrides</th>\
      <th scope="col">Adds</th><th scope="col">Hides</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table></div>
      """
  }

  private static func section(_ faults: [ComparisonWalker.Fault]) -> String {
    let items = faults.map {
      "<li><bdi>\(HTMLText.escaped($0.path.joinedPath))</bdi>: \(HTMLText.escaped($0.reason))</li>\n"
    }
    return """
      <section aria-labelledby="faults">
      <h2 id="faults">Not compared</h2>
      <ul class="faults">
      \(items.joined())</ul>
      </section>

      """
  }

  /// A time in UTC.
  static func time(_ seconds: time_t) -> String {
    let text = Timestamp(seconds: Int64(seconds), nanoseconds: 0).description
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
  }
}
