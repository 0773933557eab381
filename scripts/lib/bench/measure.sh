# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # What is set here is used elsewhere in the benchmark, and the other way round.
# How figures are taken, and kept. Sourced by scripts/bench.

# On a terminal, a line that is written over by the next; nothing elsewhere.
progress() {
  [[ ! -t 1 ]] || printf '\r\e[K%s' "${*:+  $*}"
}

# Runs the probe so that a signal is heard meanwhile; what it prints goes to the file ./figures.
measure() {
  "$probe" "$@" >figures </dev/null &
  running=$!
  local status=0
  wait "$running" || status=$?
  running=''
  ((status == 0)) || fail "benchprobe $1 failed"
}

# Adds a line to the results: part, peer, item, figure.
note() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>results
}

# Measures with the probe, the arguments after the first three, and notes the time that passed, and the
# processor's, as those of the part, peer and item.
time_of() {
  local part=$1 peer=$2 item=$3 elapsed processor
  shift 3
  measure "$@"
  read -r elapsed processor <figures
  note "$part" "$peer" "$item" "$elapsed"
  note "$part-processor" "$peer" "$item" "$processor"
}

# The same for something that concerns so many files, the fourth argument, with what the daemon works for each.
time_with_daemon() {
  local part=$1 peer=$2 item=$3 count=$4 before
  if ! is_fuse "$peer"; then
    time_of "$part" "$peer" "$item" "${@:5}"
    return
  fi
  before=$(daemon_time "$root")
  time_of "$part" "$peer" "$item" "${@:5}"
  note daemon "$peer" "$item" $((($(daemon_time "$root") - before) / count))
}

# Does what the arguments say, a function and its first arguments, with each peer in turn, and that for so many
# rounds. Whoever is measured last in one round is not always so: a machine's mood passes over all.
in_rounds() {
  local title=$1 count=$2 action=$3 round peer place
  shift 3
  for ((round = 1; round <= count; round++)); do
    for ((place = 0; place < $#; place++)); do
      peer=${*:(place + round - 1) % $# + 1:1}
      progress "$title, round $round of $count, $peer"
      ! has_peer "$peer" || "$action" "$peer"
    done
  done
  progress ''
}

# Brings what the layers hold into the kernel's caches, so that what is measured is not the disk.
warm_layers() {
  local folder
  for folder; do
    measure grep "$folder"
  done
}

# Figures of a busy machine are noisy; whoever reads them is told. Sets load to the processes that wanted to run
# in the last minute.
look_at_load() {
  load=$(cut -d ' ' -f 1 /proc/loadavg)
  ((${load%.*} * 2 < $(nproc))) || step "The machine is busy (load $load): the figures will be noisy"
}
