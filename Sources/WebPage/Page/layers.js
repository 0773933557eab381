// The stack of layers: its order, what is in it, and what each layer adds.

import { announce, byId, count, el, icon, shown } from "./dom.js";
import { Reordering } from "./reorder.js";

/// A layer's number in its colour.
export function badge(row) {
  return el("span", { class: `badge colour-${row?.colour ?? "none"}`, "aria-hidden": "true" }, row?.badge ?? "–");
}

/// A layer's badge and name.
export function layerLabel(row, path = "") {
  return el("span", { class: "layer-label", title: shown(row?.path ?? path) }, badge(row),
    el("span", { class: "layer-name" }, shown(row?.name ?? path)));
}

export class LayersView {
  constructor(app) {
    this.app = app;
    this.list = byId("layers-list");
    this.reordering = new Reordering(this.list, {
      name: (item) => shown(item.row.name),
      onDrop: (items) => this.#reorder(items.map((item) => item.row)),
    });
    byId("add-layer").addEventListener("submit", (event) => this.#add(event));
    app.on("mount", () => this.list.replaceChildren());
    app.on("layers", () => this.#render());
    app.on("tree", () => this.#count());
  }

  #render() {
    if (this.reordering.isActive) return;
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    const [path, part] = [focused?.closest(".layer").row.encodedPath, focused?.dataset.part];
    const { rows } = this.app.stack;
    this.list.replaceChildren(...rows.map((row) => this.#item(row)));
    const item = [...this.list.children].find((other) => other.row.encodedPath === path);
    item?.querySelector(`[data-part="${CSS.escape(part)}"]`)?.focus();
    this.#count();
  }

  #item(row) {
    const isMovable = !row.isMain && row.role !== "writable";
    const item = el("li", { class: `layer ${isMovable ? "movable" : ""} ${row.isOn ? "" : "is-off"}` },
      isMovable ? this.#grip(row) : el("span", { class: "grip-space" }),
      badge(row),
      el("div", { class: "layer-text" },
        el("p", { class: "layer-title" }, el("strong", {}, shown(row.name)), this.#role(row)),
        el("p", { class: "layer-path", title: shown(row.path) }, el("bdi", {}, shown(row.path))),
        el("p", { class: "layer-counts" }),
        row.problems.map((problem) => el("p", { class: "problem" }, icon("warning"), shown(problem)))),
      this.#controls(row, isMovable));
    item.row = row;
    return item;
  }

  #role(row) {
    const word = row.isMain ? "main" : row.role === "writable" ? "writable" : row.kind === "directory" ? "" : row.kind;
    return word === "" ? null : el("span", { class: "tag" }, word);
  }

  #grip(row) {
    return el("button", {
      type: "button", class: "grip", "data-part": "grip", "aria-pressed": "false",
      "aria-label": `Move ${shown(row.name)}`,
    }, icon("grip"));
  }

  #controls(row, isMovable) {
    if (!isMovable) return null;
    return el("div", { class: "layer-controls" },
      row.isOn ? null : el("button", {
        type: "button", class: "quiet", "data-part": "remove", "aria-label": `Remove ${shown(row.name)} from the list`,
        click: () => this.#forget(row),
      }, icon("close")),
      el("button", {
        type: "button", class: "switch", role: "switch", "data-part": "switch", "aria-checked": String(row.isOn),
        "aria-label": `${shown(row.name)} in the stack`, click: () => this.#toggle(row),
      }, el("span", {})));
  }

  /// What each layer overrides, adds and hides.
  #count() {
    const { tree } = this.app;
    if (tree === null) return;
    const numbers = tree.numbersByLayer;
    for (const item of this.list.children) {
      const found = numbers.get(item.row.path) ?? { names: 0, overridden: 0, added: 0, hidden: 0 };
      const line = item.querySelector(".layer-counts");
      line.textContent = item.row.isOn ? describe(item.row, found) : "switched off";
    }
  }

  #forget(row) {
    this.app.stack.forget(row);
    this.app.stack.rows = this.app.stack.rows.filter((other) => other !== row);
    announce(`${shown(row.name)} is removed from the list.`);
    this.#render();
  }

  #toggle(row) {
    const { stack } = this.app;
    const rows = stack.rows.filter((other) => other === row ? !row.isOn : other.isOn);
    const verb = row.isOn ? "off" : "on";
    if (row.isOn) stack.switchOff(row);
    this.#set(rows, `Switched ${shown(row.name)} ${verb}`, () => { if (row.isOn) stack.forget(row); });
  }

  /// - Parameter dropped: the rows as they were shown; the stack may have changed since.
  #reorder(dropped) {
    const { stack } = this.app;
    const place = (row) => dropped.findIndex((other) => other.encodedPath === row.encodedPath);
    const movable = stack.rows.filter((row) => !row.isMain && row.role !== "writable");
    const all = [...stack.rows.filter((row) => row.role === "writable"), ...movable.sort((a, b) => place(a) - place(b))];
    stack.arrange(all);
    this.#set(all.filter((row) => row.isOn), "Reordered the layers", () => {});
  }

  #add(event) {
    event.preventDefault();
    const input = byId("add-path");
    const path = input.value.trim();
    if (path === "") return input.focus();
    const rows = [...this.app.stack.substitutions];
    const position = rows[0]?.role === "writable" ? 1 : 0;
    rows.splice(position, 0, { encodedPath: path.split("/").map(encodeURIComponent).join("/") });
    this.#set(rows, `Added ${shown(path)}`, () => {}).then((isDone) => { if (isDone) input.value = ""; });
  }

  /// Sets the stack; `onFailure` takes back what the page has noted.
  async #set(rows, label, onFailure) {
    const paths = rows.filter((row) => !row.isMain && row.role !== "writable").map((row) => row.encodedPath);
    const isDone = await this.app.actions.run(label, async (mount) => ({ ...await mount.setLayers(paths), label }));
    if (!isDone) onFailure();
    await this.app.reload();
    return isDone;
  }
}

function describe(row, numbers) {
  if (row.isMain) return count(numbers.names, "file");
  const parts = [["overrides", numbers.overridden], ["adds", numbers.added], ["hides", numbers.hidden]]
    .filter(([, number]) => number > 0).map(([verb, number]) => `${verb} ${number}`);
  return parts.length === 0 ? "changes nothing" : parts.join(" · ");
}
