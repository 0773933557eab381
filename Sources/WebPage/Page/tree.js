// The merged tree: all entries in the order of a walk, and which of them the list shows.

import { lastName, parentPath } from "./dom.js";

export const VERDICTS = ["overridden", "added", "hidden", "conflict"];

export class Tree {
  /// Each folder is followed by what is beneath it.
  entries = [];
  /// The number of the first entry after an entry's subtree.
  ends = [];
  /// Folders that are closed, by path; a filtered list has its own, since it opens all folders at first.
  closed = new Set();
  closedInFilter = new Set();
  #counts = null;
  #changed = null;
  #index = null;

  constructor(mainPath) { this.mainPath = mainPath; }

  append(batch) {
    for (const entry of batch) this.entries.push(this.#prepared(entry));
    this.#invalidate();
  }

  #prepared(entry) {
    const { path } = entry;
    entry.name = lastName(path);
    entry.lower = path.toLowerCase();
    entry.depth = path.split("/").length - 1;
    entry.isFolder = entry.kind === "directory";
    entry.layers = entry.layer === null ? entry.below : [entry.layer, ...entry.below];
    entry.isConflict = entry.verdict === "collision"
      || !entry.isFolder && entry.layers.filter((layer) => layer !== this.mainPath).length > 1;
    return entry;
  }

  #invalidate() {
    this.#counts = this.#changed = this.#index = null;
    this.ends.length = 0;
  }

  /// Computes the subtrees' ends, once after each change.
  #measure() {
    const { entries, ends } = this;
    if (ends.length === entries.length) return;
    ends.length = entries.length;
    const open = [];
    for (let at = 0; at <= entries.length; at += 1) {
      const depth = at < entries.length ? entries[at].depth : -1;
      while (open.length > 0 && entries[open.at(-1)].depth >= depth) ends[open.pop()] = at;
      if (at < entries.length) open.push(at);
    }
  }

  indexOf(path) {
    this.#index ??= new Map(this.entries.map((entry, at) => [entry.path, at]));
    return this.#index.get(path) ?? -1;
  }

  get(path) { return this.entries[this.indexOf(path)]; }

  /// Replaces the entry at a path, and what is beneath it, by what is there now.
  replace(path, batch) {
    this.#measure();
    const at = this.indexOf(path);
    const [from, until] = at >= 0 ? [at, this.ends[at]] : this.#place(path);
    const fresh = batch.filter((entry) => entry.path === path || entry.path.startsWith(`${path}/`));
    const entries = fresh.map((entry) => this.#prepared(entry));
    // A spread of 100,000 arguments would overflow the stack.
    this.entries = [...this.entries.slice(0, from), ...entries, ...this.entries.slice(until)];
    this.#invalidate();
  }

  /// Where a new entry belongs among its siblings.
  #place(path) {
    const parent = this.indexOf(parentPath(path));
    const end = parent < 0 ? this.entries.length : this.ends[parent];
    const name = lastName(path);
    let at = parent + 1;
    while (at < end && this.entries[at].name < name) at = this.ends[at];
    return [at, at];
  }

  /// The path itself, or the nearest folder above it whose own folder is listed.
  listedParent(path) {
    let listed = path;
    while (listed.includes("/") && this.indexOf(parentPath(listed)) < 0) listed = parentPath(listed);
    return listed;
  }

  /// The numbers of entries by verdict.
  get counts() {
    if (this.#counts !== null) return this.#counts;
    const counts = { all: this.entries.length, overridden: 0, added: 0, hidden: 0, conflict: 0 };
    for (const entry of this.entries) {
      if (entry.verdict in counts) counts[entry.verdict] += 1;
      if (entry.isConflict) counts.conflict += 1;
    }
    return this.#counts = counts;
  }

  /// The numbers of files that each layer has, and of entries that it overrides, adds and hides.
  get numbersByLayer() {
    const numbers = new Map();
    const of = (layer) => {
      let found = numbers.get(layer);
      if (!found) numbers.set(layer, found = { names: 0, overridden: 0, added: 0, hidden: 0 });
      return found;
    };
    for (const { verdict, layer, layers, isFolder } of this.entries) {
      if (!isFolder) for (const one of layers) of(one).names += 1;
      if (verdict in this.counts && layer !== null) of(layer)[verdict] += 1;
    }
    return numbers;
  }

  /// How many entries beneath a folder are not MAIN's.
  changedBeneath(at) {
    this.#measure();
    if (this.#changed === null) {
      const sums = new Int32Array(this.entries.length + 1);
      this.entries.forEach((entry, index) => {
        sums[index + 1] = sums[index] + (entry.verdict === "unchanged" ? 0 : 1);
      });
      this.#changed = sums;
    }
    return this.#changed[this.ends[at]] - this.#changed[at + 1];
  }

  hasChildren(at) { return this.entries[at + 1]?.depth > this.entries[at].depth; }

  /// The numbers of the entries that the list shows. A filtered list has the folders of each match.
  visible(filter) {
    this.#measure();
    return filter.isEmpty ? this.#unfiltered() : this.#filtered(filter);
  }

  #unfiltered() {
    const { entries, ends, closed } = this;
    const shown = [];
    for (let at = 0; at < entries.length;) {
      shown.push(at);
      at = entries[at].isFolder && closed.has(entries[at].path) ? ends[at] : at + 1;
    }
    return shown;
  }

  #filtered(filter) {
    const { entries, ends, closedInFilter } = this;
    const [shown, parents] = [[], []];
    for (let at = 0; at < entries.length;) {
      const entry = entries[at];
      parents.length = Math.min(parents.length, entry.depth);
      let next = at + 1;
      if (filter.accepts(entry)) {
        const missing = parents.filter((parent) => !parent.isShown);
        for (const parent of missing) shown.push(parent.at);
        for (const parent of missing) parent.isShown = true;
        shown.push(at);
        const closedParent = parents.find((parent) => closedInFilter.has(entries[parent.at].path));
        if (closedParent) {
          // Only the closed folder itself is shown.
          while (shown.at(-1) > closedParent.at) shown.pop();
          next = ends[closedParent.at];
        } else if (entry.isFolder) {
          if (closedInFilter.has(entry.path)) next = ends[at];
          else parents.push({ at, isShown: true });
        }
      } else if (entry.isFolder) {
        parents.push({ at, isShown: false });
      }
      at = next;
    }
    return shown;
  }
}

/// What the list is limited to.
export class Filter {
  verdict = "all";
  layer = null;
  words = [];

  get isEmpty() { return this.verdict === "all" && this.layer === null && this.words.length === 0; }

  setText(text) { this.words = text.toLowerCase().split(/\s+/).filter((word) => word !== ""); }

  accepts(entry) {
    if (this.verdict === "conflict" ? !entry.isConflict
      : this.verdict !== "all" && entry.verdict !== this.verdict) return false;
    if (this.layer !== null && !entry.layers.includes(this.layer)) return false;
    return this.words.every((word) => entry.lower.includes(word));
  }
}
