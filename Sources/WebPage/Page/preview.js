// A file's content: pictures, sounds, fonts, text or bytes, and two versions compared.

import { count, el, encoded, fileExtension, icon, shown } from "./dom.js";
import { differenceTable } from "./lines.js";

const HEX_LIMIT = 1024;
const TEXT_LIMIT = 256 << 10;
/// Of a property list, by the server.
const LIST_LIMIT = 1 << 20;
const SAMPLE = "Aa Bb Cc Gg Qq Rr & 0123456789";

const EXTENSIONS = {
  image: /^(png|jpe?g|gif|webp|svg|avif|bmp|ico)$/,
  audio: /^(mp3|m4a|aac|wav|ogg|oga|opus|flac)$/,
  video: /^(mp4|m4v|mov|webm|ogv)$/,
  font: /^(ttf|otf|woff2?)$/,
  strings: /^strings$/,
  property: /^(plist|stringsdict)$/,
};

/// What a file is shown as: image, audio, video, font, strings, property, text, bytes, or none.
export async function category(mount, entry, files) {
  if (files.length === 0) return "none";
  const extension = fileExtension(entry.path);
  const known = Object.keys(EXTENSIONS).find((name) => EXTENSIONS[name].test(extension));
  if (known) return known;
  const type = files[0].type ?? "";
  const family = type.split("/")[0];
  if (["image", "audio", "video", "font"].includes(family)) return family;
  const starts = await Promise.all(files.map((file) => mount.bytes(file.content, HEX_LIMIT).catch(() => new Uint8Array())));
  return starts.every(isText) ? "text" : "bytes";
}

