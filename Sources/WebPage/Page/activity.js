// What happens while the page is open: changed files, and the results of URLs.

import { byId, clockTime, count, el, lastName, parentPath, shown } from "./dom.js";
import { layerLabel } from "./layers.js";

const FEED_LIMIT = 200;
const WORDS = { overridden: "overrides", added: "added", hidden: "hidden", unchanged: "changed", collision: "collides", merged: "merged" };

export class ActivityView {
  constructor(app) {
    Object.assign(this, { app, feed: byId("feed"), results: byId("results") });
    app.on("mount", () => this.#clear());
    app.on("status", () => { byId("routes").hidden = app.mount.control === false; });
    app.on("changed", (changes) => changes.forEach((event, path) => this.#changed(path, event)));
    app.on("many", (event) => this.#many(event));
    app.on("route", (result) => this.#result(result));
    app.on("view", (view) => { if (view === "activity") byId("activity-dot").hidden = true; });
    byId("route-form").addEventListener("submit", (event) => this.#post(event));
  }

  async #clear() {
    this.feed.replaceChildren();
    this.results.replaceChildren();
    this.#update();
    const { mount } = this.app;
    try {
      const { results } = await mount.results();
      if (this.app.mount === mount) results.forEach((result) => this.#result(result));
    } catch { /* A mount without a control file has none. */ }
  }

  #update() {
    byId("feed-empty").hidden = this.feed.children.length > 0;
    byId("results-empty").hidden = this.results.children.length > 0;
  }

  #add(list, item) {
    list.prepend(item);
    while (list.children.length > FEED_LIMIT) list.lastChild.remove();
    byId("activity-dot").hidden = document.body.dataset.view === "activity";
    this.#update();
  }

  #changed(path, event) {
    const { tree, stack } = this.app;
    const entry = tree.get(path);
    const number = event?.layer;
    const row = number === undefined || number === null ? stack.named(entry?.layer ?? "") : stack.at(number);
    const word = event?.what ?? (entry === undefined ? "gone" : WORDS[entry.verdict] ?? "changed");
    const name = el("button", { type: "button", class: "path", disabled: entry === undefined,
      title: shown(path),
      click: () => { this.app.show("files"); this.app.select(path); } }, shown(lastName(path)),
      el("span", { class: "hint" }, shown(parentPath(path))));
    this.#add(this.feed, el("li", { class: `colour-${row?.colour ?? "none"}` },
      el("time", {}, clockTime(event?.time ? new Date(event.time * 1000) : new Date())),
      name, el("span", { class: "what" }, word), row ? layerLabel(row) : null));
  }

  #many(event) {
    const what = event.count ? count(event.count, "change") : "More changes";
    this.#add(this.feed, el("li", {}, el("time", {}, clockTime(new Date())), el("span", {}, `${what} at once`)));
  }

  #result(result) {
    // The reply and the event bring the same result.
    if (result.sequence !== undefined && this.results.querySelector(`[data-sequence="${Number(result.sequence)}"]`)) return;
    const values = Object.entries(result.userInfo ?? {});
    this.#add(this.results, el("li", { class: `result is-${result.outcome === "rejected" ? "rejected" : "good"}`, "data-sequence": Number(result.sequence ?? -1) },
      el("p", { class: "result-line" }, el("time", {}, clockTime(result.time ? new Date(result.time) : new Date())),
        el("strong", {}, shown(result.notification ?? result.error ?? result.path ?? result.outcome)),
        el("span", { class: "tag" }, result.outcome)),
      el("p", { class: "result-url" }, shown(result.url ?? "")),
      values.length === 0 ? null : el("dl", {}, values.map(([key, value]) => el("div", {},
        el("dt", {}, shown(key)), el("dd", {}, shown(String(value)), " ", el("span", { class: "type" }, result.types?.[key] ?? "")))))));
  }

  async #post(event) {
    event.preventDefault();
    const url = byId("route-url").value.trim();
    if (url === "") return byId("route-url").focus();
    try {
      const { results } = await this.app.mount.route(url, event.submitter?.value === "match");
      results.forEach((result) => this.#result(result));
    } catch (error) {
      this.app.actions.fail(error.message);
    }
  }
}
