# Prints the results of scripts/bench as JSON. A delay of null means that no change was seen before the timeout.

function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
  return "\"" text "\""
}

# Begins a member: a comma if it is not the first, then its name.
function member(name, depth) {
  printf "%s\n%*s%s: ", begun[depth]++ ? "," : "", 2 * depth, "", quoted(name)
}

function open_object(depth) {
  begun[depth + 1] = 0
  printf "{"
}

function close_object(depth) {
  printf "\n%*s}", 2 * depth, ""
}

function milliseconds(microseconds) {
  return microseconds >= 1e12 ? "null" : sprintf("%.4f", microseconds / 1000)
}

# The median of all rounds; per MiB for large files, except for random reads.
function cost_value(part, name, item,    processor) {
  processor = part "-processor"
  printf "{\"microseconds\": %.4f", cost(part, name, item) / 1e3
  if (ratio(part, name, item) != "") printf ", \"ratio\": %.4f", ratio(part, name, item)
  if (is_known(processor, name, item)) printf ", \"processor_microseconds\": %.4f", cost(processor, name, item) / 1e3
  printf "}"
}

function delay_value(name, item,    key) {
  key = "delay" SUBSEP name SUBSEP item
  printf "{\"p50_milliseconds\": %s, \"p99_milliseconds\": %s, \"most_milliseconds\": %s, \"changes\": %d, " \
    "\"never\": %d}", milliseconds(percentile("delay", name, item, 0.5)),
    milliseconds(percentile("delay", name, item, 0.99)), milliseconds(percentile("delay", name, item, 1)), count[key],
    never[key]
}

function read_value(name, item) {
  printf "{\"requests\": %d, \"for_each_file\": %.4f}", percentile("reads", name, item, 0.5), reads_per_file(name, item)
}

function match_value(name, size) {
  printf "{\"matches_per_second\": %d}", percentile("matches", name, size, 0.5)
}

function trip_value(name) {
  printf "{\"microseconds\": %.4f, \"ratio\": %.4f}", cost("routes", "bundlefs", name) / 1e3, trip_ratio(name)
}

function part_object(name,    p, i) {
  if (!peers[name]) return
  member(name, 1)
  open_object(1)
  for (p = 1; p <= peers[name]; p++) {
    member(peer[name, p], 2)
    open_object(2)
    for (i = 1; i <= items[name]; i++) {
      if (!is_known(name, peer[name, p], item[name, i])) continue
      member(item[name, i], 3)
      if (name == "delay") delay_value(peer[name, p], item[name, i])
      else if (name == "reads") read_value(peer[name, p], item[name, i])
      else if (name == "matches") match_value(peer[name, p], item[name, i])
      else if (name == "routes") trip_value(item[name, i])
      else cost_value(name, peer[name, p], item[name, i])
    }
    close_object(2)
  }
  close_object(1)
}

function memory_object(part,    p, name) {
  if (!peers[part]) return
  member(part == "million" ? "memory_of_a_million" : part, 1)
  open_object(1)
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    member(name, 2)
    printf "{\"files\": %d, \"before_kibibytes\": %d, \"after_kibibytes\": %d, \"bytes_per_file\": %.1f, " \
      "\"idle_milliseconds\": %.0f}", figure[part, name, "files", 1], figure[part, name, "before", 1],
      figure[part, name, "after", 1], bytes_per_file(part, name), figure[part, name, "idle", 1] / 1e6
  }
  close_object(1)
}

function goal_list(    i, begun) {
  judge()
  member("goals", 1)
  printf "["
  for (i = 1; i <= goals; i++) {
    if (goal_value[i] == "") continue
    printf "%s\n    {\"name\": %s, \"measured\": %.4f, \"at_%s\": %.4g, \"met\": %s}", begun++ ? "," : "",
      quoted(goal_name[i]), goal_value[i], goal_sense[i], goal_limit[i], goal_met[i] ? "true" : "false"
  }
  printf "\n  ]"
}

END {
  open_object(0)
  member("date", 1)
  printf "%s", quoted(date)
  member("version", 1)
  printf "%s", quoted(version)
  member("kernel", 1)
  printf "%s", quoted(kernel)
  member("cores", 1)
  printf "%d", cores
  member("load_at_start", 1)
  printf "%.2f", machine_load
  member("rounds", 1)
  printf "%d", rounds
  member("files", 1)
  printf "%d", files
  for (p = 1; p <= parts; p++) part_object(order[p])
  part_object("reads")
  part_object("delay")
  memory_object("memory")
  memory_object("million")
  part_object("matches")
  part_object("routes")
  goal_list()
  close_object(0)
  printf "\n"
}
