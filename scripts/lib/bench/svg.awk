# The tables of what scripts/bench found, as an SVG. It brings its own background, in a light and in a dark version, so
# that it can be read wherever a page shows it.

function escaped(text) {
  gsub(/&/, "\\&amp;", text)
  gsub(/</, "\\&lt;", text)
  return text
}

function text_at(x, y, class, text) {
  body = body sprintf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escaped(text))
}

function line_at(y) {
  body = body sprintf("<path class=\"line\" d=\"M%d %d.5H%d\"/>\n", margin, y, width - margin)
}

function unit_of(part, item) {
  return unit[part, item] == "us" ? "µs" : unit[part, item]
}

function name_class(name) {
  return name ~ /^bundlefs/ ? "own" : name == baseline("") ? "base" : "name"
}

function name_of(name) {
  sub(/-xattr-off$/, ", xattr=off", name)
  sub(/-passthrough$/, ", passthrough", name)
  sub(/-tuned$/, ", tuned", name)
  sub(/-zip$/, "", name)
  return name == "overlayfs" ? "kernel overlayfs" : name == "fuse-" ? "fuse-zip" : name
}

# A table of one part; columns are aligned at their right ends.
function draw(part,    p, i, x, name) {
  if (!peers[part]) return
  height += 44
  text_at(margin, height, "title", heading[part])
  text_at(width - margin, height, "note", note_of(part))
  height += 26
  for (i = 1; i <= items[part]; i++) text_at(column(i), height, "head", title[part, item[part, i]] ", " \
    unit_of(part, item[part, i]))
  height += 8
  line_at(height)
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    height += 21
    text_at(margin, height, name_class(name), name == "fuse-zip" ? name : name_of(name))
    for (i = 1; i <= items[part]; i++) cell(part, name, item[part, i], column(i))
  }
}

function column(i) {
  return margin + 160 + i * 133
}

function cell(part, name, item, x,    class) {
  if (!is_known(part, name, item)) return
  class = name ~ /^bundlefs/ ? "own figure" : "figure"
  text_at(x - 46, height, class, shown(part, name, item))
  if (part != "daemon") text_at(x, height, class " ratio", shown_ratio(part, name, item) == "-" ? "" : \
    shown_ratio(part, name, item) "×")
}

function note_of(part) {
  return part == "first" || part == "daemon" ? files " files, mount fresh, layers cached" : part == "large" ? \
    large " MiB" : part == "shapes" ? wide " names in the wide folder" : part == "warm" || part == "programs" ? \
    files " files" : ""
}

# Memory has no rounds, and no ratio.
function draw_memory(    p, name) {
  if (!peers["memory"]) return
  height += 44
  text_at(margin, height, "title", "The daemon's memory, and its delay in showing a change in a layer")
  height += 26
  text_at(column(1), height, "head", "bytes a file")
  text_at(column(2), height, "head", "of a million")
  text_at(column(3), height, "head", "delay p50, ms")
  text_at(column(4), height, "head", "delay p99, ms")
  height += 8
  line_at(height)
  for (p = 1; p <= peers["memory"]; p++) {
    name = peer["memory", p]
    height += 21
    text_at(margin, height, name_class(name), name_of(name))
    memory_cell(column(1), name, sprintf("%.0f", bytes_per_file("memory", name)))
    if (is_known("million", name, "after")) memory_cell(column(2), name, sprintf("%.0f", bytes_per_file("million", name)))
    if (("delay", name) in has) {
      memory_cell(column(3), name, delay_of(name, 0.5))
      memory_cell(column(4), name, delay_of(name, 0.99))
    }
  }
}

function memory_cell(x, name, text) {
  text_at(x - 46, height, name ~ /^bundlefs/ ? "own figure" : "figure", text)
}

# The slowest kind of change counts.
function delay_of(name, fraction,    i, value, worst) {
  worst = 0
  for (i = 1; i <= items["delay"]; i++) {
    value = percentile("delay", name, item["delay", i], fraction)
    if (value > worst) worst = value
  }
  return worst >= 1e12 ? "never" : sprintf(worst < 10000 ? "%.2f" : "%.0f", worst / 1000)
}

function style() {
  return "svg{--paper:#fff;--ink:#1f2328;--soft:#656d76;--line:#d0d7de;--own:#0550ae}\n" \
    "@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--own:#79c0ff}}\n" \
    "rect{fill:var(--paper)}\n.line{stroke:var(--line)}\n" \
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink);font-variant-numeric:tabular-nums}\n" \
    ".title{font-weight:600;font-size:15px}\n.head,.note,.ratio{fill:var(--soft);font-size:12px}\n" \
    ".head,.figure,.note{text-anchor:end}\n.own{fill:var(--own);font-weight:600}\n"
}

END {
  width = 1000
  margin = 20
  height = 6
  for (p = 1; p <= parts; p++) draw(order[p])
  draw_memory()
  height += 40
  text_at(margin, height, "ratio", "Medians of interleaved rounds; × is the time beside kernel overlayfs's (of the " \
    "archive beside the plain folder's). bindfs shows one layer only.")
  height += 19
  text_at(margin, height, "ratio", substr(date, 1, 10) ", " version ", " kernel ", " cores " processors")
  height += 18
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" " \
    "aria-label=\"bundlefs beside other union file systems\">\n<style>\n%s</style>\n", width, height, width, height, style()
  printf "<rect width=\"%d\" height=\"%d\" rx=\"8\"/>\n%s</svg>\n", width, height, body
}
