// Tables of strings: one file key by key, and all tables of a language in one grid.

import { byId, count, debounced, el, encoded, lastName, shown } from "./dom.js";
import { layerLabel } from "./layers.js";
import { VirtualList } from "./virtual.js";

/// A value that can be edited in place: Enter saves, Escape gives up.
function editable(app, { path, key, value, label }) {
  const field = el("input", { class: "string-value", value: value ?? "", "aria-label": label, spellcheck: "false",
    disabled: app.stack.top === undefined, "data-part": `string-${key}` });
  if (value === null) field.placeholder = "missing";
  const save = async () => {
    if (field.value === (value ?? "")) return;
    const wanted = field.value;
    const entry = app.tree?.get(path) ?? { path };
    const isDone = await app.actions.run(`Changed ${shown(key)}`, (mount) => mount.setString(encoded(entry), key, wanted));
    if (!isDone) field.value = value ?? "";
    else app.changed(path);
  };
  field.addEventListener("change", save);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = value ?? ""; field.blur(); }
    if (event.key === "Enter") field.blur();
    event.stopPropagation();
  });
  return field;
}

/// One table with a column for each layer that has it.
export async function stringsTable(app, entry) {
  const { keys } = await app.mount.strings(encoded(entry));
  const numbers = [...new Set(keys.flatMap(({ values }) => values.map((value) => value.layer)))].sort((a, b) => a - b);
  const cell = (key, values, number) => {
    const found = values.find((value) => value.layer === number);
    const isWinner = values[0]?.layer === number;
    const row = app.stack.at(number);
    const name = `colour-${row?.colour ?? "none"} ${isWinner ? "is-winner" : "is-lost"}`;
    if (!isWinner) return el("td", { class: name }, found?.value ?? el("span", { class: "missing" }, "–"));
    return el("td", { class: name }, editable(app, { path: entry.path, key, value: found.value, label: `${shown(key)}, from ${shown(row?.name ?? "")}` }));
  };
  return el("section", { class: "comparison" },
    el("header", {}, el("h3", {}, "Keys"), el("p", { class: "hint" }, count(keys.length, "key"))),
    el("div", { class: "table-box", tabindex: "0", role: "group", "aria-label": "Keys and values" }, el("table", { class: "keys" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Key"),
        numbers.map((number) => el("th", { scope: "col" }, layerLabel(app.stack.at(number)))))),
      el("tbody", {}, keys.map(({ key, values }) => el("tr", {},
        el("th", { scope: "row" }, key), numbers.map((number) => cell(key, values, number))))))));
}

/// The grid: the keys of all tables, the development language's value, and the chosen language's.
export class StringsView {
  #all = [];
  #shown = [];
  #request = 0;
  /// Whether a row is older than what was read, since its field was being edited.
  #isLate = false;

