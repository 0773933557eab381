// The profiles: stacks of layers that are saved by name. One that the name field names is replaced.

import { byId, count, el, shown } from "./dom.js";

export class ProfilesView {
  #profiles = [];
  #request = 0;

  constructor(app) {
    Object.assign(this, { app, select: byId("profile-select"), name: byId("profile-name") });
    byId("profile-load").addEventListener("submit", (event) => this.#load(event));
    byId("profile-save").addEventListener("submit", (event) => this.#save(event));
    this.select.addEventListener("change", () => this.#describe());
    this.name.addEventListener("input", () => this.#nameButton());
    app.on("mount", () => { byId("profiles").hidden = true; this.#read(); });
    app.on("layers", () => this.#read());
  }

  async #read() {
    const { mount } = this.app;
    const request = this.#request += 1;
    const profiles = await mount.profiles().catch(() => null);
    if (request !== this.#request || this.app.mount !== mount) return;
    byId("profiles").hidden = profiles === null;
    this.#profiles = profiles ?? [];
    byId("profile-load").hidden = this.#profiles.length === 0;
    const before = this.select.value;
    const present = this.#profiles.find((profile) => profile.present)?.name;
    this.select.replaceChildren(...this.#profiles.map(({ name }) => el("option", { value: name }, shown(name))));
    const isKnown = this.#profiles.some((profile) => profile.name === before);
    if (present !== undefined || isKnown) this.select.value = present ?? before;
    this.#describe();
    this.#nameButton();
  }

  get #chosen() { return this.#profiles.find((profile) => profile.name === this.select.value); }

  #describe() {
    const chosen = this.#chosen;
    const text = chosen === undefined ? "" : chosen.error ?? (chosen.present ? "These are its layers."
      : count(chosen.layers.length, "layer"));
    byId("profile-text").textContent = shown(text);
    byId("profile-text").classList.toggle("is-error", Boolean(chosen?.error));
    byId("profile-button").disabled = Boolean(chosen?.error);
  }

  get #isReplacing() { return this.#profiles.some((profile) => profile.name === this.name.value.trim()); }

  #nameButton() { byId("profile-save-button").textContent = this.#isReplacing ? "Replace" : "Save"; }

  async #load(event) {
    event.preventDefault();
    const name = this.select.value;
    if (name === "") return;
    await this.app.actions.run(`Loaded the profile ${shown(name)}`, (mount) => mount.loadProfile(name));
    await this.app.reload();
  }

  async #save(event) {
    event.preventDefault();
    const name = this.name.value.trim();
    if (name === "") return this.name.focus();
    const isSaved = await this.app.actions.run(`Saved the profile ${shown(name)}`,
      (mount) => mount.saveProfile(name, this.#isReplacing));
    if (isSaved) this.name.value = "";
    await this.#read();
    if (isSaved) this.select.value = name;
    this.#describe();
  }
}
