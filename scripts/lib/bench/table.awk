# Prints the results of scripts/bench as text tables.

function cost_table(part, name,    p, i, value) {
  if (!peers[part]) return
  if (name == "") name = part
  printf "\n%s, and the ratio to %s\n\n%-20s", title_of(part), baseline(name) == "native" ? "the plain directory" : \
    "kernel overlayfs", ""
  for (i = 1; i <= items[part]; i++) printf "%20s", title[name, item[part, i]]
  printf "\n%-20s", ""
  for (i = 1; i <= items[part]; i++) printf "%12s%8s", unit[name, item[part, i]], ""
  printf "\n"
  for (p = 1; p <= peers[part]; p++) {
    printf "%-20s", peer[part, p]
    for (i = 1; i <= items[part]; i++) cost_cell(part, peer[part, p], item[part, i])
    printf "\n"
  }
}

function cost_cell(part, name, item) {
  if (is_known(part, name, item)) printf "%12s%8s", shown(part, name, item), shown_ratio(part, name, item)
  else printf "%12s%8s", "-", ""
}

function title_of(part) {
  return part == "warm-processor" ? "Of these the processor time of the measuring process, steadier on a busy machine" \
    : heading[part]
}

function delay_table(    p, i, name, key) {
  if (!peers["delay"]) return
  printf "\nDelays: milliseconds from a finished change in a layer until it is visible in the mount\n\n"
  printf "%-20s", ""
  for (p = 1; p <= peers["delay"]; p++) printf "%48s", peer["delay", p]
  printf "\n%-20s", ""
  for (p = 1; p <= peers["delay"]; p++) printf "%10s%10s%10s%9s%9s", "p50", "p99", "most", "changes", "never"
  printf "\n"
  for (i = 1; i <= items["delay"]; i++) {
    printf "%-20s", item["delay", i]
    for (p = 1; p <= peers["delay"]; p++) {
      name = peer["delay", p]
      key = "delay" SUBSEP name SUBSEP item["delay", i]
      printf "%10s%10s%10s%9d%9d", milliseconds(percentile("delay", name, item["delay", i], 0.5)),
        milliseconds(percentile("delay", name, item["delay", i], 0.99)),
        milliseconds(percentile("delay", name, item["delay", i], 1)), count[key], never[key]
    }
    printf "\n"
  }
  printf "%-20s%10s%10s\n", "goal", "0.30", "1.00"
}

function read_table(    p, i, name, tree) {
  if (!peers["reads"]) return
  printf "\nREADs at the first touch: how many, and for each file\n\n"
  for (p = 1; p <= peers["reads"]; p++) {
    name = peer["reads", p]
    for (i = 1; i <= items["reads"]; i++) {
      tree = item["reads", i]
      if (!is_known("reads", name, tree)) continue
      printf "%-20s%-52s%8d%8.2f\n", name, heading[tree], percentile("reads", name, tree, 0.5), reads_per_file(name, tree)
    }
  }
}

function milliseconds(microseconds) {
  return microseconds >= 1e12 ? "> 1500" : sprintf("%.2f", microseconds / 1000)
}

function memory_table(part,    p, name) {
  if (!peers[part]) return
  printf "\nMemory of the daemon: KiB before and after %d files, bytes a file, and idle processor time\n\n",
    figure[part, peer[part, 1], "files", 1]
  printf "%-20s%12s%12s%12s%12s\n", "", "before", "after", "a file", "ms in 3 s"
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    printf "%-20s%12d%12d%12.0f%12.0f\n", name, figure[part, name, "before", 1], figure[part, name, "after", 1],
      bytes_per_file(part, name), figure[part, name, "idle", 1] / 1e6
  }
}

function match_table(    p, i, name, size, least, value) {
  if (!peers["matches"]) return
  printf "\nURLs matched in the library: millions a second of processor time, and the time relative to the " \
    "smallest table\n\n"
  for (p = 1; p <= peers["matches"]; p++) {
    name = peer["matches", p]
    least = ""
    for (i = 1; i <= items["matches"]; i++) {
      size = item["matches", i] + 0
      if (is_known("matches", name, size) && (least == "" || size < least)) least = size
    }
    for (i = 1; i <= items["matches"]; i++) {
      size = item["matches", i]
      if (!is_known("matches", name, size)) continue
      value = cost("matches", name, size)
      printf "%-20s%10d routes%10.2f  %6.2f\n", name, size, value / 1e6, cost("matches", name, least) / value
    }
  }
  printf "%-20s%17s%10s  %6s\n", "goal", "", "1.00", "1.50"
}

function trip_table(    i, name, title) {
  if (!peers["routes"]) return
  title["comment"] = "a write that does nothing"
  title["post"] = "a URL written"
  title["trip"] = "and its result read"
  printf "\nThe control file: microseconds, the ratio to a write that does nothing, and how many a second\n\n"
  for (i = 1; i <= items["routes"]; i++) {
    name = item["routes", i]
    printf "%-30s%10.1f  %6.2f%10d\n", title[name], cost("routes", "bundlefs", name) / 1e3, trip_ratio(name),
      1e9 / cost("routes", "bundlefs", name)
  }
}

# Omits goals that were not measured.
function goal_table(    i, begun) {
  judge()
  for (i = 1; i <= goals; i++) {
    if (goal_value[i] == "") continue
    if (!begun++) printf "\n%-72s%10s%12s\n", "Goals", "measured", "goal"
    printf "%-72s%10.2f%12s  %s\n", goal_name[i], goal_value[i],
      sprintf("%s %.4g", goal_sense[i] == "most" ? "<=" : ">=", goal_limit[i]), goal_met[i] ? "met" : "MISSED"
  }
}

END {
  for (p = 1; p <= parts; p++) {
    cost_table(order[p])
    if (order[p] == "warm") cost_table("warm-processor", "warm")
  }
  memory_table("memory")
  memory_table("million")
  read_table()
  delay_table()
  match_table()
  trip_table()
  goal_table()
}
