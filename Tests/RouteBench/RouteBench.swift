import Routing

/// How many URLs a second are matched, from their bytes to what they become, with tables of 1, 100 and 10,000
/// routes. The figures are medians of several rounds, in which the tables take turns.
///
///     routebench [ROUNDS]
@main enum RouteBench {
  private static let sizes = [1, 100, 10_000]
  private static let urlsInRound = 200_000

  static func main() throws(RoutingError) {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 15
    for (title, workload) in [("routes of an application", Workload.application), ("all shapes", .mixed)] {
      let subjects = try sizes.map { size throws(RoutingError) in try Subject(workload, size) }
      var figures = Array(repeating: [Double](), count: subjects.count)
      for _ in 0..<max(1, rounds) {
        for (index, subject) in subjects.enumerated() {
          figures[index].append(try subject.matchesPerSecond())
        }
      }
      report(title, figures.map { $0.sorted()[$0.count / 2] })
    }
  }

  private static func report(_ title: String, _ medians: [Double]) {
    print(title)
    for (size, median) in zip(sizes, medians) {
      let percent = Int(medians[0] / median * 100)
      print("  \(size) routes: \(Int(median)) matches a second, \(percent)% of the time with one")
    }
  }

  /// A table, and URLs that its routes take.
  private struct Subject {
    private var table = RouteTable()
    private var urls: [[UInt8]] = []

    init(_ workload: Workload, _ size: Int) throws(RoutingError) {
      for index in 0..<size {
        try table.append(Route(name: "Notification\(index)", pattern: RoutePattern(workload.pattern(index))))
      }
      // As many different URLs whatever the size, spread over all routes.
      for number in 0..<1000 { urls.append(Array(workload.url(number * 7919 % size, number).utf8)) }
    }

    func matchesPerSecond() throws(RoutingError) -> Double {
      var found = 0
      let clock = ContinuousClock()
      let start = clock.now
      for round in 0..<urlsInRound / urls.count {
        for place in urls.indices {
          if let match = try table.match(RouteURL(urls[place])) {
            found += match.userInfo.count > round ? 1 : 1
          }
        }
      }
      let elapsed = clock.now - start
      precondition(found == urlsInRound, "every URL has a route")
      return Double(found) / (elapsed / .seconds(1))
    }
  }
}

/// Patterns, and URLs for them.
enum Workload {
  /// Each route has a domain of its own.
  case application
  /// Six shapes in turn: with schemes, parameters, tails, and with literals that come late.
  case mixed

  func pattern(_ index: Int) -> String {
    guard self == .mixed else {
      return "l:(domain\(index))Domain/s:Animal/f:AverageWeight/i:AverageLifeExpectancy"
    }
    return switch index % 6 {
    case 0: "l:(domain\(index))Domain/s:Animal/f:AverageWeight/i:AverageLifeExpectancy"
    case 1: "scheme\(index)://s:Name/i:Count"
    case 2: "s:Kind/l:(action\(index))Action/i:Count"
    case 3: "files://l:(folder\(index))Folder/*:Path"
    case 4: "search://s:Place?topic=l:(topic\(index))Topic&page=i?:Page"
    default: "i:Number/f:Weight/l:(unit\(index))Unit"
    }
  }

  func url(_ index: Int, _ number: Int) -> String {
    guard self == .mixed else { return "ccfurlresponder://domain\(index)/platypus/\(number).5/4" }
    return switch index % 6 {
    case 0: "ccfurlresponder://domain\(index)/spiny%20anteater/\(number).5/50"
    case 1: "scheme\(index)://thneed/\(number)"
    case 2: "ccfurlresponder://animal/action\(index)/\(number)"
    case 3: "files://folder\(index)/one/two/\(number)"
    case 4: "search://here?topic=topic\(index)&page=\(number)&sort=name"
    default: "ccfurlresponder://\(number)/2.5/unit\(index)"
    }
  }
}
