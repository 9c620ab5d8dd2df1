// Figures: bars with numbers, stacks, and points between two axes. Colours are never the only distinction: parts also
// have patterns, points also have shapes and names.
"use strict";

const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#87005a", "#4b4b0f", "#7d8794", "#a587ff"];
const PATTERNS = ["plain", "rising", "falling", "dots", "lying", "crossed", "standing"];
const BROKEN = 3;

// Colour and pattern of a part, by its place in a list of all parts.
function lookOf(place) {
  return { colour: COLOURS[place % COLOURS.length], pattern: PATTERNS[place % PATTERNS.length] };
}

const patterns = new Map();

// Fill of a part. The pattern is made once, in an invisible drawing without size.
function fillOf(place) {
  const { colour, pattern } = lookOf(place), id = `fill-${place % (COLOURS.length * PATTERNS.length)}`;
  if (!patterns.has(id)) {
    const lines = {
      plain: [], rising: ["M0 8L8 0M-2 2L2 -2M6 10L10 6"], falling: ["M0 0L8 8M-2 6L2 10M6 -2L10 2"], lying: ["M0 4H8"],
      standing: ["M4 0V8"], crossed: ["M0 8L8 0M0 0L8 8"], dots: ["M4 4h.1M0 0h.1M8 0h.1M0 8h.1M8 8h.1"],
    }[pattern];
    const marks = lines.map((path) => shape("path", { d: path, stroke: "#fff", "stroke-width": pattern === "dots" ? 3 : 1.6, "stroke-linecap": "round", fill: "none" }));
    patterns.set(id, shape("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
      shape("rect", { width: 8, height: 8, fill: colour }), marks));
    let store = document.getElementById("patterns");
    if (!store) {
      store = shape("svg", { id: "patterns", width: 0, height: 0, "aria-hidden": "true", style: "position:absolute" });
      document.body.append(store);
    }
    store.append(patterns.get(id));
  }
  return `url(#${id})`;
}

function legend(names, shown = names.map(() => true)) {
  return element("ul", { class: "legend" }, names.map((name, place) => (shown[place] ? element("li", {},
    shape("svg", { width: 26, height: 14, "aria-hidden": "true" }, shape("rect", { width: 26, height: 14, fill: fillOf(place), stroke: "var(--mark)" })), name) : null)));
}

// Bars [name, value, parts [[place in legend, value]]] with value and share. If the first bar is much longer than the
// second, the axis is broken: the first bar has a gap, and a note says so.
function barTable(caption, unit, bars, total) {
  const values = bars.map((bar) => bar[1]).sort((a, b) => b - a);
  const isBroken = values.length > 1 && values[1] > 0 && values[0] > BROKEN * values[1];
  const end = isBroken ? values[1] * 1.25 : values[0] || 1;
  const rows = bars.map(([name, value, parts]) => {
    const isCut = value > end, width = Math.max(value > 0 ? 0.6 : 0, 100 * Math.min(1, value / end));
    const drawn = [];
    let left = 0;
    for (const [place, part] of parts) {
      const wide = value ? (width * part) / value : 0;
      if (wide > 0) drawn.push(shape("rect", { x: `${left}%`, width: `${wide}%`, height: 14, fill: fillOf(place) }));
      left += wide;
    }
    if (isCut) {
      drawn.push(shape("svg", { x: "82%", width: 20, height: 14, overflow: "visible" },
        shape("path", { d: "M2 16L8 -2H14L8 16Z", fill: "var(--ground)" }), shape("path", { d: "M2 16L8 -2M8 16L14 -2", stroke: "var(--mark)", "stroke-width": 1.5 })));
    }
    const told = `${name}: ${numberText(value)} ${unit}, ${shareText(value, total)}`;
    const bar = shape("svg", { class: "stack", role: "img", "aria-label": told, height: 14 }, shape("title", {}, told), drawn);
    return element("tr", {}, element("td", {}, name), element("td", { class: "bar" }, bar),
      element("td", { class: "number" }, numberText(value)), element("td", { class: "number" }, shareText(value, total)));
  });
  const table = element("table", { class: "bars" }, element("caption", { class: "faint", style: "text-align:left" }, `${caption} [${unit}]`), element("tbody", {}, rows));
  const note = isBroken ? element("p", { class: "faint" }, "The axis is broken: bars with // are longer than drawn; all other bars have the same scale.") : null;
  return element("div", {}, table, note);
}

