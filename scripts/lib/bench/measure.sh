# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# Takes and stores measurements. Sourced by scripts/bench.

# On a terminal, prints a line that the next one overwrites.
progress() {
  [[ ! -t 1 ]] || printf '\r\e[K%s' "${*:+  $*}"
}

# Runs the probe in the background, so that signals are handled meanwhile; its output goes to ./figures.
measure() {
  "$probe" "$@" >figures </dev/null &
  running=$!
  local status=0
  wait "$running" || status=$?
  running=''
  ((status == 0)) || fail "benchprobe $1 failed"
}

# record PART PEER ITEM FIGURE: appends a line to the results.
record() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>results
}

# time_of PART PEER ITEM PROBE-ARGUMENT…: records the elapsed and the processor time of a run of the probe.
time_of() {
  local part=$1 peer=$2 item=$3 elapsed processor
  shift 3
  measure "$@"
  read -r elapsed processor <figures
  record "$part" "$peer" "$item" "$elapsed"
  record "$part-processor" "$peer" "$item" "$processor"
}

# time_with_daemon PART PEER ITEM COUNT PROBE-ARGUMENT…: the same, and the daemon's processor time divided by COUNT.
time_with_daemon() {
  local part=$1 peer=$2 item=$3 count=$4 before
  if ! is_fuse "$peer"; then
    time_of "$part" "$peer" "$item" "${@:5}"
    return
  fi
  before=$(daemon_time "$root")
  time_of "$part" "$peer" "$item" "${@:5}"
  record daemon "$peer" "$item" $((($(daemon_time "$root") - before) / count))
}

# in_rounds TITLE COUNT FUNCTION PEER…: calls FUNCTION with each peer in turn, COUNT times. The order rotates, so that
# drifts of the machine affect all peers alike.
in_rounds() {
  local title=$1 count=$2 action=$3 round peer index
  shift 3
  for ((round = 1; round <= count; round++)); do
    for ((index = 0; index < $#; index++)); do
      peer=${*:(index + round - 1) % $# + 1:1}
      progress "$title, round $round of $count, $peer"
      ! has_peer "$peer" || "$action" "$peer"
    done
  done
  progress ''
}

# Reads the layers into the kernel's caches, so that the disk is not measured.
warm_layers() {
  local folder
  for folder; do
    measure grep "$folder"
  done
}

# Sets load to the load average of the last minute, and warns on a busy machine.
measure_load() {
  load=$(cut -d ' ' -f 1 /proc/loadavg)
  ((${load%.*} * 2 < $(nproc))) || step "Warning: the machine is busy (load $load); the figures will be noisy"
}
