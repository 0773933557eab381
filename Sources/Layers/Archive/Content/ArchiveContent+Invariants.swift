import Posix

extension ArchiveContent.State: InvariantChecking {
  func brokenInvariant() -> String? {
    if (decoder == nil) != (decodedHeader == nil) { return "a decoder without its header, or the reverse" }
    if (storage != nil) != (decoder != nil || isComplete) {
      return "storage that is neither complete nor being filled"
    }
    if isComplete, decoder != nil { return "a decoder of what is complete" }
    if storage == nil, available.count > 0 { return "\(available.count) decoded bytes without storage" }
    if available.end > node.size { return "decoded to \(available.end) of \(node.size) bytes" }
    if reloadDeadline != nil, !isDecoding || storage != nil { return "waits for a reload without a claim" }
    if max(verifiedEnd, unverifiedEnd) > node.size { return "read beyond the end" }
    if waiters.contains(where: { $0.range.isEmpty || $0.range.upperBound > node.size }) {
      return "a reader waits for bytes beyond the end"
    }
    return nil
  }
}
