# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # What is set here is used elsewhere in the benchmark, and the other way round.
# What is mounted: layers of several shapes, each made when it is first needed, in a folder of its own with main
# and substitution. Sourced by scripts/bench.

# Whether it is the first time that this corpus is asked for.
is_new() {
  [[ ! -e made-$1 ]] || return 1
  : >"made-$1"
}

# A real tree, below ./main, of which every twentieth file is in ./substitution, too; and its paths.
make_tree() {
  is_new tree || return 0
  step "Copying a tree of $files small files"
  mkdir main substitution
  (cd / && find usr/include usr/share -xdev -type f -size -64k -readable -print0) | sort -z >all
  head -z -n "$files" all >chosen
  tar -C / --null --verbatim-files-from -T chosen -cf - | tar -C main --no-same-owner -xf -
  (cd main && find . -type f -printf '%P\0' | sort -z) >files
  (cd main && find . -mindepth 1 -type d -printf '%P\0' | sort -z) >folders
  sed -z 's/$/~/' files >missing
  sed -zn '0~20p' files >overridden
  tar -C main --null --verbatim-files-from -T overridden -cf - | tar -C substitution --no-same-owner -xf -
  chmod -R u+rwX substitution
  local file
  while IFS= read -r -d '' file; do
    # A compiler passes over it.
    printf '\n// overridden\n' >>"substitution/$file"
  done <overridden
  file_count=$(tr -dc '\0' <files | wc -c)
  entry_count=$((file_count + $(tr -dc '\0' <folders | wc -c)))
  ((file_count >= files)) || step "There are only $file_count small files below /usr/include and /usr/share"
}

# One large file, in the lower layer.
make_large() {
  is_new large || return 0
  step "Writing a file of $large MiB"
  mkdir -p large/main large/substitution
  measure largefile large/main/large "$large"
}

# Twenty chains of sixty folders, a file in each folder; every other chain is in both layers.
make_deep() {
  is_new deep || return 0
  local chain path
  for ((chain = 0; chain < 20; chain++)); do
    printf -v path '/level%02d' {1..60}
    mkdir -p "deep/main/chain$chain$path"
    ((chain % 2)) || mkdir -p "deep/substitution/chain$chain$path"
  done
  find deep/main deep/substitution -type d -exec touch {}/leaf \;
  (cd deep/main && find . -type f -printf '%P\0') >deep/files
}

# One folder of many names; a tenth of them are in both layers.
make_wide() {
  is_new wide || return 0
  step "Making a folder of $wide names"
  mkdir -p wide/main wide/substitution
  measure files wide/main 1 "$wide"
  measure files wide/substitution 1 $(((wide + 9) / 10))
  printf 'd00000\0' >wide/folders
}

# A zip archive of a part of the tree, and that part; nothing if there is no zip.
make_zip() {
  is_new zip || return 0
  make_tree
  have zip || return 0
  step "Making a zip archive"
  mkdir -p zip/main
  head -z -n "$((file_count < 5000 ? file_count : 5000))" files >zip/files
  tar -C main --null --verbatim-files-from -T zip/files -cf - | tar -C zip/main -xf -
  (cd zip/main && zip -q -r -y ../archive.zip .)
}

# A million empty files in four thousand folders.
make_million() {
  is_new million || return 0
  step "Making a million files"
  mkdir -p million/main million/substitution
  measure files million/main 4000 1000000
  measure files million/substitution 1 250
}
