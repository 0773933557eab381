import Fuse
import Glibc
import Layers
import Posix

/// The control file in the mount's root: commands are written to it, a line each (design, section 5).
final class ControlFile: Sendable {
  /// A number that no node of the table has.
  static let node = NodeID(rawValue: 1 << 63 | 2)
  /// Below the numbers that files get.
  static let inodeNumber: UInt64 = 2
  static let longestLine = 64 * 1024

  let name = Array(".routes".utf8)
  private let modified = Locked(Moment.now)

  /// Whether a name of the root is this file's.
  func isNamed(_ other: CName) -> Bool {
    name.withUnsafeBytes {
      strlen(other) == $0.count && memcmp(other, $0.baseAddress.unsafelyUnwrapped, $0.count) == 0
    }
  }

  /// Its attributes, which the kernel may not keep.
  var attributes: NodeAttributes {
    NodeAttributes(
      Attributes(
        regularFile: 0o600, owner: getuid(), group: getgid(), size: 0, modified: modified.withLock { $0 }),
      inodeNumber: Self.inodeNumber, timeout: 0)
  }

  /// Moves mtime.
  func touch() { modified.withLock { $0 = max(Moment.now, $0) } }
}

/// A line of the control file.
enum ControlCommand: Equatable {
  /// Nothing to do: a blank line, a comment, a result that is fed back.
  case nothing
  /// `bundlefs:///sync`
  case sync
  /// `bundlefs:///invalidate[/PATH]`; the path's names from the root.
  case invalidate([[UInt8]])

  private static let builtIn = Array("bundlefs:///".utf8)

  /// Reads a line, without its newline.
  /// - Throws: E2BIG for one over 64 KiB; EINVAL for what is no command; ENOENT for a URL that nobody answers.
  init(_ line: ArraySlice<UInt8>) throws(Errno) {
    if line.count > ControlFile.longestLine { throw Errno(rawValue: E2BIG) }
    var line = line
    while let last = line.last, last == 0x0D || last == 0x20 || last == 0x09 { line.removeLast() }
    while let first = line.first, first == 0x20 || first == 0x09 { line.removeFirst() }
    guard let first = line.first, first != UInt8(ascii: "#"), first != UInt8(ascii: "{") else {
      self = .nothing
      return
    }
    guard line.starts(with: Self.builtIn) else {
      throw line.contains(UInt8(ascii: ":")) && !line.contains(0x20) ? .noEntry : .invalidArgument
    }
    let segments = line.dropFirst(Self.builtIn.count).split(separator: UInt8(ascii: "/"))
    switch segments.first.map({ String(decoding: $0, as: UTF8.self) }) {
    case "sync" where segments.count == 1: self = .sync
    case "invalidate": self = .invalidate(try Self.decode(segments.dropFirst()))
    default: throw .noEntry
    }
  }

  /// Percent-decodes a path's segments.
  private static func decode(_ segments: ArraySlice<ArraySlice<UInt8>>) throws(Errno) -> [[UInt8]] {
    var names: [[UInt8]] = []
    for segment in segments {
      var name: [UInt8] = []
      var rest = segment
      while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "%") else {
          name.append(byte)
          continue
        }
        guard rest.count >= 2,
          let decoded = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
          decoded != 0, decoded != UInt8(ascii: "/")
        else { throw .invalidArgument }
        name.append(decoded)
        rest = rest.dropFirst(2)
      }
      names.append(name)
    }
    return names
  }
}

extension Volume {
  /// The control file, as a lookup finds it.
  var controlEntry: EntryAnswer {
    EntryAnswer(
      node: ControlFile.node, attributes: control.attributes, timeout: options.cache.timeout(isCovered: true))
  }

  /// Carries out the lines of a write. The answer is how many bytes were done: all, or those before the first
  /// line that failed; or that line's error if it is the first.
  func writeControl(_ bytes: UnsafeRawBufferPointer, _ reply: consuming Reply<Answers.Count>) {
    let bytes = Array(bytes)
    var done = 0
    var failure: Errno?
    while done < bytes.count {
      let end = bytes[done...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      do throws(Errno) { carryOut(try ControlCommand(bytes[done..<end])) } catch {
        failure = error
        break
      }
      done = min(end + 1, bytes.count)
    }
    control.touch()
    if let failure, done == 0 {
      reply.fail(failure)
      return
    }
    // Later, by the invalidator: a request's thread must not wait for what may wait for requests.
    let (owed, count) = (OwedReply(reply), done)
    let pay: @Sendable () -> Void = { if let reply = owed.take() { reply.pay(count: count) } }
    if let coherence { coherence.barrier(pay) } else { queue.addBarrier(pay) }
  }

  private func carryOut(_ command: ControlCommand) {
    switch command {
    case .nothing, .sync: break
    case .invalidate(let path): queue.add(invalidations(of: path))
    }
  }

  /// What drops all that is cached of a path and of what is below.
  private func invalidations(of path: [[UInt8]]) -> [Invalidation] {
    table.withLock { table in
      var slot = NodeTable.root
      for (depth, name) in path.enumerated() {
        let child = table.directory(name, in: slot)
        if child == 0 {
          guard depth == path.count - 1 else { return [] }
          let directory = table.number(of: slot)
          return [Invalidation(subject: .name(directory, name, layer: 0), aspects: .entry)]
            + table.nodes(named: name, in: slot)
            .map { Invalidation(subject: .file(table.number(of: $0)), aspects: .content) }
        }
        slot = child
      }
      return [Invalidation(subject: .subtree(table.number(of: slot)))]
    }
  }
}
