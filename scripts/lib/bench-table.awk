# Tables of what scripts/bench found, for people.

function cost_table(part, heading,    p, i, name, title, value) {
  title["stat"] = "stat"
  title["open"] = "open+close"
  title["read"] = "open+read+close"
  title["list"] = "readdir"
  title["missing"] = "missing name"
  printf "\n%s\n\n%-16s", heading, ""
  for (i = 1; i <= items[part]; i++) printf "%18s", title[item[part, i]]
  printf "\n"
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    printf "%-16s", name
    for (i = 1; i <= items[part]; i++) {
      value = ratio(part, name, item[part, i])
      printf "%10.2f  %6s", cost(part, name, item[part, i]), value == "" ? "-" : sprintf("%.2f", value)
    }
    printf "\n"
  }
  printf "%-16s", "goal"
  for (i = 1; i <= items[part]; i++) printf "%10s  %6s", "", goal(item[part, i])
  printf "\n"
}

function goal(item) {
  return item == "list" ? "0.60" : item == "missing" ? "1.00" : "0.90"
}

function delay_table(    p, i, name, key) {
  printf "\nDelays: milliseconds from a finished change in a layer to its being seen through the mount\n\n"
  printf "%-16s", ""
  for (p = 1; p <= peers["delay"]; p++) printf "%38s", peer["delay", p]
  printf "\n%-16s", ""
  for (p = 1; p <= peers["delay"]; p++) printf "%10s%10s%9s%9s", "p50", "p99", "changes", "never"
  printf "\n"
  for (i = 1; i <= items["delay"]; i++) {
    printf "%-16s", item["delay", i]
    for (p = 1; p <= peers["delay"]; p++) {
      name = peer["delay", p]
      key = "delay" SUBSEP name SUBSEP item["delay", i]
      printf "%10s%10s%9d%9d", milliseconds(percentile("delay", name, item["delay", i], 0.5)),
        milliseconds(percentile("delay", name, item["delay", i], 0.99)), count[key], never[key]
    }
    printf "\n"
  }
  printf "%-16s%10s%10s\n", "goal", "0.50", "5.00"
}

function milliseconds(microseconds) {
  return microseconds >= 1e12 ? "> 1500" : sprintf("%.2f", microseconds / 1000)
}

function memory_table() {
  printf "\nMemory of the daemon: %d KiB before, %d KiB after %d files: %.0f bytes a file (goal: 400)\n",
    figure["memory", "bundlefs", "before", 1], figure["memory", "bundlefs", "after", 1],
    figure["memory", "bundlefs", "files", 1], bytes_per_file()
}

function match_table(    p, i, name, size, least, figure) {
  printf "\nURLs matched in the library: millions a second of processor time, and the time beside the smallest " \
    "table's\n\n"
  for (p = 1; p <= peers["matches"]; p++) {
    name = peer["matches", p]
    least = ""
    for (i = 1; i <= items["matches"]; i++) {
      size = item["matches", i] + 0
      if (("matches", name, size) in count && (least == "" || size < least)) least = size
    }
    for (i = 1; i <= items["matches"]; i++) {
      size = item["matches", i]
      if (!(("matches", name, size) in count)) continue
      figure = percentile("matches", name, size, 0.5)
      printf "%-16s%10d routes%10.2f  %6.2f\n", name, size, figure / 1e6,
        percentile("matches", name, least, 0.5) / figure
    }
  }
  printf "%-16s%17s%10s  %6s\n", "goal", "", "1.00", "1.50"
}

function trip_table(    i, name, title) {
  title["comment"] = "a write that does nothing"
  title["post"] = "a URL written"
  title["trip"] = "and its result read"
  printf "\nThe control file: microseconds, the ratio to a write that does nothing, and how many a second\n\n"
  for (i = 1; i <= items["routes"]; i++) {
    name = item["routes", i]
    printf "%-30s%10.1f  %6.2f%10d\n", title[name], cost("routes", "bundlefs", name), trip_ratio(name),
      1e6 / cost("routes", "bundlefs", name)
  }
}

END {
  if (peers["warm"]) {
    cost_table("warm", "Warm accesses: microseconds an operation, and the ratio to kernel overlayfs")
    cost_table("processor", "Of these the asking process's own processor time: steadier on a busy machine, " \
      "but without a daemon's")
  }
  if (peers["delay"]) delay_table()
  if (peers["memory"]) memory_table()
  if (peers["matches"]) match_table()
  if (peers["routes"]) trip_table()
}
