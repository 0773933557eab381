import BundleResources
import Foundation
import FoundationNetworking
import Glibc

/// `resourceexample MOUNTPOINT URL NAME`: loads a resource from a mounted bundle and describes it; then waits for a
/// notification of that name and prints its values.
@main struct ResourceExample {
  static func main() async throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 4, let url = URL(string: arguments[2]) else {
      print("usage: resourceexample MOUNTPOINT URL NAME")
      exit(2)
    }
    let mountPoint = URL(filePath: arguments[1], directoryHint: .isDirectory)
    try ResourceURLProtocol.register(mountPoint: mountPoint)
    try await load(url)
    try await wait(forNotification: Notification.Name(arguments[3]), from: mountPoint)
  }

  /// Loads a resource like any other URL.
  private static func load(_ url: URL) async throws {
    let session = URLSession(configuration: ResourceURLProtocol.configuration)
    let (data, response) = try await session.data(from: url)
    printLine("\(response.mimeType ?? "-") \(response.textEncodingName ?? "-") \(data.count) bytes")
    if response.textEncodingName == "utf-8" { printLine(String(decoding: data, as: UTF8.self)) }
  }

  /// Waits until a URL written to the mount's control file becomes such a notification.
  private static func wait(forNotification name: Notification.Name, from mountPoint: URL) async throws {
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    let observer = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { posted in
      let values = (posted.userInfo ?? [:]).map { "\($0.key)=\($0.value) (\(type(of: $0.value)))" }
      continuation.yield("\(posted.name.rawValue): \(values.sorted().joined(separator: ", "))")
    }
    defer { NotificationCenter.default.removeObserver(observer) }
    let listener = RouteListener(mountPoint: mountPoint)
    try listener.start()
    printLine("listening")
    for await line in lines {
      printLine(line)
      break
    }
    listener.stop()
  }

  /// Prints a line without buffering, even to a pipe or file.
  private static func printLine(_ line: String) {
    print(line)
    fflush(nil)
  }
}
