# shellcheck shell=bash
# Runs the suites of the tests side by side, each in its own process, and prints their times. Sourced by scripts/test.
#
# The suites that mount, and those of BundleResources, which wait a lot, have a process each; the other modules have one
# for all their suites. A suite in MountTests.ExclusiveTests runs alone, after all others.
# shellcheck disable=SC2154 # $project is set by common.sh.

# The order in which the suites with these names run, so that no long one is left at the end; then come the others.
long_suites=Adversary,MountTests/MutationTests,ArchiveModel,ContainerReplacement,LayerSwitchModel,Announce,Upgrade,LayersTests,RoutingTests,VolumeTests

# Prints a unit for each process: the beginning of the names of its tests, such as MountTests.MountTests/RunTests/.
units() {
  sed -E -e 's,^(BundleResourcesTests\.[^/]*/|MountTests\.MountTests/(ExclusiveTests/)?[^/]*/).*,\1,' -e t \
    -e 's,^([^.]*\.).*,\1,' "$1" | sort -u
}

# Sorts units: the long ones first.
long_first() {
  local all name names
  all=$(cat)
  IFS=, read -ra names <<<"$long_suites"
  {
    for name in "${names[@]}"; do grep -F "$name" <<<"$all" || true; done
    printf '%s\n' "$all"
  } | awk '!seen[$0]++'
}

# in_own_namespace COMMAND…: runs it in a mount namespace of its own, where $isolates says that one may be made, and fails
# if it leaves a mount there. A namespace that a test makes copies all mounts of the one that it is made in; where none are shared,
# the copies keep the mounts of the suites beside it alive.
in_own_namespace() {
  if ((!isolates)); then
    "$@"
    return
  fi
  # shellcheck disable=SC2016 # The inner shell expands them.
  unshare --mount --propagation slave bash -c '
    source "$0"
    "$@" || exit
    left=$(leftover_mounts)
    [[ -z $left ]] || { printf "leftover mount: %s\n" "$left"; exit 1; }' "$project/scripts/lib/leftovers.sh" "$@"
}

# run_unit UNIT: runs its tests, and prints their output if they fail, and with --all.
run_unit() {
  local unit=$1 status=0 log=$logs/${1//\//,} begin=$EPOCHREALTIME count
  in_own_namespace timeout --foreground "${BUNDLEFS_TEST_TIMEOUT:-60m}" "$tests" --testing-library swift-testing \
    --no-parallel --filter "^${unit//./\\.}" >"$log" 2>&1 || status=$?
  count=$(grep -cF -- "$unit" "$logs/list")
  if ((status == 0)) && grep -qE "Test run with $count tests? .* passed" "$log"; then
    # The record of a whole run has each test.
    [[ -z ${BUNDLEFS_ALL_TESTS-} ]] || flock "$logs/list" cat "$log"
    printf '✔ %s seconds: %s\n' "$(elapsed "$begin")" "$unit"
    return
  fi
  print_failures "$log"
  {
    # The end of the run shows them again: a reader may have only its last lines.
    grep -E -A 2 '^✘ .* recorded an issue' "$log" | cut -c -400 | head -n 12 || true
    printf '✘ %s seconds: %s: exit status %d; the log is %s\n' "$(elapsed "$begin")" "$unit" "$status" "$log"
  } | tee -a "$logs/failed" >&2
  return 1
}

# elapsed BEGIN: prints the seconds since then, with a decimal.
elapsed() {
  local tenths=$(((${EPOCHREALTIME/./} - ${1/./}) / 100000))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# run_units JOBS: runs the units that it reads, that many at once.
run_units() {
  local jobs=$1 running=0 failed=0 unit
  while read -r unit; do
    if ((running == jobs)); then
      wait -n || failed=1
      ((running -= 1))
    fi
    run_unit "$unit" &
    ((running += 1))
  done
  for (( ; running > 0; running -= 1)); do wait -n || failed=1; done
  return "$failed"
}

# Prints the time of each suite of at least a second, the longest first. The suites of MountTests are serial.
print_times() {
  step "Seconds of each suite, from one second on"
  grep -hoE '^[✔✘] Suite .* (passed|failed) after [0-9.]+ seconds' "$logs"/*Tests* |
    sed -E 's/^. Suite "?(.*[^"])"? (passed|failed) after ([0-9]+\.[0-9]).*/\3 \1/; / (MountTests|ExclusiveTests)$/d; /^0\./d' |
    sort -rn | awk '{ printf "%8s  %s\n", $1, $2 }'
}

# print_sum STATUS SECONDS: prints what one process for all suites would print at its end.
print_sum() {
  local result=passed mark=✔ suites
  (($1 == 0)) || result=failed mark=✘
  suites=$(grep -hE '^[✔✘] Suite ' "$logs"/*Tests* | sed -E 's/ (passed|failed) after .*//' | sort -u | wc -l)
  printf '%s Test run with %d tests in %d suites %s after %s seconds.\n' "$mark" "$(wc -l <"$logs/list")" \
    "$suites" "$result" "$2"
}

# run_suites FOLDER: runs all suites of the built tests; their logs are in FOLDER.
run_suites() {
  # One more than processors, since many suites wait.
  local jobs=${BUNDLEFS_TEST_JOBS:-$(($(nproc) + 1))} status=0 begin=$EPOCHREALTIME isolates=0
  ! unshare --mount true 2>/dev/null || isolates=1
  logs=$1 tests=$(swift build --show-bin-path)/bundlefsPackageTests.xctest
  rm -rf "$logs"
  mkdir -p "$logs"
  "$tests" --testing-library swift-testing --list-tests >"$logs/list"
  units "$logs/list" | grep -v /ExclusiveTests/ | long_first | run_units "$jobs" || status=1
  step "Testing what needs the machine for itself"
  units "$logs/list" | grep /ExclusiveTests/ | run_units 1 || status=1
  print_times
  # Again, since hundreds of lines may follow a failure.
  ((status == 0)) || cat "$logs/failed" >&2
  print_sum "$status" "$(elapsed "$begin")"
  return "$status"
}
