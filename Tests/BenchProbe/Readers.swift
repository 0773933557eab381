import Glibc
import Posix

/// Several threads that read files at the same time, each its share of them.
struct Readers {
  let count: Int
  let list: PathList

  /// The cost of opening, reading and closing one file, once all is warm.
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

  /// What one thread does.
  private final class Share {
    let paths: [CName]
    init(_ paths: [CName]) { self.paths = paths }

    func read() -> Bool {
      let buffer = FileBuffer()
      return paths.allSatisfy { buffer.read($0) }
    }
  }

  /// Starts a thread whose result is nil if all was well.
  private func start(_ number: Int) throws(Failure) -> pthread_t {
    let places = stride(from: number, to: list.paths.count, by: count)
    let share = Unmanaged.passRetained(Share(places.map { list.paths[$0] }))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { context in
        guard let context, Unmanaged<Share>.fromOpaque(context).takeRetainedValue().read() else {
          return UnsafeMutableRawPointer(bitPattern: 1)
        }
        return nil
      }, share.toOpaque())
    guard result == 0 else { throw Failure("no thread: \(Errno(rawValue: result))") }
    return thread
  }
}
