import Glibc
import Posix

/// Several threads that concurrently read their slices of the files.
struct Readers {
  let count: Int
  let list: PathList

  /// The cost of opening, reading and closing one file with warm caches.
  func cost() throws(Failure) -> Cost {
    try Cost { () throws(Failure) in
      var threads: [pthread_t] = []
      for number in 0..<count { threads.append(try start(number)) }
      var failed = false
      for thread in threads {
        var result: UnsafeMutableRawPointer?
        pthread_join(thread, &result)
        if result != nil { failed = true }
      }
      if failed { throw Failure("a file could not be read") }
      return list.paths.count
    }
  }

  /// The files of one thread.
  private final class Slice {
    let paths: [CName]
    init(_ paths: [CName]) { self.paths = paths }

    func read() -> Bool {
      let buffer = FileBuffer()
      return paths.allSatisfy { buffer.read($0) }
    }
  }

  /// Starts a thread whose result is nil on success.
  private func start(_ number: Int) throws(Failure) -> pthread_t {
    let indices = stride(from: number, to: list.paths.count, by: count)
    let slice = Unmanaged.passRetained(Slice(indices.map { list.paths[$0] }))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { context in
        guard let context, Unmanaged<Slice>.fromOpaque(context).takeRetainedValue().read() else {
          return UnsafeMutableRawPointer(bitPattern: 1)
        }
        return nil
      }, slice.toOpaque())
    guard result == 0 else { throw Failure("pthread_create: \(Errno(rawValue: result))") }
    return thread
  }
}
