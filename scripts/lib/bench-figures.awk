# The results of scripts/bench: lines of PART, PEER, ITEM, FIGURE, divided by tabs. Read with one of the other
# bench-*.awk, which says what to print at the end.

BEGIN { FS = "\t" }

{
  key = $1 SUBSEP $2 SUBSEP $3
  if (!(($1, $2) in has)) {
    has[$1, $2] = 1
    peer[$1, ++peers[$1]] = $2
  }
  if (!(($1, $3) in known)) {
    known[$1, $3] = 1
    item[$1, ++items[$1]] = $3
  }
  # What was given up is later than all others.
  if ($4 == "never") {
    never[key]++
    $4 = 1e12
  }
  figure[key, ++count[key]] = $4 + 0
}

# The figure that the given part of all, 0 to 1, do not exceed.
function percentile(part, peer, item, fraction,    key, number, i, j, value) {
  key = part SUBSEP peer SUBSEP item
  number = count[key]
  if (!(key in sorted)) {
    for (i = 2; i <= number; i++) {
      value = figure[key, i]
      for (j = i - 1; j >= 1 && figure[key, j] > value; j--) figure[key, j + 1] = figure[key, j]
      figure[key, j + 1] = value
    }
    sorted[key] = 1
  }
  i = int(number * fraction)
  if (i < number * fraction || i == 0) i++
  return figure[key, i]
}

# Microseconds an operation; part is "warm", or "processor" for the asking process's own time.
function cost(part, peer, item) {
  return percentile(part, peer, item, 0.5) / 1000
}

# What a cost is to kernel overlayfs's; nothing if there was none.
function ratio(part, peer, item) {
  if (!((part, "overlayfs") in has)) return ""
  return cost(part, peer, item) / cost(part, "overlayfs", item)
}

# What something written to the control file costs beside a write that does nothing.
function trip_ratio(item) {
  return cost("routes", "bundlefs", item) / cost("routes", "bundlefs", "comment")
}

# Bytes that the daemon took for each file.
function bytes_per_file() {
  return (figure["memory", "bundlefs", "after", 1] - figure["memory", "bundlefs", "before", 1]) * 1024 \
    / figure["memory", "bundlefs", "files", 1]
}
