# What scripts/bench found, as JSON. Of a delay that is null nothing was seen in time.

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

function warm_value(name, item) {
  printf "{\"microseconds\": %.4f, \"processor_microseconds\": %.4f", cost("warm", name, item),
    cost("processor", name, item)
  if (ratio("warm", name, item) != "")
    printf ", \"ratio\": %.4f, \"processor_ratio\": %.4f", ratio("warm", name, item),
      ratio("processor", name, item)
  printf "}"
}

function delay_value(name, item,    key) {
  key = "delay" SUBSEP name SUBSEP item
  printf "{\"p50_milliseconds\": %s, \"p99_milliseconds\": %s, \"changes\": %d, \"never\": %d}",
    milliseconds(percentile("delay", name, item, 0.5)), milliseconds(percentile("delay", name, item, 0.99)),
    count[key], never[key]
}

function match_value(name, size) {
  printf "{\"matches_per_second\": %d}", percentile("matches", name, size, 0.5)
}

function trip_value(name) {
  printf "{\"microseconds\": %.4f, \"ratio\": %.4f}", cost("routes", "bundlefs", name), trip_ratio(name)
}

function part(name,    p, i) {
  if (!peers[name]) return
  member(name, 1)
  open_object(1)
  for (p = 1; p <= peers[name]; p++) {
    member(peer[name, p], 2)
    open_object(2)
    for (i = 1; i <= items[name]; i++) {
      if (!((name, peer[name, p], item[name, i]) in count)) continue
      member(item[name, i], 3)
      if (name == "warm") warm_value(peer[name, p], item[name, i])
      else if (name == "matches") match_value(peer[name, p], item[name, i])
      else if (name == "routes") trip_value(item[name, i])
      else delay_value(peer[name, p], item[name, i])
    }
    close_object(2)
  }
  close_object(1)
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
  member("files", 1)
  printf "%d", files
  part("warm")
  part("delay")
  if (peers["memory"]) {
    member("memory", 1)
    printf "{\"bundlefs\": {\"before_kibibytes\": %d, \"after_kibibytes\": %d, \"bytes_per_file\": %.1f}}",
      figure["memory", "bundlefs", "before", 1], figure["memory", "bundlefs", "after", 1], bytes_per_file()
  }
  part("matches")
  part("routes")
  close_object(0)
  printf "\n"
}
