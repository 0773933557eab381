import Glibc
import Posix
import WebServer

/// `bundlefs ui`: serves a page that shows which layer wins, until a signal ends it.
struct UICommand {
  private let arguments: UIArguments

  init(_ given: [[UInt8]]) throws(Failure) { arguments = try UIArguments(given) }

  /// Returns after SIGINT, SIGTERM or SIGHUP.
  func run() throws(Failure) {
    UIBrowser.noteUmask()
    _ = DescriptorLimit.raise()
    signal(SIGPIPE, SIG_IGN)
    switch arguments.subject {
    case .mounts(let mountPoints):
      // A mount may hang, and until here there is nothing to clean up after a signal.
      let mounts = try Self.mounts(mountPoints)
      try serve(mounts, until: Self.signals())
    case .ownMount(let main, let options):
      let name = UIOwnMount.name(of: main)
      let signals = try Self.signals()
      let own = try UIOwnMount(main, named: name, options, until: signals.rawValue)
      defer { own.end() }
      try serve(Self.mounts([own.path]), until: signals)
    }
  }

  private static func signals() throws(Failure) -> SignalDescriptor {
    let ending = SignalSet([SIGINT, SIGTERM, SIGHUP])
    ending.block()
    return try Failure.naming("signals") { () throws(Errno) in try SignalDescriptor(ending) }
  }

  private static func mounts(_ given: [[UInt8]]) throws(Failure) -> [UIMount] {
    var mounts: [UIMount] = []
    for given in given {
      let mountPoint = try MountPoint(mounted: given)
      if mounts.contains(where: { $0.mountPoint.path == mountPoint.path }) { continue }
      mounts.append(try UIMount(mountPoint, id: mounts.count))
    }
    return mounts
  }

  private func serve(_ mounts: [UIMount], until signals: borrowing SignalDescriptor) throws(Failure) {
    let server = try start(mounts)
    Terminal.print(server.address)
    let file = arguments.opensBrowser ? UIBrowser.open(server.address) : nil
    defer { file?.remove() }
    var polled = pollfd(fd: signals.rawValue, events: Int16(POLLIN), revents: 0)
    while poll(&polled, 1, -1) <= 0 || signals.next() == nil {}
    Self.end(server, mounts)
  }

  private func start(_ mounts: [UIMount]) throws(Failure) -> WebServer {
    do throws(WebServer.Failure) { return try WebServer(port: arguments.port, UIHandler(mounts)) } catch {
      switch error {
      case .missingLibrary:
        throw .failed("ui: libmicrohttpd is missing; install the package 'libmicrohttpd12'")
      case .failed(let error): throw .failed("ui: cannot listen on 127.0.0.1:\(arguments.port): \(error)")
      }
    }
  }

  /// Ends the connections, and removes what was kept to be undone.
  private static func end(_ server: WebServer, _ mounts: [UIMount]) {
    let done = EventFlag()
    // A thread can wait for a daemon that does not answer.
    try? Posix.Thread.startDetached(name: "stop") {
      for mount in mounts { mount.feed.end() }
      server.stop()
      for mount in mounts { mount.edits.end() }
      done.set()
    }
    done.wait(milliseconds: 10_000)
  }
}
