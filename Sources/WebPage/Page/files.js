// The merged tree as a list, with its filters.

import { announce, byId, count, debounced, digits, el, fileExtension, icon, lastName, shown } from "./dom.js";
import { badge } from "./layers.js";
import { Filter, VERDICTS } from "./tree.js";
import { VirtualList } from "./virtual.js";

const FLASH = 1800;
/// The layers that a merged folder shows.
const BADGES = 4;
const LABELS = { all: "All", overridden: "Overridden", added: "Added", hidden: "Hidden", conflict: "In conflict" };
const MARKS = { overridden: "overrides", added: "adds", hidden: "hidden", collision: "collides", merged: "merged" };
const ICONS = [
  ["image", /^(png|jpe?g|gif|webp|svg|avif|bmp|ico|icns|heic|tiff?)$/], ["sound", /^(mp3|m4a|aac|wav|ogg|opus|flac|aiff?|caf|mp4|mov|webm|m4v)$/],
  ["font", /^(ttf|otf|ttc|woff2?)$/], ["archive", /^(zip|tar|gz|bz2|xz|7z|rar|car|ipa|apk)$/],
  ["text", /^(txt|md|json|xml|plist|strings|stringsdict|xcstrings|html?|css|js|swift|c|h|m|py|sh|lua|ya?ml|ini|toml|csv)$/],
];

export class FilesView {
  #shown = [];
  #active = -1;
  #flashes = new Map();

