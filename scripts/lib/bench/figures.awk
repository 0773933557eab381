# Reads the results of scripts/bench, lines PART, PEER, ITEM, FIGURE separated by tabs, and names the parts and items.
# Read with acceptance.awk and table.awk or json.awk, which print the output.
#
# A figure is in nanoseconds per operation in the cost parts, their "-processor" parts and the part daemon; in
# microseconds in the part delay.

BEGIN {
  FS = "\t"
  define("warm", "Warm accesses", "us:stat:stat us:open:open+close us:read:open+read+close us:list:readdir " \
    "us:missing:missing_name us:parallel:8_readers")
  define("first", "First touch after mounting", "us:walk:walk us:read:then_read_all us:grep:walk_and_read ms:ls:ls_-lR")
  define("real", "First touch of a real tree", "us:walk:walk us:read:then_read_all")
  define("first-busy", "First touch, one processor busy", "us:walk:walk us:read:then_read_all")
  define("real-busy", "First touch of a real tree, one processor busy", "us:walk:walk us:read:then_read_all")
  define("programs", "Programs, all cached", "ms:ls:ls_-lR ms:tar:tar_c ms:git:git_status ms:clang:clang")
  define("large", "A large file", "GB/s:sequential-first:sequential,_1st GB/s:sequential:again " \
    "GB/s:mapped-first:mapped,_1st GB/s:mapped:again us:random-first:4_KiB_random,_1st us:random:again")
  define("shapes", "Deep and wide trees", "us:deep-first:stat_60_deep,_1st us:deep:again " \
    "ms:wide-first:list_wide,_1st ms:wide:again us:wide-walk:walk_wide,_1st")
  define("zip", "A zip archive", "us:walk:walk us:read:then_read_all us:again:read_again")
  define("start", "From the mounting command to the first reply", "ms:start:start")
  for (kind = 1; kind <= 2; kind++) {
    stage = kind == 1 ? "tmpfs" : "ext4"
    define("storm-" stage, "Changes on " stage, "us:create:create us:append:append us:overwrite:overwrite " \
      "us:rename:rename us:unlink:unlink us:mkdir:mkdir")
    define("write-" stage, "Writing on " stage, "ms:tar:tar_x ms:git:git_checkout us:sqlite:SQLite_commit " \
      "GB/s:blocks:1_MiB_writes GB/s:pages:4_KiB_writes ms:first:copy-up")
  }
  define("daemon", "The daemon's processor time at the first touch", "us:walk:walk us:read:then_read_all " \
    "us:grep:walk_and_read us:ls:ls_-lR")
}

# Defines a part's heading and its items: UNIT:ITEM:NAME each, with _ for a space in the name.
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
  # A timeout sorts after all others.
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

# The figure that the given fraction of all figures does not exceed.
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

# The median, in nanoseconds per operation.
function cost(part, peer, item) {
  return percentile(part, peer, item, 0.5)
}

# The cost of the first peer relative to the second; empty if one of them was not measured.
function quotient(part, item, first, second) {
  if (!is_known(part, first, item) || !is_known(part, second, item) || cost(part, second, item) == 0) return ""
  return cost(part, first, item) / cost(part, second, item)
}

# The peer that the costs of a part are relative to: kernel overlayfs, for archives the plain directory.
function baseline(part) {
  return part == "zip" ? "native" : "overlayfs"
}

function ratio(part, peer, item) {
  return quotient(part, item, peer, baseline(part))
}

# READs for each file of a tree; empty if they were not counted.
function reads_per_file(peer, item) {
  if (!is_known("reads", peer, item)) return ""
  return percentile("reads", peer, item, 0.5) / percentile("read-files", peer, item, 0.5)
}

# The cost for display: three digits, in the item's unit.
function shown(part, peer, item,    name, value) {
  name = part
  sub(/-processor$/, "", name)
  value = cost(part, peer, item)
  name = unit[name, item]
  # For GB/s, an operation is one MiB.
  value = name == "ms" ? value / 1e6 : name == "us" ? value / 1e3 : value ? 1048576 / value : 0
  return sprintf(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}

function shown_ratio(part, peer, item,    value) {
  value = ratio(part, peer, item)
  return value == "" ? "-" : sprintf(value < 100 ? "%.2f" : "%.0f", value)
}

# The cost of a write to the control file relative to a write that does nothing.
function trip_ratio(item) {
  return cost("routes", "bundlefs", item) / cost("routes", "bundlefs", "comment")
}

# Bytes of the daemon's memory for each file; part is "memory" or "million".
function bytes_per_file(part, peer) {
  return (figure[part, peer, "after", 1] - figure[part, peer, "before", 1]) * 1024 / figure[part, peer, "files", 1]
}
