# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# The parts start, memory, delay, routes, survival, layers, library, names and ui. Sourced by scripts/bench.

# From the mounting command to the first reply about a file.
measure_start() {
  local folder=$work
  if ((million)); then
    make_million
    folder=$work/million
    start_file=d03999/999999
  else
    make_tree
    start_file=$(head -z -n 1 files | tr -d '\0')
  fi
  start_layers=("$folder/main" "$folder/substitution")
  step "Start: rounds over the peers: $rounds"
  in_rounds Start "$rounds" start_round "${all_peers[@]}"
}

start_round() {
  local peer=$1 mountpoint=$work/mounts/start-$1
  [[ $peer != native && $peer != *-xattr-off ]] || return 0
  mount_peer "$peer" "${start_layers[@]}" || return 0
  unmount_all
  mkdir -p "$mountpoint"
  build_command "$peer" "${start_layers[@]}" "$mountpoint"
  mounted+=("$mountpoint")
  time_of start "$peer" start start "$mountpoint/$start_file" "${command[@]}" 2>messages
  unmount_all
}

measure_memory() {
  local peer
  make_tree
  step "Memory: walking and reading $file_count files"
  for peer in "${all_peers[@]}"; do
    if is_fuse "$peer" && [[ $peer != *-xattr-off ]] && has_peer "$peer"; then
      progress "$peer"
      memory_of memory "$peer" "$work" "$file_count" list "$work/folders" stat "$work/files" read "$work/files"
    fi
  done
  progress ''
  ((million)) || return 0
  make_million
  (cd million/main && find . -type f -printf '%P\0') >million/files
  step "Memory: walking over a million files"
  memory_of million bundlefs "$work/million" 1000000 stat "$work/million/files"
}

# Records the memory before and after the probe's passes, and the processor time in three idle seconds after.
memory_of() {
  local part=$1 peer=$2 folder=$3 count=$4 processes before idle
  mount_peer "$peer" "$folder/main" "$folder/substitution" || return 0
  mapfile -t processes < <(daemons_of "$root")
  ((${#processes[@]})) || fail "found no daemon for $root"
  before=$(own_memory "${processes[@]}")
  measure walk "$root"
  measure pass "$root" "${@:5}"
  record "$part" "$peer" files "$count"
  record "$part" "$peer" before "$before"
  record "$part" "$peer" after "$(own_memory "${processes[@]}")"
  sleep 1
  idle=$(daemon_time "$root")
  sleep 3
  record "$part" "$peer" idle $(($(daemon_time "$root") - idle))
  unmount_all
}

measure_delay() {
  local peer kind count figure
  for peer in bundlefs mergerfs; do
    has_peer "$peer" || continue
    count=$changes
    [[ $peer == bundlefs ]] || count=$peer_changes
    step "Delays: $peer, $count changes of each kind"
    mkdir -p "delays/$peer/main" "delays/$peer/substitution"
    measure prepare "delays/$peer/main" "delays/$peer/substitution" "$count"
    mount_peer "$peer" "$work/delays/$peer/main" "$work/delays/$peer/substitution" || continue
    # Lets the events of making the files pass.
    sleep 2
    for kind in modify replace override fallback create delete list; do
      progress "$peer, $kind"
      measure delay "delays/$peer/main" "delays/$peer/substitution" "$root" "$kind" "$count"
      while IFS= read -r figure; do
        record delay "$peer" "$kind" "$figure"
      done <figures
    done
    progress ''
    unmount_all
  done
}

measure_routes() {
  local workload='' size figure comment post trip
  step "Routes: matches in the library, rounds: $rounds"
  # Each title is followed by lines: SIZE routes: FIGURE matches a second, …
  "$routebench" "$rounds" >figures
  while read -r size _ figure _; do
    case $size in
      Routes) workload=literals ;;
      Six) workload=mixed ;;
      *) record matches "$workload" "$size" "$figure" ;;
    esac
  done <figures
  step "Routes: URLs through the control file, rounds: $rounds"
  mkdir -p routes
  mount_peer bundlefs "$work/routes" "$work/routes"
  measure routes "$root/.routes" "$rounds"
  while read -r comment post trip; do
    record routes bundlefs comment "$comment"
    record routes bundlefs post "$post"
    record routes bundlefs trip "$trip"
  done <figures
  unmount_all
  # Prints a table of its own, which is not in the JSON or the SVG.
  "$project/scripts/lib/bench/routes.py" "$bundlefs" "$work" "$rounds"
}

# As above.
measure_survival() {
  make_tree
  step "Survival: rounds: $rounds"
  "$project/scripts/lib/bench/survival.py" "$bundlefs" "$probe" "$work" "$rounds"
}

# As above.
measure_layers() {
  make_tree
  step "Layers: changes: $(((changes + 9) / 10))"
  "$project/scripts/lib/bench/layers.py" "$bundlefs" "$probe" "$work" "$(((changes + 9) / 10))"
}

# As above.
measure_many() {
  step "Many layers: rounds: $rounds"
  mkdir -p "$work/mounts"
  "$project/scripts/lib/bench/many.py" "$bundlefs" "$probe" "$work" "$rounds"
}

# As above. Linked dynamically, as most programs that use the library: a static URLSession needs libcurl.
measure_library() {
  local folder=$project/.build/library
  step "Library: rounds: $rounds"
  swift build --quiet --package-path "$project" --scratch-path "$folder" -c release --product librarybench
  mkdir -p library
  "$folder/release/librarybench" "$work/library" "$rounds"
}

# As above.
measure_names() {
  make_tree
  step "Names without case: rounds: $rounds"
  "$project/scripts/lib/bench/names.py" "$bundlefs" "$probe" "$work" "$rounds"
}

# As above.
measure_ui() {
  local chromium
  if ! chromium=$(command -v chromium); then
    step "Skipping the page: chromium is not installed"
    return
  fi
  make_tree
  step "A page of bundlefs ui: rounds: $rounds"
  "$project/scripts/lib/bench/ui.py" "$bundlefs" "$probe" "$work" "$rounds" "$chromium"
}
