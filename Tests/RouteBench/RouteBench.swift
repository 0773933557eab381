import Glibc
import Routing

/// Measures parsing and matching of URLs per second with tables of 1, 100 and 10,000 routes. The results are medians of
/// interleaved rounds. Time is CPU time, to reduce the influence of other processes.
///
///     routebench [ROUNDS]
@main enum RouteBench {
  private static let urlsPerRound = 200_000

  static func main() throws(RoutingError) {
    let rounds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 15
    try measure("Routes that begin with distinct literals", .application, [1, 100, 10_000], rounds)
    // The smallest table has each shape once, because their URLs differ in cost.
    try measure("Six shapes in turn", .mixed, [6, 100, 10_000], rounds)
  }

  private static func measure(
    _ title: String, _ workload: Workload, _ sizes: [Int], _ rounds: Int
  ) throws(RoutingError) {
    let subjects = try sizes.map { size throws(RoutingError) in try Subject(workload, size) }
    var results = Array(repeating: [Double](), count: subjects.count)
    for _ in 0..<max(1, rounds) {
      for (index, subject) in subjects.enumerated() { results[index].append(try subject.matchesPerSecond()) }
    }
    print(title)
    let medians = results.map { $0.sorted()[$0.count / 2] }
    for (size, median) in zip(sizes, medians) {
      let percent = Int(medians[0] / median * 100)
      print("  \(size) routes: \(Int(median)) matches a second, \(percent)% of the smallest table's time")
    }
  }

  /// A table and matching URLs.
  private struct Subject {
    private var table = RouteTable()
    private var urls: [[UInt8]] = []

    init(_ workload: Workload, _ size: Int) throws(RoutingError) {
      for index in 0..<size {
        try table.append(Route(name: "Notification\(index)", pattern: RoutePattern(workload.pattern(index))))
      }
      // The same number of distinct URLs for each size, spread over all routes.
      for number in 0..<1000 { urls.append(Array(workload.url(number * 7919 % size, number).utf8)) }
    }

    func matchesPerSecond() throws(RoutingError) -> Double {
      var found = 0
      let start = cpuSeconds()
      for _ in 0..<urlsPerRound / urls.count {
        for url in urls where try table.match(RouteURL(url)) != nil { found += 1 }
      }
      let elapsed = cpuSeconds() - start
      precondition(found == urlsPerRound, "every URL has a route")
      return Double(found) / elapsed
    }
  }

  /// Calls `clock_gettime(2)` with `CLOCK_PROCESS_CPUTIME_ID`.
  private static func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Patterns and matching URLs.
enum Workload {
  /// Each route has its own domain.
  case application
  /// Six shapes in turn, with schemes, parameters, tails and late literals.
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