function isText(bytes) {
  if (bytes.includes(0)) return false;
  try {
    // The last character may be cut.
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/// Changes with the content, so that the browser does not show what it has cached.
const address = (version) => `${version.content}?${version.modified}-${version.size}`;

/// What a version's card shows of its content.
export function illustration(mount, version, kind) {
  const name = `Version of ${shown(version.row?.name ?? "")}`;
  switch (kind) {
    case "image": return picture(version, name);
    case "audio": return el("audio", { controls: true, preload: "metadata", src: address(version), "aria-label": name });
    case "video": return el("video", { controls: true, preload: "metadata", src: address(version), "aria-label": name });
    case "font": return fontSample(version);
    case "bytes": return hexView(mount, version);
    default: return null;
  }
}

function picture(version, name) {
  const size = el("span", { class: "pixel-size" });
  const image = el("img", { src: address(version), alt: name, decoding: "async",
    load: () => { size.textContent = image.naturalWidth === 0 ? "" : `${image.naturalWidth} × ${image.naturalHeight} px`; },
    error: () => { size.textContent = "This browser cannot show it."; frame.classList.add("is-broken"); } });
  const frame = el("div", { class: "picture" }, image);
  return el("figure", {}, frame, el("figcaption", {}, size));
}

let fonts = 0;

function fontSample(version) {
  fonts += 1;
  const family = `sample-${fonts}`;
  const sample = el("p", { class: "font-sample", lang: "en" }, SAMPLE, el("br"), "The quick brown fox jumps over the lazy dog.");
  new FontFace(family, `url("${new URL(address(version), location.href).href}")`).load().then((face) => {
    document.fonts.add(face);
    sample.style.fontFamily = family;
  }, () => { sample.replaceWith(el("p", { class: "hint" }, "This browser cannot show the font.")); });
  return sample;
}

function hexView(mount, version) {
  const lines = el("pre", { class: "hex", tabindex: "0", "aria-label": "The first bytes" }, "…");
  mount.bytes(version.content, HEX_LIMIT).then((bytes) => {
    lines.textContent = bytes.length === 0 ? "empty" : hexLines(bytes);
  }, (error) => { lines.textContent = error.message; });
  return lines;
}

function hexLines(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.subarray(at, at + 16)];
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0"));
    const left = `${hex.slice(0, 8).join(" ")}  ${hex.slice(8).join(" ")}`.padEnd(49);
    const text = part.map((byte) => byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·").join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${left} ${text}`);
  }
  return lines.join("\n");
}

/// Two versions compared, or the only one: pictures by a swipe, texts by their lines.
export async function comparison(mount, entry, files, kind) {
  const isImage = kind === "image";
  if (!isImage && kind !== "text" && kind !== "property") return null;
  if (isImage && files.length < 2) return null;
  const body = el("div", { class: "comparison-body" });
  const choices = ["First", "Second"].map((label, index) => choice(files, label, index));
  const draw = async () => {
    const pair = choices.map((select) => files[select.value]);
    body.replaceChildren(isImage ? swipe(pair) : await textComparison(mount, entry, files.length < 2 ? [files[0]] : pair, kind));
  };
  for (const select of choices) select.addEventListener("change", draw);
  await draw();
  const title = files.length < 2 ? el("h3", {}, "Content") : el("h3", {}, isImage ? "Swipe" : "Difference");
  return el("section", { class: "comparison" },
    el("header", {}, title, files.length < 2 ? null : el("div", { class: "pair" }, choices[0], "and", choices[1])), body);
}

/// The older version, beneath the winner, comes first, so that a difference reads as what the winner changes.
function choice(files, label, index) {
  const select = el("select", { "aria-label": `${label} version`, "data-part": `choice-${index}` },
    files.map((file, at) => el("option", { value: at }, shown(file.row?.name ?? "?"))));
  select.value = String(index === 0 ? Math.min(1, files.length - 1) : 0);
  return select;
}

function swipe([left, right]) {
  const picture = (version, side) => el("img", { class: `swipe-${side}`, src: address(version),
    alt: `${side === "left" ? "Left" : "Right"}: ${shown(version.row?.name ?? "")}`, decoding: "async" });
  const top = picture(right, "right");
  const line = el("span", { class: "swipe-line" });
  const slider = el("input", { type: "range", min: 0, max: 100, value: 50, class: "swipe-slider", "data-part": "swipe",
    "aria-label": `Share of ${shown(left.row?.name ?? "the first")} that is shown`, input: () => move() });
  const move = () => {
    top.style.clipPath = `inset(0 0 0 ${slider.value}%)`;
    line.style.left = `${slider.value}%`;
  };
  move();
  return el("div", { class: "swipe" }, el("div", { class: "swipe-frame" }, picture(left, "left"), top, line, slider),
    el("p", { class: "swipe-names" }, el("span", {}, shown(left.row?.name ?? "")), el("span", {}, shown(right.row?.name ?? ""))));
}

async function textComparison(mount, entry, pair, kind) {
  try {
    const texts = await Promise.all(pair.map((version) => text(mount, entry, version, kind)));
    const cut = texts.find((one) => one.isCut);
    return el("div", {}, differenceTable(texts.map((one) => one.text)),
      cut ? el("p", { class: "hint" }, `Only the first ${count(cut.limit >> 10, "KiB", "KiB")} are shown.`) : null);
  } catch (error) {
    return el("p", { class: "problem" }, icon("warning"), error.message);
  }
}

/// The text of a version, and whether it ends at a limit of so many bytes.
async function text(mount, entry, version, kind) {
  if (kind === "property") {
    try {
      const list = await mount.text(encoded(entry), version.layer);
      return { text: list.text, isCut: list.cut, limit: LIST_LIMIT };
    } catch (error) {
      // A file that is no property list is shown as it is.
      if (error.status !== 422) throw error;
    }
  }
  const bytes = await mount.bytes(version.content, TEXT_LIMIT);
  const isUTF16 = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : null;
  if (isUTF16 === null && bytes.includes(0)) {
    return { text: hexLines(bytes.subarray(0, HEX_LIMIT)), isCut: version.size > HEX_LIMIT, limit: HEX_LIMIT };
  }
  return { text: new TextDecoder(isUTF16 ?? "utf-8").decode(bytes), isCut: version.size > TEXT_LIMIT, limit: TEXT_LIMIT };
}
