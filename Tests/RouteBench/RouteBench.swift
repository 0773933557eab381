import Glibc
import Routing

/// How many URLs a second are matched, from their bytes to what they become, with tables of 1, 100 and 10,000
/// routes. The figures are medians of several rounds, in which the tables take turns; seconds are the
/// processor's, so that what else the machine does counts little.
///
///     routebench [ROUNDS]
@main enum RouteBench {
  private static let urlsInRound = 200_000

  static func main() throws(RoutingError) {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 15
    try measure("Routes that begin with a literal each", .application, [1, 100, 10_000], rounds)
    // The smallest table has each shape once, since their URLs differ in cost.
    try measure("Six shapes in turn", .mixed, [6, 100, 10_000], rounds)
  }

  private static func measure(
    _ title: String, _ workload: Workload, _ sizes: [Int], _ rounds: Int
  ) throws(RoutingError) {
    let subjects = try sizes.map { size throws(RoutingError) in try Subject(workload, size) }
    var figures = Array(repeating: [Double](), count: subjects.count)
    for _ in 0..<max(1, rounds) {
      for (index, subject) in subjects.enumerated() { figures[index].append(try subject.matchesPerSecond()) }
    }
    print(title)
    let medians = figures.map { $0.sorted()[$0.count / 2] }
    for (size, median) in zip(sizes, medians) {
      let percent = Int(medians[0] / median * 100)
      print("  \(size) routes: \(Int(median)) matches a second, \(percent)% of the smallest table's time")
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
      let start = processorSeconds()
      for _ in 0..<urlsInRound / urls.count {
        for url in urls where try table.match(RouteURL(url)) != nil { found += 1 }
      }
      let elapsed = processorSeconds() - start
      precondition(found == urlsInRound, "every URL has a route")
      return Double(found) / elapsed
    }
  }

  /// The time that this process has had of the processor.
  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
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