  constructor(app) {
    Object.assign(this, { app, list: byId("files-list"), filter: new Filter() });
    const narrow = matchMedia("(pointer: coarse)");
    this.rows = new VirtualList(this.list, {
      rowHeight: () => narrow.matches ? 40 : 28, make: () => this.#make(), fill: (row, index) => this.#fill(row, index),
    });
    this.#makeFilters();
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => this.#click(event));
    for (const name of ["dragover", "dragleave", "drop"]) {
      this.list.addEventListener(name, (event) => this.#dropped(event));
    }
    byId("fold-all").addEventListener("click", () => this.#foldAll());
    this.selectSoon = debounced(120, (path) => app.select(path));
    app.on("mount", () => { this.#active = -1; this.#flashes.clear(); this.list.scrollTop = 0; this.update(); });
    app.on("tree", () => this.update());
    app.on("layers", () => this.#fillLayers());
    app.on("changed", (changes) => this.#flash(changes));
    app.on("selected", () => this.rows.refresh());
    app.on("view", () => this.rows.refresh());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.matches("input:not([type=radio]), textarea, select") || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      byId("files-search").focus();
    });
  }

  #makeFilters() {
    byId("files-verdict").append(...["all", ...VERDICTS].map((verdict) => el("label", { class: `chip is-${verdict}` },
      el("input", { type: "radio", name: "verdict", value: verdict, checked: verdict === "all" }),
      el("span", {}, LABELS[verdict]), el("b", { "data-count": verdict }))));
    byId("files-verdict").addEventListener("change", (event) => this.#limit({ verdict: event.target.value }));
    byId("files-layer").addEventListener("change", (event) => this.#limit({ layer: event.target.value || null }));
    const search = byId("files-search");
    search.addEventListener("input", () => { this.filter.setText(search.value); this.#limit({}); });
    search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); this.list.focus(); }
    });
  }

  #limit(change) {
    Object.assign(this.filter, change);
    this.app.tree?.closedInFilter.clear();
    this.list.scrollTop = 0;
    this.update();
    this.#say();
  }

  #fillLayers() {
    const select = byId("files-layer");
    const options = this.app.stack.active.map((row) => el("option", { value: row.path }, shown(row.name)));
    select.replaceChildren(el("option", { value: "" }, "All layers"), ...options);
    this.rows.refresh();
    select.value = this.filter.layer ?? "";
    if (select.selectedIndex < 0) { select.value = ""; this.filter.layer = null; this.update(); }
  }

  /// Shows the tree as it is now.
  update() {
    const { tree } = this.app;
    const path = this.#shown[this.#active] === undefined ? null : this.activePath;
    this.#shown = tree?.visible(this.filter) ?? [];
    const at = path === null || tree === null ? -1 : this.#shown.indexOf(tree.indexOf(path));
    this.#setActive(at >= 0 ? at : Math.min(this.#active, this.#shown.length - 1));
    this.rows.setLength(this.#shown.length);
    this.#describe();
  }

  #describe() {
    const { tree } = this.app;
    const counts = tree?.counts ?? {};
    for (const part of document.querySelectorAll("[data-count]")) {
      part.textContent = counts[part.dataset.count] === undefined ? "" : digits(counts[part.dataset.count]);
    }
    const total = count(counts.all ?? 0, "entry", "entries");
    byId("files-count").textContent = tree === null || !tree.isComplete ? `${total} so far…` : total;
    const empty = byId("files-empty");
    empty.hidden = this.#shown.length > 0 || !tree?.isComplete;
    empty.textContent = counts.all === 0 ? "The mount is empty." : "No entry fits these filters.";
  }

  #say = debounced(700, () => announce(count(this.#shown.length, "entry is shown", "entries are shown")));

  entryAt(index) { return this.app.tree?.entries[this.#shown[index]]; }

  #make() {
    const [name, mark, fold] = [el("span", { class: "entry-name" }), el("span", { class: "entry-mark" }),
      el("span", { class: "entry-fold" }, icon("chevron"))];
    const [kind, layer] = [el("span", { class: "entry-kind" }), el("span", { class: "entry-layer" })];
    const row = el("div", { role: "treeitem", class: "entry" }, fold, kind, name, mark, layer);
    row.parts = { name, mark, fold, kind, layer };
    return row;
  }

  #fill(row, index) {
    const at = this.#shown[index];
    const { tree, stack, selected } = this.app;
    const entry = tree.entries[at];
    const winner = entry.layer === null ? undefined : stack.named(entry.layer);
    const isOpen = entry.isFolder && this.#isOpen(entry, at);
    const flashed = performance.now() - (this.#flashes.get(entry.path) ?? -FLASH) < FLASH;
    row.id = `entry-${index}`;
    row.index = index;
    row.title = shown(entry.path);
    row.className = `entry is-${entry.verdict} colour-${winner?.colour ?? "none"}`;
    row.classList.toggle("is-selected", entry.path === selected);
    row.classList.toggle("is-active", index === this.#active);
    row.classList.toggle("is-open", isOpen);
    row.classList.toggle("is-folder", entry.isFolder);
    row.classList.toggle("is-flashing", flashed);
    row.style.setProperty("--depth", entry.depth);
    row.setAttribute("aria-level", entry.depth + 1);
    row.setAttribute("aria-selected", String(entry.path === selected));
    if (entry.isFolder) row.setAttribute("aria-expanded", String(isOpen));
    else row.removeAttribute("aria-expanded");
    const mark = entry.isConflict && !entry.isFolder && entry.verdict !== "hidden" ? `${MARKS[entry.verdict]} · ${entry.layers.length} versions`
      : MARKS[entry.verdict] ?? (entry.isFolder && !isOpen ? changes(tree.changedBeneath(at)) : "");
    row.setAttribute("aria-label", describe(entry, winner, mark));
    row.parts.name.textContent = shown(entry.name);
    row.parts.mark.textContent = mark;
    const kind = iconOf(entry);
    if (row.parts.kind.dataset.kind !== kind) {
      row.parts.kind.dataset.kind = kind;
      row.parts.kind.replaceChildren(icon(kind));
    }
    const layers = shownLayers(entry);
    const badges = layers.map((path) => stack.named(path)?.badge).join();
    const key = `${layers.join("\n")}\n${badges}\n${entry.layers.length}`;
    if (row.layerKey === key) return;
    row.layerKey = key;
    row.parts.layer.replaceChildren(...winners(entry, layers, stack));
  }

  #isOpen(entry, at) {
    const { tree } = this.app;
    return tree.hasChildren(at) && !(this.filter.isEmpty ? tree.closed : tree.closedInFilter).has(entry.path);
  }

  get activePath() { return this.entryAt(this.#active)?.path ?? null; }

  #setActive(index) {
    this.#active = index;
    if (index < 0) this.list.removeAttribute("aria-activedescendant");
    else this.list.setAttribute("aria-activedescendant", `entry-${index}`);
    this.rows.refresh();
  }

  #go(index) {
    if (this.#shown.length === 0) return;
    this.#setActive(Math.max(0, Math.min(index, this.#shown.length - 1)));
    this.rows.reveal(this.#active);
    this.selectSoon(this.activePath);
  }

  #key(event) {
    const { tree } = this.app;
    if (event.ctrlKey || event.metaKey || event.altKey || tree === null) return;
    const [active, entry] = [this.#active, this.entryAt(this.#active)];
    const page = this.rows.pageSize ?? 10;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      this.#go(active + steps[event.key]);
    } else if (entry && event.key === "ArrowRight") {
      if (!entry.isFolder) return;
      if (this.#isOpen(entry, this.#shown[active])) this.#go(active + 1);
      else this.#fold(entry, false);
    } else if (entry && event.key === "ArrowLeft") {
      if (entry.isFolder && this.#isOpen(entry, this.#shown[active])) this.#fold(entry, true);
      else this.#goToParent(active, entry);
    } else if (entry && (event.key === "Enter" || event.key === " ")) {
      this.#open(entry);
    } else {
      return;
    }
    event.preventDefault();
  }

  #goToParent(active, entry) {
    let index = active;
    while (index > 0 && this.entryAt(index).depth >= entry.depth) index -= 1;
    if (this.entryAt(index).depth < entry.depth) this.#go(index);
  }

  #fold(entry, isClosed) {
    const { tree } = this.app;
    const closed = this.filter.isEmpty ? tree.closed : tree.closedInFilter;
    if (isClosed) closed.add(entry.path);
    else closed.delete(entry.path);
    this.update();
    byId("fold-all").textContent = closed.size > 0 ? "Expand all" : "Collapse all";
  }

  #foldAll() {
    const { tree } = this.app;
    if (tree === null) return;
    const closed = this.filter.isEmpty ? tree.closed : tree.closedInFilter;
    const isOpening = closed.size > 0;
    closed.clear();
    if (!isOpening) for (const entry of tree.entries) if (entry.isFolder) closed.add(entry.path);
    byId("fold-all").textContent = isOpening ? "Collapse all" : "Expand all";
    this.list.scrollTop = 0;
    this.update();
  }

  #click(event) {
    const row = event.target.closest(".entry");
    if (!row) return;
    const entry = this.entryAt(row.index);
    this.#setActive(row.index);
    if (event.target.closest(".entry-fold") && entry.isFolder) this.#fold(entry, this.#isOpen(entry, this.#shown[row.index]));
    else this.#open(entry);
  }

  #open(entry) {
    this.app.select(entry.path);
    if (matchMedia("(max-width: 900px)").matches) this.app.show("file");
  }

