# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# The parts warm, first, shapes, large and zip. Sourced by scripts/bench.

# All files were accessed before.
measure_warm() {
  local peer peers=()
  make_tree
  step "Warm accesses: rounds over the peers: $rounds"
  for peer in "${all_peers[@]}"; do
    [[ $peer != *-xattr-off ]] || continue
    has_peer "$peer" || continue
    mount_peer "$peer" "$work/main" "$work/substitution" || continue
    peers+=("$peer")
    progress "warming $peer"
    measure pass "$root" list "$work/folders" stat "$work/files" missing "$work/missing" read "$work/files"
  done
  in_rounds 'Warm accesses' "$rounds" warm_round "${peers[@]}"
  unmount_all
}

warm_round() {
  local peer=$1 access list root=$work/mounts/$1
  [[ $peer != native ]] || root=$work/main
  for access in stat open read list missing; do
    case $access in
      list) list=folders ;;
      missing) list=missing ;;
      *) list=files ;;
    esac
    time_of warm "$peer" "$access" warm "$root" "$access" "$work/$list"
  done
  time_of warm "$peer" parallel parallel "$root" "$work/files" 8
}

# The first touch through a fresh mount. The layers are read into the kernel's caches each time, so that the disk is not
# measured: a machine may evict unused files within a minute.
measure_first() {
  make_tree
  make_real
  step "First touch: rounds over the peers: $few_rounds"
  in_rounds 'First touch' "$few_rounds" first_round "${all_peers[@]}"
  step "First touch of a real tree: rounds over the peers: $rounds"
  in_rounds 'First touch of a real tree' "$rounds" real_round "${real_peers[@]}"
  if ! have stress-ng; then
    step "Skipping a busy processor: stress-ng is not installed (--install)"
    return
  fi
  stress-ng --quiet --cpu 1 &
  busy=$!
  step "First touch with a busy processor: rounds over the peers: $rounds"
  in_rounds 'First touch, one processor busy' "$rounds" busy_round "${real_peers[@]}"
  end_busy
}

# Ends the program that keeps a processor busy, if it runs.
end_busy() {
  [[ -n $busy ]] || return 0
  kill "$busy" 2>/dev/null || true
  wait "$busy" 2>/dev/null || true
  busy=''
}

real_round() {
  tree_round "$1" real real
}

busy_round() {
  tree_round "$1" first-busy .
  tree_round "$1" real-busy real
}

# tree_round PEER PART FOLDER: walks over FOLDER, then reads its files in the order of the walk.
tree_round() {
  local peer=$1 part=$2 folder=$3 item elapsed processor requests
  mount_warmed "$peer" "$folder/main" "$folder/substitution" || return 0
  measure tree "$root"
  while read -r item elapsed processor; do
    record "$part" "$peer" "$item" "$elapsed"
    record "$part-processor" "$peer" "$item" "$processor"
  done <figures
  if [[ $peer == bundlefs* ]]; then
    requests=$("$bundlefs" status "$root" --json | sed -n 's/.*"READ":\([0-9]*\).*/\1/p')
    record reads "$peer" "$part" "$requests"
    record read-files "$peer" "$part" "$(tr -dc '\0' <"$folder/files" | wc -c)"
  fi
  unmount_all
}

# Mounts a peer after reading its layers into the kernel's caches.
mount_warmed() {
  local peer=$1
  shift
  warm_layers "$@"
  mount_peer "$peer" "${@/#/$work/}"
}

first_round() {
  local peer=$1
  mount_warmed "$peer" main substitution || return 0
  if [[ $peer != *-xattr-off ]]; then
    time_with_daemon first "$peer" walk "$entry_count" walk "$root"
    time_with_daemon first "$peer" read "$file_count" once "$root" read "$work/files"
    unmount_all
    mount_warmed "$peer" main substitution
    time_with_daemon first "$peer" grep "$entry_count" grep "$root"
    unmount_all
    mount_warmed "$peer" main substitution
  fi
  time_with_daemon first "$peer" ls "$entry_count" run "$root" ls -lR
  unmount_all
}

# A deep and a wide tree, first and again.
measure_shapes() {
  make_deep
  make_wide
  step "Deep and wide trees: rounds over the peers: $few_rounds"
  in_rounds 'Deep and wide' "$few_rounds" shapes_round "${all_peers[@]}"
}

shapes_round() {
  local peer=$1
  [[ $peer != *-xattr-off ]] || return 0
  mount_warmed "$peer" deep/main deep/substitution || return 0
  time_of shapes "$peer" deep-first once "$root" stat "$work/deep/files"
  time_of shapes "$peer" deep warm "$root" stat "$work/deep/files"
  unmount_all
  mount_warmed "$peer" wide/main wide/substitution
  time_of shapes "$peer" wide-first once "$root" list "$work/wide/folders"
  time_of shapes "$peer" wide warm "$root" list "$work/wide/folders"
  unmount_all
  mount_warmed "$peer" wide/main wide/substitution
  time_of shapes "$peer" wide-walk walk "$root"
  unmount_all
}

measure_large() {
  make_large
  step "A file of $large MiB: rounds over the peers: $few_rounds"
  in_rounds 'A large file' "$few_rounds" large_round "${all_peers[@]}" bundlefs-passthrough
}

large_round() {
  local peer=$1 access
  [[ $peer != *-xattr-off ]] || return 0
  for access in sequential mapped random; do
    measure large large/main/large sequential
    mount_peer "$peer" "$work/large/main" "$work/large/substitution" || return 0
    time_of large "$peer" "$access-first" large "$root/large" "$access"
    # Random reads leave most of the file untouched.
    [[ $access != random ]] || measure large "$root/large" sequential
    time_of large "$peer" "$access" large "$root/large" "$access"
    unmount_all
  done
}

# An archive as a layer, beside the same files in a directory.
measure_zip() {
  make_zip
  if [[ ! -e zip/archive.zip ]]; then
    step "Skipping archives: zip is not installed (--install)"
    return
  fi
  step "A zip archive: rounds over the peers: $few_rounds"
  in_rounds 'A zip archive' "$few_rounds" zip_round native bundlefs-zip fuse-zip
}

zip_round() {
  local peer=$1 archive=$work/zip/archive.zip
  [[ $peer != native ]] || archive=$work/zip/main
  warm_layers zip
  mount_peer "$peer" "$archive" '' || return 0
  time_of zip "$peer" walk walk "$root"
  time_of zip "$peer" read once "$root" read "$work/zip/files"
  time_of zip "$peer" again warm "$root" read "$work/zip/files"
  unmount_all
}

# Prints a table of its own, which is not in the JSON or the SVG.
measure_archives() {
  step "Archives: rounds for each peer: $few_rounds"
  mkdir archives
  "$project/scripts/lib/bench/archives.py" "$bundlefs" "$work/archives" "$files" 128 "$few_rounds"
}
