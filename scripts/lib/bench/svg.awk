# Draws the results of scripts/bench as an SVG, with its own background in a light and a dark version.

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
  return name ~ /^bundlefs/ ? "own" : "name"
}

function name_of(name) {
  sub(/-xattr-off$/, ", xattr=off", name)
  sub(/-passthrough$/, ", passthrough", name)
  sub(/-tuned$/, ", tuned", name)
  return name == "overlayfs" ? "kernel overlayfs" : name == "bundlefs-zip" ? "bundlefs" : name
}

# Draws the table of a part; columns are right-aligned.
function draw(part,    p, i, name) {
  if (!peers[part]) return
  height += 44
  text_at(margin, height, "title", heading[part])
  text_at(width - margin, height, "note", note_of(part))
  height += 26
  for (i = 1; i <= items[part]; i++) heading_at(i, title[part, item[part, i]], unit_of(part, item[part, i]))
  height += 24
  line_at(height)
  for (p = 1; p <= peers[part]; p++) {
    name = peer[part, p]
    height += 21
    text_at(margin, height, name_class(name), name_of(name))
    for (i = 1; i <= items[part]; i++) cell(part, name, item[part, i], column(i))
  }
}

function column(i) {
  return margin + 138 + i * 137
}

# Draws a column's heading and unit.
function heading_at(i, name, unit) {
  text_at(column(i), height, "head", name)
  text_at(column(i) - ratio_width, height + 16, "head", unit)
}

function cell(part, name, item, x,    value) {
  if (!is_known(part, name, item)) return
  plain_cell(x, name, shown(part, name, item))
  value = ratio(part, name, item)
  if (value != "") text_at(x, height, name_class(name) " figure ratio", "×" sprintf(value < 10 ? "%.2f" : value < 100 \
    ? "%.1f" : "%.0f", value))
}

function plain_cell(x, name, text) {
  text_at(x - ratio_width, height, name_class(name) " figure", text)
}

function note_of(part) {
  return part == "first" || part == "daemon" ? files " files, mount fresh, layers cached" : part == "large" ? \
    large " MiB" : part == "shapes" ? wide " names in the wide directory" : part == "warm" || part == "programs" ? \
    files " files" : part == "zip" ? "× relative to the plain directory" : ""
}

# Draws the table of the daemon's figures, from several parts.
function draw_daemon(    p, list, number, name) {
  for (p = 1; p <= peers["start"]; p++) list[++number] = peer["start", p]
  if (!number) for (p = 1; p <= peers["memory"]; p++) list[++number] = peer["memory", p]
  if (!number) return
  height += 44
  text_at(margin, height, "title", "Start, memory, and the delay until a change in a layer is visible")
  height += 26
  heading_at(1, "first reply", "ms")
  heading_at(2, "memory per file", "bytes")
  heading_at(3, "of a million", "bytes")
  heading_at(4, "delay, p50", "ms")
  heading_at(5, "delay, p99", "ms")
  height += 24
  line_at(height)
  for (p = 1; p <= number; p++) daemon_row(list[p])
}

function daemon_row(name) {
  height += 21
  text_at(margin, height, name_class(name), name_of(name))
  cell("start", name, "start", column(1))
  if (is_known("memory", name, "after")) plain_cell(column(2), name, sprintf("%.0f", bytes_per_file("memory", name)))
  if (is_known("million", name, "after")) plain_cell(column(3), name, sprintf("%.0f", bytes_per_file("million", name)))
  if (!(("delay", name) in has)) return
  plain_cell(column(4), name, delay_of(name, 0.5))
  plain_cell(column(5), name, delay_of(name, 0.99))
}

# The delay of the slowest kind of change.
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
    "@media (prefers-color-scheme:dark){\n" \
    "svg{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--own:#79c0ff}}\n" \
    "rect{fill:var(--paper)}\n.line{stroke:var(--line)}\n" \
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}\n" \
    ".figure{font-variant-numeric:tabular-nums}\n" \
    ".title{font-weight:600;font-size:15px}\n.head,.note,.ratio{fill:var(--soft);font-size:12px}\n" \
    ".head,.figure,.note{text-anchor:end}\n.own{fill:var(--own);font-weight:600}\n"
}

END {
  width = 1000
  margin = 20
  ratio_width = 54
  height = 6
  for (p = 1; p <= parts; p++) if (order[p] != "start") draw(order[p])
  draw_daemon()
  height += 40
  text_at(margin, height, "ratio", "Medians of " rounds " rounds for warm accesses and start, else of " \
    int((rounds + 1) / 2) ", taking turns; × is the time relative to kernel overlayfs. A delay is that of the slowest kind of " \
    "change.")
  height += 19
  text_at(margin, height, "ratio", substr(date, 1, 10) ", " version ", " kernel ", " cores \
    " processors" (machine_load > cores / 2 ? ", busy with other work (load " machine_load ")" : ""))
  height += 18
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" " \
    "aria-label=\"bundlefs beside other union file systems\">\n", width, height, width, height
  printf "<style>\n%s</style>\n", style()
  printf "<rect width=\"%d\" height=\"%d\" rx=\"8\"/>\n%s</svg>\n", width, height, body
}
