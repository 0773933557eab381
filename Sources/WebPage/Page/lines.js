// The difference of two texts by lines.

import { count, el } from "./dom.js";

const CONTEXT = 3;
/// Beyond this many differing lines the rest is shown as replaced, which keeps the time linear.
const DISTANCE_LIMIT = 1500;
const ROW_LIMIT = 4000;

function linesOf(text) {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/// The steps from one list of lines to another: "=", "-" or "+", each with the line and its numbers.
export function difference(old, fresh) {
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let [oldEnd, freshEnd] = [old.length, fresh.length];
  while (oldEnd > start && freshEnd > start && old[oldEnd - 1] === fresh[freshEnd - 1]) [oldEnd, freshEnd] = [oldEnd - 1, freshEnd - 1];
  const kinds = [
    ..."=".repeat(start),
    ...middle(old.slice(start, oldEnd), fresh.slice(start, freshEnd)),
    ..."=".repeat(old.length - oldEnd),
  ];
  let [left, right] = [0, 0];
  return kinds.map((kind) => {
    if (kind !== "+") left += 1;
    if (kind !== "-") right += 1;
    return { kind, text: kind === "-" ? old[left - 1] : fresh[right - 1], left, right };
  });
}

/// Myers' greedy algorithm.
function middle(old, fresh) {
  const replaced = () => [..."-".repeat(old.length), ..."+".repeat(fresh.length)];
  if (old.length === 0 || fresh.length === 0) return replaced();
  const limit = Math.min(old.length + fresh.length, DISTANCE_LIMIT);
  const reach = new Int32Array(2 * limit + 3);
  const trace = [];
  for (let distance = 0; distance <= limit; distance += 1) {
    trace.push(reach.slice(limit + 1 - distance - 1, limit + 1 + distance + 2));
    for (let diagonal = -distance; diagonal <= distance; diagonal += 2) {
      const at = limit + 1 + diagonal;
      const isDown = diagonal === -distance || diagonal !== distance && reach[at - 1] < reach[at + 1];
      let x = isDown ? reach[at + 1] : reach[at - 1] + 1;
      while (x < old.length && x - diagonal < fresh.length && old[x] === fresh[x - diagonal]) x += 1;
      reach[at] = x;
      if (x >= old.length && x - diagonal >= fresh.length) return path(trace, old.length, fresh.length);
    }
  }
  return replaced();
}

/// Walks back from the end.
function path(trace, oldSize, freshSize) {
  const kinds = [];
  let [x, y] = [oldSize, freshSize];
  for (let distance = trace.length - 1; distance > 0; distance -= 1) {
    const reach = trace[distance];
    const at = (diagonal) => reach[diagonal + distance + 1];
    const diagonal = x - y;
    const isDown = diagonal === -distance || diagonal !== distance && at(diagonal - 1) < at(diagonal + 1);
    const before = isDown ? diagonal + 1 : diagonal - 1;
    const [startX, startY] = [at(before), at(before) - before];
    while (x > startX && y > startY) [x, y] = step(kinds, "=", x, y);
    [x, y] = step(kinds, isDown ? "+" : "-", x, y);
  }
  while (x > 0) [x, y] = step(kinds, "=", x, y);
  return kinds.reverse();
}

function step(kinds, kind, x, y) {
  kinds.push(kind);
  return [kind === "+" ? x : x - 1, kind === "-" ? y : y - 1];
}

/// One text with line numbers, or the difference of two.
export function differenceTable(texts) {
  const [old, fresh] = texts.map(linesOf);
  if (fresh === undefined) return table(old.map((text, index) => ({ kind: "=", text, left: index + 1, right: null })), false);
  const steps = difference(old, fresh);
  const [added, removed] = ["+", "-"].map((kind) => steps.filter((one) => one.kind === kind).length);
  if (added + removed === 0) return el("p", { class: "hint" }, "The two versions have the same lines.");
  return el("div", {},
    el("p", { class: "difference-sum" }, el("span", { class: "is-minus" }, `−${removed}`), el("span", { class: "is-plus" }, `+${added}`),
      el("span", { class: "hint" }, count(added + removed, "line"))),
    table(steps, true));
}

function table(steps, isDifference) {
  const body = el("tbody");
  const rows = isDifference ? sections(steps) : steps;
  for (const row of rows.slice(0, ROW_LIMIT)) body.append(Array.isArray(row) ? gap(row) : line(row));
  const rest = rows.length - ROW_LIMIT;
  return el("div", { class: "lines", tabindex: "0", role: "group", "aria-label": isDifference ? "Differing lines" : "Lines" },
    el("table", {}, body), rest > 0 ? el("p", { class: "hint" }, `${count(rest, "more line is", "more lines are")} not shown.`) : null);
}

/// Joins the equal lines that are far from a change into arrays.
function sections(steps) {
  const isNear = new Uint8Array(steps.length);
  steps.forEach(({ kind }, index) => {
    if (kind === "=") return;
    isNear.fill(1, Math.max(0, index - CONTEXT), Math.min(steps.length, index + CONTEXT + 1));
  });
  const rows = [];
  steps.forEach((one, index) => {
    if (isNear[index]) rows.push(one);
    else if (index > 0 && !isNear[index - 1]) rows.at(-1).push(one);
    else rows.push([one]);
  });
  return rows;
}

const NAMES = { "+": "added", "-": "removed", "=": "" };

function line({ kind, text, left, right }) {
  const number = (value, isShown) => el("td", { class: "number" }, isShown && value ? String(value) : "");
  return el("tr", { class: kind === "+" ? "is-plus" : kind === "-" ? "is-minus" : "" },
    number(left, kind !== "+"), right === null ? null : number(right, kind !== "-"),
    el("td", { class: "sign" }, kind === "=" ? "" : el("span", { class: "unseen" }, NAMES[kind]), kind === "=" ? "" : kind === "+" ? "+" : "−"),
    el("td", { class: "line-text" }, text));
}

function gap(steps) {
  const button = el("button", { type: "button", class: "quiet", click: () => row.replaceWith(...steps.map(line)) },
    count(steps.length, "equal line"));
  const row = el("tr", { class: "gap" }, el("td", { colspan: "4" }, button));
  return row;
}