  /// Files dropped on a file replace it; on a folder they are added to it.
  #dropped(event) {
    event.preventDefault();
    const row = event.target.closest?.(".entry");
    this.target?.classList.remove("is-target");
    this.target = event.type === "dragover" ? row ?? this.list : null;
    this.target?.classList.add("is-target");
    if (event.type !== "drop") return;
    const files = [...event.dataTransfer.files];
    const entry = row && this.entryAt(row.index);
    if (files.length === 0) return;
    if (entry && !entry.isFolder && files.length === 1) this.app.actions.replace(entry, files[0]);
    else this.app.actions.add(entry || null, files);
  }

  #flash(changes) {
    const now = performance.now();
    for (const path of changes.keys()) this.#flashes.set(path, now);
    this.rows.refresh();
    setTimeout(() => {
      for (const [path, begin] of this.#flashes) if (performance.now() - begin >= FLASH) this.#flashes.delete(path);
      this.rows.refresh();
    }, FLASH + 50);
  }
}

/// The winner, or the first layers that a folder is merged from.
function shownLayers(entry) {
  return entry.isFolder && entry.verdict === "unchanged" ? entry.layers.slice(0, BADGES) : [entry.layer];
}

function winners(entry, layers, stack) {
  const rows = layers.map((path) => stack.named(path));
  if (rows.length === 1) return [badge(rows[0]), el("span", { class: "layer-name" }, shown(rows[0]?.name ?? layers[0] ?? ""))];
  const rest = entry.layers.length - rows.length;
  return [...rows.map((row) => badge(row)), ...rest > 0 ? [`+${rest}`] : []];
}

const changes = (number) => number === 0 ? "" : `${digits(number)} changed`;

function iconOf(entry) {
  if (entry.isFolder) return "directory";
  if (entry.kind === "link") return "link";
  const extension = fileExtension(entry.path);
  return ICONS.find(([, pattern]) => pattern.test(extension))?.[0] ?? "file";
}

function describe(entry, winner, mark) {
  const others = entry.isFolder && entry.layers.length > 1 ? ` and ${count(entry.layers.length - 1, "other layer")}` : "";
  const from = winner ? `, from ${shown(winner.name)}${others}` : "";
  return `${shown(lastName(entry.path))}${mark === "" ? "" : `, ${mark}`}${from}`;
}
