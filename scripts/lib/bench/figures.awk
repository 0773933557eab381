# The results of scripts/bench: lines of PART, PEER, ITEM, FIGURE, divided by tabs; and what the parts and their items
# are called. Read with acceptance.awk and with one of table.awk, json.awk and svg.awk, which says what to print at the
# end.
#
# A figure is nanoseconds an operation in the cost parts and their "-processor" parts; the daemon's alike. In the part
# delay it is microseconds.

BEGIN {
  FS = "\t"
  define("warm", "Warm accesses", "us:stat:stat us:open:open+close us:read:open+read+close us:list:readdir " \
    "us:missing:missing_name us:parallel:8_readers")
  define("first", "First touch after mounting", "us:walk:walk us:read:then_read_all us:grep:walk_and_read ms:ls:ls_-lR")
  define("programs", "Programs, all cached", "ms:ls:ls_-lR ms:tar:tar_c ms:git:git_status ms:clang:clang")
  define("large", "A large file", "GB/s:sequential-first:sequential,_1st GB/s:sequential:again " \
    "GB/s:mapped-first:mapped,_1st GB/s:mapped:again us:random-first:4_KiB_random,_1st us:random:again")
  define("shapes", "Deep and wide trees", "us:deep-first:stat_60_deep,_1st us:deep:again " \
    "ms:wide-first:list_wide,_1st ms:wide:again us:wide-walk:walk_wide,_1st")
  define("zip", "A zip archive", "us:walk:walk us:read:then_read_all us:again:read_again")
  define("start", "From the mounting command to the first answer", "ms:start:start")
  define("daemon", "The daemon's processor time at the first touch", "us:walk:walk us:read:then_read_all " \
    "us:grep:walk_and_read us:ls:ls_-lR")
}

# A part's name for people, and its items: UNIT:ITEM:NAME each, with _ for a space in the name.
function define(part, name, text,    list, number, i, word) {
  heading[part] = name
  order[++parts] = part
  number = split(text, list, " ")
  for (i = 1; i <= number; i++) {
    split(list[i], word, ":")
    gsub(/_/, " ", word[3])
    unit[part, word[2]] = word[1]
    title[part, word[2]] = word[3]
  }
}

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

# Whether it was measured.
function is_known(part, peer, item) {
  return (part SUBSEP peer SUBSEP item) in count
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

# Nanoseconds an operation.
function cost(part, peer, item) {
  return percentile(part, peer, item, 0.5)
}

# How many times as long the first takes as the second; nothing if one of them was not measured.
function quotient(part, item, first, second) {
  if (!is_known(part, first, item) || !is_known(part, second, item) || cost(part, second, item) == 0) return ""
  return cost(part, first, item) / cost(part, second, item)
}

# What all the costs of a part are compared with: kernel overlayfs's, or of archives the plain folder's.
function baseline(part) {
  return part == "zip" ? "native" : "overlayfs"
}

function ratio(part, peer, item) {
  return quotient(part, item, peer, baseline(part))
}

# The cost as people read it: three digits, in the item's unit.
function shown(part, peer, item,    name, value) {
  name = part
  sub(/-processor$/, "", name)
  value = cost(part, peer, item)
  name = unit[name, item]
  # An operation is a MiB then.
  value = name == "ms" ? value / 1e6 : name == "us" ? value / 1e3 : value ? 1048576 / value : 0
  return sprintf(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}

function shown_ratio(part, peer, item,    value) {
  value = ratio(part, peer, item)
  return value == "" ? "-" : sprintf(value < 100 ? "%.2f" : "%.0f", value)
}

# What something written to the control file costs beside a write that does nothing.
function trip_ratio(item) {
  return cost("routes", "bundlefs", item) / cost("routes", "bundlefs", "comment")
}

# Bytes that a daemon took for each file; part is "memory" or "million".
function bytes_per_file(part, peer) {
  return (figure[part, peer, "after", 1] - figure[part, peer, "before", 1]) * 1024 / figure[part, peer, "files", 1]
}
