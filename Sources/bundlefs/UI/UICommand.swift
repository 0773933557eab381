import Glibc
import Posix
import WebServer

/// `bundlefs ui MOUNTPOINT… [--port N] [--no-open]`: serves a page that shows which layer wins, until a signal ends it.
struct UICommand {
  private let arguments: UIArguments
  private let mounts: [UIMount]

  init(_ given: [[UInt8]]) throws(Failure) {
    arguments = try UIArguments(given)
    var mounts: [UIMount] = []
    for given in arguments.mountPoints {
      let mountPoint = try MountPoint(mounted: given)
      if mounts.contains(where: { $0.mountPoint.path == mountPoint.path }) { continue }
      mounts.append(try UIMount(mountPoint, id: mounts.count))
    }
    self.mounts = mounts
  }

  /// Returns after SIGINT, SIGTERM or SIGHUP.
  func run() throws(Failure) {
    UIBrowser.noteUmask()
    _ = DescriptorLimit.raise()
    signal(SIGPIPE, SIG_IGN)
    let ending = SignalSet([SIGINT, SIGTERM, SIGHUP])
    ending.block()
    let signals = try Failure.naming("signals") { () throws(Errno) in try SignalDescriptor(ending) }
    let server = try start()
    Terminal.print(server.address)
    let file = arguments.opensBrowser ? UIBrowser.open(server.address) : nil
    defer { file?.remove() }
    var polled = pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0)
    while poll(&polled, 1, -1) <= 0 || signals.next() == nil {}
    end(server)
  }

  private func start() throws(Failure) -> WebServer {
    do throws(WebServer.Failure) { return try WebServer(port: arguments.port, UIHandler(mounts)) } catch {
      switch error {
      case .missingLibrary:
        throw .failed("ui: libmicrohttpd is missing; install the package 'libmicrohttpd12'")
      case .failed(let error): throw .failed("ui: cannot listen on 127.0.0.1:\(arguments.port): \(error)")
      }
    }
  }

  /// Ends the connections, and removes what was kept to be undone.
  private func end(_ server: WebServer) {
    let done = EventFlag()
    // A thread can wait for a daemon that does not answer.
    try? Posix.Thread.startDetached(name: "stop") { [mounts] in
      for mount in mounts { mount.feed.end() }
      server.stop()
      for mount in mounts { mount.edits.end() }
      done.set()
    }
    done.wait(milliseconds: 10_000)
  }
}
