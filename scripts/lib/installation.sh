# shellcheck shell=bash
# What an installation consists of, where it goes, and how it gets there: for scripts/install and scripts/package.
# Sourced after common.sh, never run.
# shellcheck disable=SC2154 # $project is from common.sh, $binary from who sources this.

# Where the systemd of a prefix looks for units of the system; those of users it finds below share.
unit_folder() {
  printf '%s/lib/systemd/system' "$1"
}

# Where mount(8) looks for its helpers: in /sbin and nowhere else. An installation of one user's own cannot write there.
helper_folder() {
  case $1 in
    /usr | /usr/local) if [[ /sbin -ef /usr/sbin ]]; then printf /usr/sbin; else printf /sbin; fi ;;
    *) printf '%s/sbin' "$1" ;;
  esac
}

# Debian's own zsh packages do not use the folder that zsh itself names.
zsh_folder() {
  if [[ $1 == /usr ]]; then printf /usr/share/zsh/vendor-completions; else printf '%s/share/zsh/site-functions' "$1"; fi
}

# Prints what an installation below a prefix consists of, a line each: HOW SOURCE PATH. The source is below
# scripts/share, or what a link leads to.
installation() {
  local prefix=$1 share=$1/share units helpers link
  units=$(unit_folder "$prefix")
  helpers=$(helper_folder "$prefix")
  printf '%s\t%s\t%s\n' \
    program bundlefs "$prefix/bin/bundlefs" \
    page man/bundlefs.8 "$share/man/man8/bundlefs.8.gz" \
    page man/bundlefs-routes.5 "$share/man/man5/bundlefs-routes.5.gz" \
    words completions/bundlefs.bash "$share/bash-completion/completions/bundlefs" \
    words completions/bundlefs.fish "$share/fish/vendor_completions.d/bundlefs.fish" \
    words completions/_bundlefs "$(zsh_folder "$prefix")/_bundlefs" \
    file bundlefs-open.desktop "$share/applications/bundlefs-open.desktop" \
    unit systemd/bundlefs@.service "$units/bundlefs@.service" \
    unit systemd/bundlefs@.service "$share/systemd/user/bundlefs@.service" \
    file systemd/srv-app.mount "$share/doc/bundlefs/examples/srv-app.mount" \
    file systemd/srv-app.automount "$share/doc/bundlefs/examples/srv-app.automount"
  for link in mount.bundlefs mount.fuse.bundlefs; do
    printf '%s\t%s\t%s\n' link "$prefix/bin/bundlefs" "$helpers/$link" \
      link "$share/man/man8/bundlefs.8.gz" "$share/man/man8/$link.8.gz"
  done
}

# A completion with the table that all of them share.
with_words() {
  awk -v words="$(<"$project/scripts/share/completions/words")" \
    '{ place = index($0, "@WORDS@"); if (place) $0 = substr($0, 1, place - 1) words substr($0, place + 7); print }' "$1"
}

# place HOW SOURCE TARGET PATH PREFIX: puts one thing in place. PATH is what it will be called, TARGET where it is put.
place() {
  local how=$1 source=$project/scripts/share/$2 target=$3 path=$4 prefix=$5
  case $how in
    program)
      strip --strip-unneeded -o "$target" "$binary"
      chmod 755 "$target"
      return
      ;;
    link)
      ln -s "$(realpath -ms --relative-to="${path%/*}" "$2")" "$target"
      return
      ;;
    page) gzip -9nc "$source" >"$target" ;;
    words) with_words "$source" >"$target" ;;
    unit) sed "s|@PREFIX@|$prefix|g" "$source" >"$target" ;;
    file) cp "$source" "$target" ;;
  esac
  chmod 644 "$target"
}

# Makes a folder and those above it that are missing, and prints the names of these, the outermost first.
make_folders() {
  local folder=$1 missing=()
  while [[ ! -d $folder ]]; do
    missing=("$folder" "${missing[@]}")
    folder=${folder%/*}
  done
  for folder in "${missing[@]}"; do
    mkdir -m 755 -- "$folder"
    printf '%s\n' "$folder"
  done
}

# install_all ROOT PREFIX: puts all in place below ROOT, which is empty for the system itself, and prints what was
# made, folders too, without ROOT, in the order in which it was made.
install_all() {
  local root=$1 prefix=$2 how source path
  while IFS=$'\t' read -r how source path; do
    make_folders "$root${path%/*}" | while IFS= read -r folder; do printf '%s\n' "${folder#"$root"}"; done
    printf '%s\n' "$path"
    place "$how" "$source" "$root$path" "$path" "$prefix"
  done < <(installation "$prefix")
}
