// Elements, names and numbers as text. Data reaches the document as text and attributes only, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/// Makes an element. Attributes that are functions become listeners, booleans are set or left out.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function set(node, name, value) {
  if (typeof value === "function") node.addEventListener(name, value);
  else if (value === true) node.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
}

/// One of the symbols in index.html.
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

export const byId = (id) => document.getElementById(id);

/// Names as one line: control and direction characters would break rows or disguise a file's type.
export function shown(name) {
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (character) => character === "\n" ? "␊" : `\\u{${character.codePointAt(0).toString(16)}}`);
}

/// The exact path of an entry, percent-encoded.
export function encoded(entry) {
  return entry.encodedPath ?? entry.path.split("/").map(encodeURIComponent).join("/");
}

export const lastName = (path) => path.slice(path.lastIndexOf("/") + 1);
export const parentPath = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

export function fileExtension(path) {
  const name = lastName(path);
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : "";
}

const whole = new Intl.NumberFormat("en");
export const count = (number, one, many = `${one}s`) => `${whole.format(number)} ${number === 1 ? one : many}`;
export const digits = (number) => whole.format(number);

export function byteSize(bytes) {
  if (bytes < 1024) return count(bytes, "byte");
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let [value, unit] = [bytes / 1024, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

const two = (number) => String(number).padStart(2, "0");

export function dateTime(seconds) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return "";
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function clockTime(date) {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/// Speaks a sentence to screen readers.
export function announce(sentence) {
  const region = byId("announcer");
  region.textContent = "";
  // A region that is filled again at once is not read.
  setTimeout(() => { region.textContent = sentence; }, 30);
}

/// Calls an action once after a pause in a series of calls.
export function debounced(milliseconds, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/// A function that makes an action run after a pause, one run after the other, however often it is called.
export function paced(milliseconds, action) {
  let [isWanted, isRunning] = [false, false];
  const run = async () => {
    isRunning = true;
    try {
      while (isWanted) {
        await new Promise((resolve) => { setTimeout(resolve, milliseconds); });
        isWanted = false;
        await action();
      }
    } finally {
      isRunning = false;
    }
  };
  return () => {
    isWanted = true;
    if (!isRunning) run();
  };
}
