# The performance goals; read after figures.awk. judge() sets, for 1 to goals, goal_name, goal_value (empty if it was not
# measured), goal_limit, goal_sense ("most" or "least") and goal_met.

function is_fuse_peer(name) {
  return name == "fuse-overlayfs" || name ~ /^mergerfs/ || name == "unionfs-fuse" || name == "bindfs"
}

# The FUSE peer that is fastest at an item; empty if there is none.
function best_peer(part, item,    p, name, best) {
  best = ""
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    if (!is_fuse_peer(name) || !is_known(part, name, item)) continue
    if (best == "" || cost(part, name, item) < cost(part, best, item)) best = name
  }
  return best
}

function judge_one(name, value, sense, limit) {
  goals++
  goal_name[goals] = name
  goal_value[goals] = value
  goal_sense[goals] = sense
  goal_limit[goals] = limit
  goal_met[goals] = value != "" && (sense == "most" ? value + 0 <= limit : value + 0 >= limit)
}

# The time relative to kernel overlayfs.
function judge_ratio(part, item, limit, name) {
  if (name == "") name = "bundlefs"
  judge_one(heading[part] ": " title[part, item] (name == "bundlefs" ? "" : ", xattr=off") ", time / overlayfs's",
    ratio(part, name, item), "most", limit)
}

function judge_warm() {
  judge_ratio("warm", "stat", 0.9)
  judge_ratio("warm", "open", 0.9)
  judge_ratio("warm", "read", 0.9)
  judge_ratio("warm", "list", 0.6)
  judge_ratio("warm", "missing", 1)
  judge_ratio("warm", "parallel", 0.9)
  judge_one("Warm accesses: open+read+close, best FUSE peer's time / bundlefs's",
    quotient("warm", "read", best_peer("warm", "read"), "bundlefs"), "least", 8)
  judge_ratio("programs", "ls", 1, "bundlefs-xattr-off")
  judge_ratio("programs", "clang", 1.05)
}

function judge_first() {
  judge_ratio("first", "walk", 2.5)
  judge_ratio("first", "read", 3)
  judge_one("First touch after mounting: walk, time / best FUSE peer's",
    quotient("first", "walk", "bundlefs", best_peer("first", "walk")), "most", 0.4)
  judge_one("First touch after mounting: then read all, time / best FUSE peer's",
    quotient("first", "read", "bundlefs", best_peer("first", "read")), "most", 0.4)
  judge_one("A large file: sequential, 1st, speed / best FUSE peer's",
    quotient("large", "sequential-first", best_peer("large", "sequential-first"), "bundlefs"), "least", 1.5)
  judge_one("A large file: sequential, 1st, passthrough, speed / native",
    quotient("large", "sequential-first", "native", "bundlefs-passthrough"), "least", 0.9)
}

# The real tree; READs of all.
function judge_real() {
  judge_ratio("real", "walk", 1.5)
  judge_ratio("real", "read", 2)
  judge_ratio("real-busy", "walk", 2)
  judge_ratio("real-busy", "read", 3)
  judge_one("First touch of a real tree: READs for each file", reads_per_file("bundlefs", "real"), "most", 0.1)
}

# Each kind of change, in milliseconds.
function judge_delay(    i, name) {
  for (i = 1; i <= items["delay"]; i++) {
    name = item["delay", i]
    if (!is_known("delay", "bundlefs", name)) continue
    judge_one("Delay of " name ", p50, ms", percentile("delay", "bundlefs", name, 0.5) / 1000, "most", 0.3)
    judge_one("Delay of " name ", p99, ms", percentile("delay", "bundlefs", name, 0.99) / 1000, "most", 1)
  }
}

function judge_daemon(    part) {
  judge_one("Milliseconds from the mounting command to the first reply" (million ? ", a million files" : ""),
    is_known("start", "bundlefs", "start") ? cost("start", "bundlefs", "start") / 1e6 : "", "most", 30)
  for (part = 1; part <= 2; part++) judge_memory(part == 1 ? "memory" : "million")
}

function judge_memory(part,    is_there) {
  is_there = is_known(part, "bundlefs", "after")
  judge_one("Bytes of memory for each " (part == "million" ? "of a million files" : "file"),
    is_there ? bytes_per_file(part, "bundlefs") : "", "most", 400)
  judge_one("Idle processor time, ms in 3 s" (part == "million" ? ", a million files known" : ""),
    is_there ? figure[part, "bundlefs", "idle", 1] / 1e6 : "", "most", 0)
}

# The time of every row beside the fastest FUSE peer and, on tmpfs, beside overlayfs.
function judge_write(part, stage,    i, name, best) {
  for (i = 1; i <= items[part]; i++) {
    name = item[part, i]
    best = part ~ /^storm/ && is_known(part, "fuse-overlayfs", name) ? "fuse-overlayfs" : best_peer(part, name)
    judge_one(heading[part] ": " title[part, name] ", time / " (best == "" ? "FUSE peers" : best) "'s",
      quotient(part, name, "bundlefs", best), "most", part ~ /^storm/ ? 0.7 : 1)
    if (stage == "tmpfs")
      judge_ratio(part, name, name ~ /^(append|overwrite|git)$/ ? 2.5 : name ~ /^(blocks|pages)$/ ? 1 / 0.6 : 4)
  }
}

function judge() {
  judge_warm()
  judge_first()
  judge_real()
  judge_daemon()
  judge_delay()
  judge_write("storm-tmpfs", "tmpfs")
  judge_write("write-tmpfs", "tmpfs")
  judge_write("storm-ext4", "ext4")
  judge_write("write-ext4", "ext4")
}