// One bar of stacked parts, as long as its share of `most`. Its text also names parts that are too short to be visible.
function stack(values, most, words, unit) {
  const total = sum(values), told = words.map((word, place) => [word, values[place]]).filter(([, value]) => value > 0)
    .map(([word, value]) => `${word} ${numberText(value)} ${unit} (${shareText(value, total)})`).join(", ");
  const rects = [];
  let left = 0;
  values.forEach((value, place) => {
    const wide = most ? (100 * value) / most : 0;
    if (wide > 0) rects.push(shape("rect", { x: `${left}%`, y: 2, width: `${wide}%`, height: 14, fill: fillOf(place), stroke: "var(--ground)", "stroke-width": 0.5 }));
    left += wide;
  });
  return shape("svg", { class: "stack", role: "img", "aria-label": told }, shape("title", {}, told), rects);
}

// About `count` round numbers between two ends, at least two if the ends differ.
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const steps = [0.2, 0.5, 1, 2, 5, 10].map((one) => one * power);
  let found = [];
  for (let place = steps.findIndex((one) => one >= raw); place >= 0 && found.length < 2; place--) {
    const step = steps[place];
    found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

// Texts of ticks, with as many digits as are needed to distinguish them.
function tickTexts(values) {
  for (let digits = 3; digits < 16; digits++) {
    const texts = values.map((value) => numberText(value, digits));
    if (new Set(texts).size === values.length) return texts;
  }
  return values.map(String);
}

function logTicks(low, high, count) {
  const found = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  for (const parts of [[1, 2, 5], [1, 3], [1]]) {
    found.length = 0;
    for (let power = first; power <= last; power++) {
      for (const part of parts) {
        const value = Number((part * 10 ** power).toPrecision(3));
        if (value >= low * 0.999999 && value <= high * 1.000001) found.push(value);
      }
    }
    if (found.length <= count) break;
  }
  while (found.length > count) found.splice(0, found.length, ...found.filter((_, place) => place % 2 === 0));
  if (found.length > 2 || (found.length === 2 && high / low >= 100)) return found;
  return ticks(low, high, Math.min(count, 6)).filter((value) => value > 0);
}

// Axis that fits its values: a function from values to places between 0 and 1.
function axis(values, isLog, count) {
  let low = Math.min(...values), high = Math.max(...values);
  if (isLog) {
    const room = Math.max((high / low) ** 0.06, 1.03);
    low /= room;
    high *= room;
    return { low, high, ticks: logTicks(low, high, count), at: (value) => Math.log(value / low) / Math.log(high / low) };
  }
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  low = low >= 0 && low - room < 0 ? 0 : low - room;
  high += room;
  return { low, high, ticks: ticks(low, high, count), at: (value) => (value - low) / (high - low) };
}

const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

// Points {x, y, name, told, shape, strong, href, size} between axes {words, log}; lines are lists of [x, y] in values.
// A name is written only if there is room beside the point; the table below has all names. A point can have the name "".
class Scatter {
  constructor(caption, points, across, up, { lines = [], extra = [], height = 460 } = {}) {
    Object.assign(this, { caption, points, across, up, lines, extra, height });
    this.node = element("div", { class: "chart" });
    // The figure fills the available width, and is drawn again if the width changes.
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.node);
  }

  draw() {
    const width = Math.round(this.node.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    const big = parseFloat(getComputedStyle(document.body).fontSize) / 15;
    const height = Math.round(Math.min(this.height * big, Math.max(260, width)));
    const box = { left: 64 * big, top: 14, right: width - 40 * big, bottom: height - 46 * big };
    const xs = [...this.points.map((one) => one.x), ...this.extra.map((one) => one[0])];
    const ys = [...this.points.map((one) => one.y), ...this.extra.map((one) => one[1])];
    const x = axis(xs, this.across.log, Math.max(3, Math.floor((box.right - box.left) / (75 * big))));
    const y = axis(ys, this.up.log, Math.max(3, Math.floor((box.bottom - box.top) / (45 * big))));
    const px = (value) => box.left + x.at(value) * (box.right - box.left);
    const py = (value) => box.bottom - y.at(value) * (box.bottom - box.top);
    const font = `font-size:${Math.round(12 * big)}px`;
    const clip = `clip-${Scatter.count++}`;
    // On a logarithmic axis, round numbers can be close together. A tick whose text would touch the last text has no text.
    const names = new Map([x.ticks, y.ticks].flatMap((values) => { const texts = tickTexts(values); return values.map((value, i) => [value, texts[i]]); }));
    const wide = (value) => names.get(value).length * 7.5 * big;
    const apart = (values, place, room) => values.filter((value, i) => i === 0 || Math.abs(place(value) - place(values[i - 1])) > room(value));
    const across = apart(x.ticks, px, wide), up = apart(y.ticks, py, () => 16 * big);
    const grid = [
      ...across.flatMap((value) => [shape("path", { d: `M${px(value)} ${box.top}V${box.bottom}`, stroke: "var(--grid)" }),
        shape("text", { x: px(value), y: box.bottom + 16 * big, "text-anchor": "middle", style: font, class: "tick" }, names.get(value))]),
      ...up.flatMap((value) => [shape("path", { d: `M${box.left} ${py(value)}H${box.right}`, stroke: "var(--grid)" }),
        shape("text", { x: box.left - 6, y: py(value) + 4 * big, "text-anchor": "end", style: font, class: "tick" }, names.get(value))]),
      shape("path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, stroke: "var(--faint)", fill: "none" }),
      shape("text", { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle", style: font, class: "faint" }, this.across.words),
      shape("text", { x: 0, y: 0, transform: `translate(${12 * big} ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", style: font, class: "faint" }, this.up.words),
    ];
    const lines = this.lines.map((line) => shape("path", { "clip-path": `url(#${clip})`, d: `M${line.map(([a, b]) => `${px(a)} ${py(b)}`).join("L")}`, fill: "none", stroke: "var(--front)", "stroke-width": 1.5, "stroke-dasharray": "5 3" }));
    const marks = this.points.map((point) => this.mark(point, px(point.x), py(point.y), big));
    const root = shape("svg", { width, height, role: "group", "aria-label": this.caption },
      shape("clipPath", { id: clip }, shape("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top })), grid, lines, marks);
    this.node.replaceChildren(root);
    // Small boxes along the lines keep names away from the lines.
    const taken = this.lines.flatMap((line) => line.slice(1).flatMap(([x1, y1], place) => {
      const [a, b, c, d] = [px(line[place][0]), py(line[place][1]), px(x1), py(y1)], steps = Math.ceil(Math.hypot(c - a, d - b) / 4) || 1;
      return Array.from({ length: steps + 1 }, (_, i) => ({ x: a + ((c - a) * i) / steps - 1, y: b + ((d - b) * i) / steps - 1, w: 2, h: 2 }));
    }));
    this.label(root, box, px, py, big, font, taken);
  }

  mark(point, x, y, big) {
    const r = (point.size || 6) * big, kind = point.shape || "circle";
    const look = { fill: point.strong ? "var(--front)" : "var(--ground)", stroke: point.strong ? "var(--front)" : "var(--mark)", "stroke-width": 1.6 * big };
    const drawn = kind === "circle" ? shape("circle", { cx: x, cy: y, r, ...look })
      : shape("path", { d: `M${x} ${y - 1.35 * r}L${x + 1.35 * r} ${y}L${x} ${y + 1.35 * r}L${x - 1.35 * r} ${y}Z`, ...look });
    const ring = shape("circle", { class: "ring", cx: x, cy: y, r: r + 5 });
    const inner = [shape("title", {}, point.told), ring, drawn];
    if (point.href) return shape("a", { href: point.href, "aria-label": point.told }, inner);
    return shape("g", { tabindex: "0", role: "img", "aria-label": point.told }, inner);
  }

  label(root, box, px, py, big, font, taken) {
    for (const one of this.points) {
      const r = (one.size || 6) * big * 1.35 + 1;
      taken.push({ x: px(one.x) - r, y: py(one.y) - r, w: 2 * r, h: 2 * r });
    }
    for (const point of this.points.filter((one) => one.name)) {
      const text = shape("text", { style: font, class: "label", "aria-hidden": "true" }, point.name);
      root.append(text);
      const w = text.getComputedTextLength() + 2, h = 14 * big, r = (point.size || 6) * big * 1.35 + 3, x = px(point.x), y = py(point.y);
      const places = [[x + r, y - h / 2], [x - r - w, y - h / 2], [x - w / 2, y - r - h], [x - w / 2, y + r], [x + r * 0.7, y - r - h * 0.8],
        [x + r * 0.7, y + r], [x - r * 0.7 - w, y - r - h * 0.8], [x - r * 0.7 - w, y + r]].map(([left, top]) => ({ x: left, y: top, w, h }));
      const free = places.find((one) => one.x >= box.left + 2 && one.x + one.w <= this.width - 2 && one.y >= box.top - 12 && one.y + one.h <= box.bottom
        && !taken.some((other) => overlaps(one, other)));
      if (!free) {
        text.remove();
        continue;
      }
      taken.push(free);
      text.setAttribute("x", free.x);
      text.setAttribute("y", free.y + h * 0.8);
    }
  }
}
Scatter.count = 0;
