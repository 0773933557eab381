import BundleResources
import Foundation
import FoundationNetworking

extension Greeter {
  /// Greets by the URLs that any program writes to a mount's control file, and shows each new logo, until the bundle is
  /// unmounted.
  /// - Parameters:
  ///   - mountPoint: the directory on which the bundle is mounted.
  ///   - urls: what this program writes itself.
  ///   - logo: the logo that was shown last.
  /// - Throws: `MountError`, also if the mount refuses the route or a URL.
  func serve(mountPoint: URL, beginningWith urls: [URL], _ logo: Logo) async throws {
    let routes = MountRoutes(mountPoint: mountPoint)
    try register(in: routes)
    // What is posted and what is changed from here on is not missed.
    let notifications = try RouteListener.notifications(mountPoint: mountPoint, named: [Greeting.route])
    let changes = try bundle.changes()
    printLine(phrases("waiting"))
    for url in urls { try routes.post(url) }
    async let logos: Void = showLogos(after: logo, changes)
    for try await notification in notifications {
      do { try greet(notification) } catch { printError(error) }
    }
    try await logos
  }

  /// Registers the route unless the mount has it: only the mount's owner may.
  private func register(in routes: MountRoutes) throws {
    let sample = URL(string: "greeter://greet/Ada/1")
    if let sample, (try? routes.notification(for: sample))?.name == Greeting.route { return }
    try routes.register(Greeting.route, pattern: Greeting.pattern)
  }

  private func showLogos(after logo: Logo, _ changes: BundleChanges) async throws {
    var (shown, changes) = (logo, changes.makeAsyncIterator())
    repeat {
      do {
        let logo = try await Logo.load()
        if logo != shown { show(logo) }
        shown = logo
      } catch let error as URLError where error.code == .resourceUnavailable {
        // The bundle was unmounted meanwhile, which ends the changes, too.
      } catch { printError(error) }
    } while try await changes.next() != nil
  }
}
