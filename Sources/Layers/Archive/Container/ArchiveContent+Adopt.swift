#if Archives
import Posix

extension ArchiveContent {
  /// Takes over content that was decoded on the way to another entry, unless a thread decodes it or there is some.
  func adopt(_ bytes: [UInt8], from source: ArchiveSource) {
    let checksum = bytes.withUnsafeBytes { $0.crc32() }
    guard bytes.count == Int(clamping: size), checksum == state.withLock({ $0.node.crc }) else { return }
    guard let storage = storage(of: bytes), let cost = install(storage, from: source) else { return }
    cache.account(self, bytes: cost, isFile: storage.isFile)
  }

  /// - Returns: nil if there is no memory.
  private func storage(of bytes: [UInt8]) -> ContentStorage? {
    do throws(Errno) {
      let storage = try ContentStorage(
        size: size, residentLimit: residentLimit, mayUseFile: false, directories: [])
      try storage.write(bytes, at: 0)
      return storage
    } catch { return nil }
  }

  /// - Returns: the memory in use; nil if the content has another storage.
  private func install(_ storage: ContentStorage, from source: ArchiveSource) -> Int? {
    state.withLock { state in
      guard state.storage == nil, !state.isDecoding, state.failure == nil, state.header.source === source
      else { return nil }
      state.storage = storage
      complete(&state)
      return Self.cost(of: state, written: size)
    }
  }
}

extension ContentStorage {
  fileprivate func write(_ bytes: [UInt8], at offset: UInt64) throws(Errno) {
    let result = bytes.withUnsafeBytes { bytes -> Result<Void, Errno> in
      do throws(Errno) { return .success(try write(bytes, at: offset)) } catch { return .failure(error) }
    }
    try result.get()
  }
}

extension ArchiveLayer {
  /// Lets a container put entries into the cache.
  func setLimits(of index: ArchiveIndex) {
    guard let container = index.container else { return }
    container.walk.setLimits(
      ContainerWalk.Limits(budget: cache.pool.budget) { [weak self, weak container] node, bytes in
        guard let self, let container else { return }
        let index = current
        guard index.container === container else { return }
        content(of: index.tree[node], in: index)?.adopt(bytes, from: index.source)
      })
  }
}
#endif
