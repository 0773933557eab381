// One file: its versions in all layers side by side, and what can be done with it.

import { byId, byteSize, count, dateTime, el, encoded, icon, lastName, paced, shown } from "./dom.js";
import { badge, layerLabel } from "./layers.js";
import { category, comparison, illustration } from "./preview.js";
import { stringsTable } from "./strings.js";

/// The layers that the sentence names after the winner.
const LOSERS = 3;
const KINDS = { file: "File", directory: "Folder", symlink: "Symbolic link", link: "Symbolic link", hidden: "Hidden here",
  fifo: "Pipe", socket: "Socket", device: "Device" };

export class FileView {
  #path = null;
  #request = 0;

  constructor(app) {
    Object.assign(this, { app, panel: byId("file"), content: byId("file-content") });
    for (const name of ["dragover", "dragleave", "drop"]) {
      this.panel.addEventListener(name, (event) => this.#dropped(event));
    }
    const refresh = paced(80, () => this.#load());
    app.on("mount", () => this.#load());
    app.on("selected", () => this.#load());
    app.on("layers", refresh);
    app.on("version", (path) => { if (path === this.#path) refresh(); });
    app.on("changed", (changes) => {
      const isShown = [...changes.keys()].some((path) => path === this.#path
        || this.#path?.startsWith(`${path}/`) || path.startsWith(`${this.#path}/`));
      if (isShown) refresh();
    });
    this.#load();
  }

  async #load() {
    const path = this.app.selected;
    const request = this.#request += 1;
    const { mount } = this.app;
    if (path === null) return this.#showNothing();
    const entry = this.app.tree?.get(path) ?? { path };
    let versions;
    try {
      ({ versions, merged: entry.isMerged } = await mount.versions(encoded(entry)));
    } catch (error) {
      if (request === this.#request) this.#show(path, el("p", { class: "problem" }, icon("warning"), error.message));
      return;
    }
    if (request !== this.#request || this.app.mount !== mount) return;
    this.#compare(entry, versions);
    const parts = await this.#parts(entry, versions);
    if (request === this.#request) this.#show(path, ...parts);
  }

  /// Changes of versions that do not win are reported of shown files only: the list learns of them here.
  #compare(entry, versions) {
    const layers = versions.map((version) => this.app.stack.at(version.layer)?.path);
    if (entry.isFolder === false && layers.join("\n") !== entry.layers.join("\n")) this.app.reread(entry.path);
  }

  /// The mount itself has a winner that the server cannot read in its layer.
  #view(entry, version) {
    const isReadable = version.winner && version.kind === "file" && !version.error;
    return isReadable ? `${this.app.mount.contentBase}/view/${encoded(entry)}` : null;
  }

  #showNothing() {
    this.#path = null;
    this.content.replaceChildren(el("div", { class: "empty" }, icon("layers"),
      el("p", {}, "Select a file to see the version of each layer."),
      el("p", { class: "hint" }, "Drop a file on a row to replace it in the top layer.")));
  }

  /// Shows new content and keeps the focus and the scroll position while it is the same file.
  #show(path, ...parts) {
    const isSame = path === this.#path;
    const part = this.content.contains(document.activeElement) ? document.activeElement.dataset.part : null;
    const top = this.panel.scrollTop;
    this.#path = path;
    this.content.replaceChildren(...parts.filter((node) => node !== null));
    this.panel.scrollTop = isSame ? top : 0;
    if (part) this.content.querySelector(`[data-part="${CSS.escape(part)}"]`)?.focus();
  }

  async #parts(entry, versions) {
    const found = versions.map((version) => ({
      ...version, row: this.app.stack.at(version.layer), content: version.content ?? this.#view(entry, version),
    }));
    const files = found.filter((version) => version.kind === "file" && version.content);
    const kind = await category(this.app.mount, entry, files);
    const header = this.#header(entry, found);
    if (found.length === 0) return [header, el("p", { class: "hint" }, "No layer has this path any more.")];
    const cards = el("ul", { class: `versions is-${kind}`, "aria-label": "Versions, topmost layer first" },
      found.map((version) => this.#card(version, kind, found.length)));
    if (kind === "strings") return [header, cards, await this.#strings(entry, files)];
    return [header, cards, await comparison(this.app.mount, entry, files, kind)];
  }

  async #strings(entry, files) {
    try {
      return await stringsTable(this.app, entry);
    } catch (error) {
      const lines = await comparison(this.app.mount, entry, files, "text");
      if (error.isUnsupported) return lines;
      return el("div", {}, el("p", { class: "problem" }, icon("warning"), error.message), lines);
    }
  }

  #header(entry, versions) {
    const { stack } = this.app;
    const winner = versions.find((version) => version.winner) ?? versions[0];
    const losers = versions.filter((version) => version !== winner && version.kind !== "hidden");
    const parts = shown(entry.path).split("/");
    return el("header", { class: "file-header" },
      el("button", { type: "button", class: "quiet back", "aria-label": "Back to the files", "data-part": "back",
        click: () => { this.app.show("files"); byId("files-list").focus(); } }, icon("back")),
      el("p", { class: "file-folder", title: shown(entry.path) }, parts.slice(0, -1).join(" / ") || "/"),
      el("h2", { tabindex: "-1" }, parts.at(-1)),
      winner ? el("p", { class: "file-verdict" }, ...sentence(winner, losers, entry.isMerged)) : null,
      this.#buttons(entry, versions, winner, stack.top));
  }

  #buttons(entry, versions, winner, top) {
    const { actions, stack } = this.app;
    if (!top) return el("p", { class: "hint" }, "Add a layer to change this file.");
    const topNumber = stack.active.indexOf(top);
    const isInTop = versions.some((version) => version.layer === topNumber);
    const isVisible = winner !== undefined && winner.kind !== "hidden";
    const name = shown(top.name);
    const button = (label, part, isEnabled, title, action) => el("button", {
      type: "button", "data-part": part, "aria-disabled": String(!isEnabled), title,
      click: () => { if (isEnabled) action(); },
    }, label);
    const input = el("input", { type: "file", class: "unseen", tabindex: "-1", "aria-hidden": "true",
      change: () => { if (input.files[0]) actions.replace(entry, input.files[0]); } });
    return el("div", { class: "file-actions", role: "group", "aria-label": `Changes in ${name}` },
      button("Override", "override", isVisible && !isInTop, `Copy it into ${name}, to edit it there`,
        () => actions.override(entry)),
      entry.isFolder ? null : button("Replace…", "replace", true, `Put another file into ${name}`, () => input.click()),
      button("Revert", "revert", isInTop, `Remove what ${name} has here`, () => actions.revert(entry)),
      button("Hide", "hide", isVisible, `Hide it by ${name}`, () => actions.hide(entry)),
      this.app.mount.opensFolders === false ? null
        : button("Open folder", "open", isVisible, "Show it in the file manager", () => this.#open(entry)),
      input, el("span", { class: "file-target" }, "in", layerLabel(top)));
  }

  async #open(entry) {
    try {
      await this.app.mount.open(encoded(entry));
    } catch (error) {
      this.app.actions.fail(error.isUnsupported ? "This server cannot open folders." : error.message);
    }
  }

  #card(version, kind, total) {
    const { row } = version;
    const facts = version.error ? [] : version.kind === "file"
      ? [byteSize(version.size), dateTime(version.modified), version.type]
      : [KINDS[version.kind] ?? version.kind, version.target === undefined || version.target === null
        ? null : `→ ${shown(version.target)}`];
    const line = facts.filter((fact) => fact).map((fact) => el("span", {}, fact));
    const isLost = !version.winner;
    return el("li", { class: `version colour-${row?.colour ?? "none"} ${isLost ? "is-lost" : "is-winner"}` },
      el("div", { class: "version-title" }, badge(row), el("strong", { title: shown(row?.path ?? "") }, shown(row?.name ?? "?")),
        version.winner && total > 0 ? el("span", { class: "tag wins" }, version.kind === "hidden" ? "hides" : "wins") : null),
      el("p", { class: "version-facts" }, line),
      version.error ? el("p", { class: "problem" }, icon("warning"), version.error) : null,
      version.kind === "file" && version.content ? illustration(this.app.mount, version, kind) : null);
  }

  #dropped(event) {
    event.preventDefault();
    const entry = this.#path === null ? null : this.app.tree?.get(this.#path);
    this.panel.classList.toggle("is-target", event.type === "dragover" && entry !== null);
    const files = event.type === "drop" ? [...event.dataTransfer.files] : [];
    if (files.length === 0 || !entry) return;
    if (entry.isFolder) this.app.actions.add(entry, files);
    else if (files.length === 1) this.app.actions.replace(entry, files[0]);
    else this.app.actions.fail(`Drop one file to replace ${shown(lastName(entry.path))}, not ${count(files.length, "file")}.`);
  }
}

/// Which layer wins, over which others.
function sentence(winner, losers, isMerged) {
  const verb = winner.kind === "hidden" ? "hides the version of" : "wins over";
  const label = (version) => layerLabel(version.row);
  if (losers.length === 0) return [winner.kind === "hidden" ? "Hidden by" : "Only in", label(winner)];
  const others = losers.slice(0, LOSERS).map(label);
  if (losers.length > LOSERS) others.push(`and ${count(losers.length - LOSERS, "other")}`);
  return isMerged ? ["Merged key by key:", label(winner), ...others] : [label(winner), verb, ...others];
}
