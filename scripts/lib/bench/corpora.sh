# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # The files of the benchmark share variables.
# Makes the layers to measure, each when it is first needed, in a directory with main and substitution. Sourced by
# scripts/bench.

# Whether the corpus must be made; marks it as made.
must_make() {
  [[ ! -e made-$1 ]] || return 1
  : >"made-$1"
}

# Copies a tree of small files to ./main and every twentieth of its files to ./substitution, and lists the paths.
make_tree() {
  must_make tree || return 0
  step "Copying a tree of $files small files"
  (cd / && find usr/include usr/share -xdev -type f -size -64k -readable -print0) | sort -z >all
  copy_files .
  (cd main && find . -mindepth 1 -type d -printf '%P\0' | sort -z) >folders
  sed -z 's/$/~/' files >missing
  file_count=$(tr -dc '\0' <files | wc -c)
  entry_count=$((file_count + $(tr -dc '\0' <folders | wc -c)))
  ((file_count >= files)) || step "There are only $file_count small files below /usr/include and /usr/share"
}

# Copies a tree with files of all sizes, in the order of its directories, in the same way to ./real.
make_real() {
  must_make real || return 0
  step "Copying a real tree of up to $files files"
  mkdir real
  local folder folders=()
  for folder in usr/include usr/share/icons usr/lib/python3 usr/share/perl usr/share/perl5; do
    [[ ! -d /$folder ]] || folders+=("$folder")
  done
  (cd / && find "${folders[@]}" -xdev -type f -readable -print0) >real/all
  copy_files real
}

# Copies the first of the files that ./all lists to FOLDER/main, and every twentieth to FOLDER/substitution.
copy_files() {
  (
    cd "$1" || exit
    mkdir main substitution
    head -z -n "$files" all >chosen
    tar -C / --null --verbatim-files-from -T chosen -cf - | tar -C main --no-same-owner -xf -
    (cd main && find . -type f -printf '%P\0' | sort -z) >files
    sed -zn '0~20p' files >overridden
    tar -C main --null --verbatim-files-from -T overridden -cf - | tar -C substitution --no-same-owner -xf -
    chmod -R u+rwX substitution
    local file
    while IFS= read -r -d '' file; do
      # Compilers ignore it.
      printf '\n// overridden\n' >>"substitution/$file"
    done <overridden
  )
}

# Writes one large file in the lower layer.
make_large() {
  must_make large || return 0
  step "Writing a file of $large MiB"
  mkdir -p large/main large/substitution
  measure largefile large/main/large "$large"
}

# Makes twenty chains of sixty directories, a file in each; every other chain is in both layers.
make_deep() {
  must_make deep || return 0
  local chain path
  for ((chain = 0; chain < 20; chain++)); do
    printf -v path '/level%02d' {1..60}
    mkdir -p "deep/main/chain$chain$path"
    ((chain % 2)) || mkdir -p "deep/substitution/chain$chain$path"
  done
  find deep/main deep/substitution -type d -exec touch {}/leaf \;
  (cd deep/main && find . -type f -printf '%P\0') >deep/files
}

# Makes one directory of many names, a tenth of them in both layers.
make_wide() {
  must_make wide || return 0
  step "Making a directory of $wide names"
  mkdir -p wide/main wide/substitution
  measure files wide/main 1 "$wide"
  measure files wide/substitution 1 $(((wide + 9) / 10))
  printf 'd00000\0' >wide/folders
}

# Makes a zip archive of a part of the tree, and a copy of that part; nothing if zip is not installed.
make_zip() {
  must_make zip || return 0
  make_tree
  have zip || return 0
  step "Making a zip archive"
  mkdir -p zip/main
  head -z -n "$((file_count < 5000 ? file_count : 5000))" files >zip/files
  tar -C main --null --verbatim-files-from -T zip/files -cf - | tar -C zip/main -xf -
  (cd zip/main && zip -q -r -y ../archive.zip .)
}

# Makes a million empty files in four thousand directories.
make_million() {
  must_make million || return 0
  step "Making a million files"
  mkdir -p million/main million/substitution
  measure files million/main 4000 1000000
  measure files million/substitution 1 250
}
