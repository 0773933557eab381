# bash completion for bundlefs                                                              -*- shell-script -*-
# shellcheck shell=bash

# One word per line: KIND|NAME|VALUES|MEANING.
_bundlefs_words='@WORDS@'

# _bundlefs_list KIND FIELD [PATTERN]: prints a field of the lines of a kind whose names match.
_bundlefs_list() {
  local kind name values meaning fields
  while IFS='|' read -r kind name values meaning; do
    # shellcheck disable=SC2053 # It is a pattern.
    [[ $kind == "$1" && $name == ${3-*} ]] || continue
    fields=("$kind" "$name" "$values" "$meaning")
    printf '%s\n' "${fields[$2]}"
  done <<<"$_bundlefs_words"
}

# Prints the mount points of bundles; mountinfo escapes characters as \040.
_bundlefs_mounts() {
  local fields type
  while read -ra fields; do
    type=${fields[*]}
    type=${type#* - }
    [[ ${type%% *} != fuse.bundlefs ]] || printf '%b\n' "${fields[4]//\\/\\0}"
  done </proc/self/mountinfo
}

# Prints the names of a mount's routes; times out on a mount that hangs.
_bundlefs_names() {
  local control
  control=$(timeout 1 bundlefs status "$1" --json 2>/dev/null | grep -o '"control":"[^"\\]*"' | head -n 1) || return 0
  control=${control#*:\"}
  timeout 1 sed -n 's/^route \([^ ]*\) .*/\1/p' "$1/${control%\"}" 2>/dev/null | sort -u
}

# Offers the last components of the paths of a mount's layers, but not those of the role $1.
_bundlefs_layers() {
  compopt -o filenames
  _bundlefs_offer < <(timeout 1 bundlefs layers "${operands[0]//\\/}" --json 2>/dev/null |
    grep -v "\"role\":\"$1\"" | sed -n 's|.*"path":"[^"\\]*/\([^"\\/]*\)".*|\1|p')
}

# Prints the names of the saved profiles.
_bundlefs_profiles() {
  command ls "${XDG_CONFIG_HOME:-$HOME/.config}/bundlefs/profiles" 2>/dev/null
}

# Completes the operands of layers after its mount point.
_bundlefs_layers_operands() {
  case ${operands[1]-} in
    '') _bundlefs_offer < <(printf '%s\n' set add remove move save load profiles) ;;
    save | load) ((${#operands[@]} > 2)) || _bundlefs_offer < <(_bundlefs_profiles) ;;
    profiles) ;;
    remove) _bundlefs_layers MAIN ;;
    move) ((${#operands[@]} > 2)) || _bundlefs_layers MAIN ;;
    *) compopt -o default ;;
  esac
}

# Offers the lines that begin with the current word, or files if there is none.
_bundlefs_offer() {
  local candidate
  while IFS= read -r candidate; do
    [[ -z $candidate || $candidate != "${current//\\/}"* ]] || COMPREPLY+=("$candidate")
  done
  ((${#COMPREPLY[@]})) || compopt -o default
}

# Completes the options after -o, separated by commas, and their values.
_bundlefs_options() {
  local option=${current##*,} before name candidate candidates
  before=${current%"$option"}
  if [[ $option == *=* ]]; then
    name=${option%%=*}=
    candidates=$(_bundlefs_list option 2 "$name")
    case $candidates in
      layers | file)
        compopt -o default
        return
        ;;
      text | '') return ;;
      profile) candidates=$(_bundlefs_profiles) ;;
    esac
    # shellcheck disable=SC2086 # Split into words.
    candidates=$(printf "$name%s\n" $candidates)
  else
    compopt -o nospace
    candidates=$(_bundlefs_list option 1)
  fi
  while IFS= read -r candidate; do
    [[ $candidate != "$option"* ]] || COMPREPLY+=("$before$candidate")
  done <<<"$candidates"
  # bash replaces only the part after the last = or :.
  before=${current%"${current##*[=:]}"}
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
}

# Sets operands to the words before the cursor that are neither flags nor values of flags.
_bundlefs_operands() {
  local index=1 word
  operands=()
  while ((index < cursor)); do
    word=${line[index]}
    case $word in
      -o | --at | --since | --timeout | --port | --exec | --type | --localization | --above | --below | --before | --to | --html)
        index=$((index + 1))
        ;;
      --count) [[ ${line[1]} != listen ]] || index=$((index + 1)) ;;
      -*) ;;
      *) operands+=("$word") ;;
    esac
    index=$((index + 1))
  done
}

_bundlefs() {
  local current previous line cursor operands command=mount kinds=(main folder) kind
  _get_comp_words_by_ref -n =: -c current -p previous -w line -i cursor
  _bundlefs_operands
  # `mount` itself is no subcommand.
  if ((${#operands[@]})) && kind=$(_bundlefs_list command 2 "${operands[0]}") && [[ -n $kind ]]; then
    command=${operands[0]}
    operands=("${operands[@]:1}")
    read -ra kinds <<<"$kind"
  fi
  # The last kind of operand may be repeated.
  kind=${kinds[${#operands[@]}]-${kinds[-1]}}
  case $previous in
    -o) kind=options ;;
    --since | --timeout | --port | --exec | --type | --localization) kind=none ;;
    --count) [[ $command != listen ]] || kind=none ;;
    --above | --below | --to) kind=layer ;;
    --before) kind=names ;;
    --at)
      kind=folder
      [[ $command != layers ]] || kind=none
      ;;
    --html) kind="file" ;;
  esac
  [[ $current != -* ]] || kind=flags

  case $kind in
    none) ;;
    options) _bundlefs_options ;;
    flags) _bundlefs_offer < <(_bundlefs_list flag 1 "$command *" | sed 's/.* //') ;;
    main)
      compopt -o filenames
      _bundlefs_offer < <(_bundlefs_list command 1 && compgen -f -- "$current")
      ;;
    mount)
      compopt -o filenames
      _bundlefs_offer < <(_bundlefs_mounts)
      ;;
    program) _bundlefs_offer < <(compgen -c -- "$current") ;;
    names) _bundlefs_offer < <(_bundlefs_names "${operands[0]//\\/}") ;;
    layer) _bundlefs_layers none ;;
    layers) _bundlefs_layers_operands ;;
    *) compopt -o default ;;
  esac
}

complete -F _bundlefs bundlefs