  constructor(app) {
    this.app = app;
    this.grid = byId("strings-grid");
    this.grid.setAttribute("role", "table");
    this.grid.setAttribute("aria-label", "Strings");
    const narrow = matchMedia("(max-width: 900px)");
    this.rows = new VirtualList(this.grid, { rowHeight: () => narrow.matches ? 92 : 36,
      make: () => el("div", { class: "string-row", role: "row" }), fill: (row, index) => this.#fill(row, index) });
    byId("strings-language").addEventListener("change", () => this.#load());
    byId("strings-missing").addEventListener("change", () => this.#limit());
    byId("strings-search").addEventListener("input", () => this.#limit());
    this.grid.addEventListener("focusout", () => { if (this.#isLate) this.#limit(); });
    const refresh = debounced(300, () => { if (!byId("strings").hidden) this.#load(); });
    app.on("mount", () => { this.#all = []; this.isSupported = undefined; this.#limit(); });
    app.on("tree", debounced(200, () => this.#findLanguages()));
    app.on("changed", refresh);
    app.on("layers", refresh);
    app.on("view", (view) => { if (view === "strings") this.#load(); });
  }

  #findLanguages() {
    const { tree } = this.app;
    this.tables = new Map();
    for (const entry of tree?.entries ?? []) {
      const found = /^(.*\/)?([^/]+)\.lproj\/([^/]+\.strings)$/.exec(entry.path);
      if (!found || entry.verdict === "hidden" || entry.kind !== "file") continue;
      const [, folder = "", language, name] = found;
      const table = this.tables.get(folder + name) ?? new Map();
      this.tables.set(folder + name, table.set(language, entry));
    }
    const languages = [...new Set([...this.tables.values()].flatMap((table) => [...table.keys()]))].sort();
    byId("strings-tab").hidden = languages.length === 0 || this.isSupported !== true;
    if (languages.length > 0 && this.isSupported === undefined) this.#probe();
    const select = byId("strings-language");
    if ([...select.options].map((option) => option.value).join() === languages.join()) return;
    const before = select.value;
    select.replaceChildren(...languages.map((language) => el("option", { value: language }, languageName(language))));
    select.value = languages.includes(before) ? before : languages.find((one) => one !== this.development && one !== "Base") ?? languages[0] ?? "";
    if (!byId("strings").hidden) this.#load();
  }

  /// Shows the view if the server reads tables.
  async #probe() {
    this.isSupported = false;
    try {
      await this.#keys([...[...this.tables.values()][0].values()][0]);
      this.isSupported = true;
    } catch (error) {
      this.isSupported = !error.isUnsupported;
    }
    byId("strings-tab").hidden = !this.isSupported;
  }

  get development() { return this.app.status?.bundle?.developmentRegion ?? "en"; }

  async #load() {
    const request = this.#request += 1;
    const language = byId("strings-language").value;
    const rows = [];
    try {
      for (const [name, table] of this.tables ?? []) {
        const base = table.get(this.development) ?? table.get("Base");
        const [development, translated] = await Promise.all([base, table.get(language)].map((entry) => this.#keys(entry)));
        if (request !== this.#request) return;
        const path = table.get(language)?.path ?? place(base?.path, language);
        if (path) rows.push(...merged(development, translated, { name: lastName(name), path }));
      }
    } catch (error) {
      this.app.actions.fail(error.message);
      return;
    }
    byId("strings-base").textContent = languageName(this.development);
    byId("strings-edited").textContent = languageName(language);
    this.#all = rows;
    this.#limit();
  }

  async #keys(entry) {
    if (entry === undefined) return new Map();
    const { keys } = await this.app.mount.strings(encoded(entry)).catch((error) => {
      // The other tables are shown without one that cannot be read.
      if (error.status === 422) return { keys: [] };
      throw error;
    });
    return new Map(keys.filter(({ values }) => values.length > 0).map(({ key, values }) => [key, values[0]]));
  }

  #limit() {
    const words = byId("strings-search").value.toLowerCase();
    const isMissingOnly = byId("strings-missing").checked;
    const missing = this.#all.filter((row) => row.value === undefined).length;
    byId("strings-count").textContent = `${count(this.#all.length, "key")}, ${missing} missing`;
    const rows = this.#all.filter((row) => (!isMissingOnly || row.value === undefined)
      && (words === "" || `${row.key}\n${row.base?.value ?? ""}\n${row.value?.value ?? ""}`.toLowerCase().includes(words)));
    const edited = this.grid.querySelector(".string-row:focus-within")?.row;
    // No row moves away below the cursor: what would move it waits for the end of editing.
    this.#isLate = edited !== undefined && !isSame(edited, rows[this.#shown.findIndex((row) => isSame(row, edited))]);
    if (this.#isLate) return;
    this.#shown = rows;
    this.rows.setLength(this.#shown.length);
  }

  #fill(element, index) {
    const row = this.#shown[index];
    const isEdited = isSame(element.row, row) && element.contains(document.activeElement);
    if (isEdited && element.row !== row) this.#isLate = true;
    element.row = row;
    // A field that is being edited stays as it is.
    if (isEdited) return;
    element.classList.toggle("is-missing", row.value === undefined);
    element.setAttribute("aria-rowindex", index + 1);
    const layer = row.value === undefined ? undefined : this.app.stack.at(row.value.layer);
    const cell = (name, ...children) => el("span", { role: "cell", class: name }, ...children);
    element.replaceChildren(
      cell("string-key", el("strong", { title: row.key }, shown(row.key)), el("span", { class: "hint" }, row.name)),
      cell("string-base", row.base === undefined ? el("span", { class: "missing" }, "–") : el("span", { title: row.base.value }, shown(row.base.value))),
      cell("string-edit", editable(this.app, { path: row.path, key: row.key, value: row.value?.value ?? null, label: shown(row.key) })),
      cell("string-layer", row.value === undefined ? el("span", { class: "tag is-warning" }, "missing") : layerLabel(layer)));
  }
}

/// Whether two rows show one key of one table.
const isSame = (one, other) => one !== undefined && one.key === other?.key && one.path === other.path;

/// A language's name in English, with its code.
function languageName(code) {
  try {
    const name = new Intl.DisplayNames("en", { type: "language", fallback: "none" }).of(code.replace("_", "-"));
    return name === undefined ? shown(code) : `${name} (${shown(code)})`;
  } catch {
    return shown(code);
  }
}

/// The table's path in another language.
const place = (path, language) => path?.replace(/[^/]+\.lproj\/([^/]+)$/, (_, name) => `${language}.lproj/${name}`);

function merged(development, translated, { name, path }) {
  const keys = [...new Set([...development.keys(), ...translated.keys()])];
  return keys.map((key) => ({ key, name, path, base: development.get(key), value: translated.get(key) }));
}
