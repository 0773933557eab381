import Layers
import Posix
import Routing

/// Prints what `bundlefs apply` does, or would do.
struct ApplyOutput {
  private let plan: ApplyPlan
  private let paths: [String]
  private let target: Int
  private let labels: [String]

  init(_ plan: ApplyPlan, _ layers: ApplyLayers) {
    (self.plan, paths, target) = (plan, layers.paths, layers.index)
    labels = LayerLabels(layers.paths).all
  }

  /// Whether something stays in the top layer.
  var keepsAny: Bool { plan.steps.contains { $0.obstacle != nil } }

  func printPlan(isJSON: Bool, isDryRun: Bool, faults: [ApplyRun.Fault]) {
    if isJSON { return Terminal.print(json(isDryRun: isDryRun, faults)) }
    let listed = plan.steps.indices.filter { isListed($0) }
    let title = "\(paths[0].escapingControls) to \(paths[target].escapingControls)"
    let lines = listed.flatMap { self.lines(of: $0) }
    Terminal.print(([title + (lines.isEmpty ? ": nothing to apply" : "")] + lines).joined(separator: "\n"))
    if !lines.isEmpty { Terminal.print(summary) }
  }

  private func isListed(_ index: Int) -> Bool {
    plan.steps[index].action != .merge || plan.steps[index].obstacle != nil
  }

  private func lines(of index: Int) -> [String] {
    let step = plan.steps[index]
    let path =
      shown(plan.path(of: index)).escapingControls + (step.kind == .directory && index > 0 ? "/" : "")
    var lines: [String] = []
    if step.action != .keep, step.action != .merge {
      let count =
        step.count == 1 ? "  (with 1 entry)" : step.count > 1 ? "  (with \(step.count) entries)" : ""
      lines.append("  \(Self.verb(step.action).padded(to: 10)) \(path)\(count)")
    }
    if let obstacle = step.obstacle {
      lines.append("  \("keeps".padded(to: 10)) \(path)  (\(reason(obstacle).escapingControls))")
    }
    return lines
  }

  private var summary: String {
    let words: [(ApplyPlan.Action, String)] = [
      (.replace, "replaced"), (.add, "added"), (.remove, "removed"), (.change, "changed"), (.drop, "dropped"),
    ]
    let counts = words.map { action, word in "\(count(action)) \(word)" }
    return (counts + ["\(kept) kept"]).joined(separator: ", ")
  }

  private func count(_ action: ApplyPlan.Action) -> Int { plan.steps.count { $0.action == action } }

  private var kept: Int { plan.steps.count { $0.obstacle != nil } }

  // MARK: - JSON

  private func json(isDryRun: Bool, _ faults: [ApplyRun.Fault]) -> String {
    let entries = plan.steps.indices.filter { isListed($0) }
    return JSONWriter.object { json in
      json.member("source", paths[0])
      json.member("target", paths[target])
      json.member("dryRun", isDryRun)
      json.member("replaced", count(.replace))
      json.member("added", count(.add))
      json.member("removed", count(.remove))
      json.member("changed", count(.change))
      json.member("dropped", count(.drop))
      json.member("kept", kept)
      json.name("entries")
      json.array(entries, onLines: true) { write($1, to: &$0) }
      json.name("faults")
      json.array(faults, onLines: true) { json, fault in
        json.object { json in
          json.member("path", String(escaping: fault.path.joinedPath))
          json.member("error", Self.reason(fault.error))
        }
      }
    }
  }

  private func write(_ index: Int, to json: inout JSONWriter) {
    let (step, path) = (plan.steps[index], plan.path(of: index).joinedPath)
    json.object { json in
      json.member("path", String(escaping: path))
      if String(validating: path, as: UTF8.self) == nil {
        json.member("encodedPath", PercentCoding.encoded(path: path[...]))
      }
      json.member("kind", ComparisonJSON.word(for: step.kind))
      json.member("action", step.action == .merge ? "keep" : Self.word(step.action))
      json.member("count", step.count)
      json.member("reason", step.obstacle.map(reason))
    }
  }

  // MARK: - Words

  private static func word(_ action: ApplyPlan.Action) -> String {
    switch action {
    case .merge: "merge"
    case .change: "change"
    case .add: "add"
    case .replace: "replace"
    case .remove: "remove"
    case .drop: "drop"
    case .keep: "keep"
    }
  }

  private static func verb(_ action: ApplyPlan.Action) -> String { word(action) + "s" }

  private func reason(_ obstacle: ApplyPlan.Obstacle) -> String {
    switch obstacle {
    case .covered(let layer): "\(labels[layer]) lies between and would hide it"
    case .uncovered(let layer): "\(labels[layer]) lies between, and what it has would show"
    case .attributes(let layer): "the directory itself: \(labels[layer]) lies between with other attributes"
    case .opaqueAbove: "a directory above is opaque; apply that as a whole"
    case .partialTable:
      "a table merged by 'strings=merge': strings that only \(labels[target]) has would be lost; merge it by hand"
    case .catalog:
      "merged by 'strings=merge' with a string catalog, whose place among the tables would change; merge it by hand"
    case .spellings: "the folder has the name in several spellings"
    case .reserved: "the name belongs to the mount itself"
    case .otherFileSystem: "another file system is mounted there"
    case .unreadable(let error): "\(error)"
    }
  }

  /// Why something has failed.
  static func reason(_ error: Errno) -> String {
    switch error {
    case .staleFileHandle: "a program has changed it meanwhile; apply it again"
    case .resourceBusy: "another file system is mounted there"
    default: "\(error)"
    }
  }
}

extension String {
  fileprivate func padded(to width: Int) -> String {
    self + String(repeating: " ", count: max(0, width - count))
  }
}
