// Interactive schedule: a canvas with the visible bars, and the actions of the mouse and the keys.
// The time to draw a frame depends on the number of pixels, not of bars: if several bars fall into one pixel, the pixel is
// drawn once, as opaque as it is filled. Must be loaded after schedule_data.js, schedule_why.js and schedule_lanes.js.
"use strict";

const LABEL_WIDTH = 190, AXIS_HEIGHT = 26, MOST_STRETCH = 8, MEMORY_COLOUR = "#56B4E9", LIMIT_COLOUR = "#D55E00";
const CHAIN_COLOUR = "#AA3377", MOST_CHAIN_LINES = 400;
const LEAST_SHARE = 0.05; // of its capacity, below which the row of a memory has its peak at the top

class Viewer {
  constructor(schedule, page) {
    this.schedule = schedule;
    this.page = page;
    this.canvas = page.getElementById("chart");
    this.scroll = page.getElementById("scroll");
    this.tip = page.getElementById("tip");
    this.context = this.canvas.getContext("2d");
    this.latency = Math.max(1, schedule.latency_cycles);
    // Rows of bars, then one for each memory.
    this.rows = [...schedule.rows, ...schedule.memory_rows.map((row) => ({ ...row, kind: "memory" }))];
    this.t0 = 0;
    this.t1 = this.latency;
    this.selected = -1;
    this.causes = new Causes(schedule);
    this.chain = [];
    this.place(1);
    page.title = schedule.title;
    page.getElementById("title").textContent = schedule.title;
    page.getElementById("totals").textContent = schedule.totals;
    this.hatches = schedule.categories.map((category) => this.hatch(category.hatch));
    this.legend();
    this.listen();
    this.resize();
  }

  rowHeight(row) {
    if (row.kind === "memory") return this.stretch * 26;
    return this.stretch * (row.kind === "core" ? 30 : Math.max(20, Math.min(9 * row.lanes + 4, 120)));
  }

  // Puts the rows below each other, `stretch` times their least height.
  place(stretch) {
    this.stretch = stretch;
    this.rowTop = [];
    let top = 4;
    for (const row of this.rows) {
      this.rowTop.push(top);
      top += this.rowHeight(row);
    }
    this.total = top + 4;
  }

  legend() {
    const { schedule, page } = this, hidden = [new Set(), new Set()];
    const boxes = [[], []];
    const refresh = () => {
      boxes.forEach((list, group) => list.forEach(({ box, key }) => {
        if (box.checked) hidden[group].delete(key); else hidden[group].add(key);
      }));
      schedule.show(hidden[0], hidden[1]);
      this.draw();
    };
    const add = (group, place, key, { name, short = name }, colour, hatch) => {
      const label = page.createElement("label"), box = page.createElement("input"), swatch = page.createElement("canvas");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", refresh);
      label.addEventListener("dblclick", (event) => {
        event.preventDefault();
        boxes[group].forEach((other) => { other.box.checked = other.key === key; });
        refresh();
      });
      swatch.className = "swatch";
      swatch.width = 14;
      swatch.height = 11;
      const context = swatch.getContext("2d");
      for (const fill of [colour, hatch]) {
        if (!fill) continue;
        context.fillStyle = fill;
        context.fillRect(0, 0, 14, 11);
      }
      label.title = name;
      label.append(box, swatch, group ? short : `${key} ${short}`);
      page.getElementById(place).append(label);
      boxes[group].push({ box, key });
    };
    schedule.layers.forEach((layer, key) => add(0, "layers", key, layer, layer.colour));
    schedule.categories.forEach((category, key) =>
      add(1, "categories", key, category, "#ddd", this.hatches[key]));
    for (const [id, checked] of [["show", true], ["hide", false]]) {
      page.getElementById(id).addEventListener("click", () => {
        boxes[0].forEach(({ box }) => { box.checked = checked; });
        refresh();
      });
    }
  }

  // Pattern for the canvas: lines of the given signs on a transparent background.
  hatch(signs) {
    if (!signs) return null;
    const tile = this.page.createElement("canvas"), context = tile.getContext("2d");
    tile.width = tile.height = 8;
    context.strokeStyle = context.fillStyle = "#000a";
    context.beginPath();
    const line = (x0, y0, x1, y1) => { context.moveTo(x0, y0); context.lineTo(x1, y1); };
    if (signs === "-" || signs === "+") line(0, 4, 8, 4);
    if (signs === "|" || signs === "+") line(4, 0, 4, 8);
    if (signs === "/" || signs === "x") { line(-2, 2, 2, -2); line(0, 8, 8, 0); line(6, 10, 10, 6); }
    if (signs === "x") { line(0, 0, 8, 8); }
    context.stroke();
    return context.createPattern(tile, "repeat");
  }

  resize() {
    const ratio = globalThis.devicePixelRatio || 1;
    this.width = Math.max(200, this.scroll.clientWidth);
    this.height = Math.max(100, this.scroll.clientHeight);
    // A few rows share the height of the window. Many rows keep their least height and can be scrolled.
    this.place(1);
    this.place(Math.max(1, Math.min(MOST_STRETCH, (this.height - AXIS_HEIGHT - 8) / (this.total - 8))));
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.page.getElementById("spacer").style.height = `${Math.max(0, this.total + AXIS_HEIGHT - this.height)}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  get plotWidth() { return this.width - LABEL_WIDTH; }
  get timeScale() { return this.plotWidth / (this.t1 - this.t0); }
  timeAt(x) { return this.t0 + (x - LABEL_WIDTH) / this.timeScale; }
  xOf(time) { return LABEL_WIDTH + (time - this.t0) * this.timeScale; }

  // [top, height] of a lane in the canvas.
  laneBox(lane) {
    const { row, lane: place } = this.schedule.lanes[lane], of = this.schedule.rows[row];
    const height = (this.rowHeight(of) - 4) / of.lanes;
    return [AXIS_HEIGHT + this.rowTop[row] + 2 + place * height - this.scroll.scrollTop, height];
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    globalThis.requestAnimationFrame(() => { this.asked = false; this.paint(); });
  }

  paint() {
    const { context, schedule } = this;
    context.globalAlpha = 1;
    context.fillStyle = "#fff";
    context.fillRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(LABEL_WIDTH, AXIS_HEIGHT, this.plotWidth, this.height - AXIS_HEIGHT);
    context.clip();
    this.paintGrid();
    const faded = this.selected >= 0 ? 0.3 : 1;
    schedule.lanes.forEach((_, lane) => {
      const [top, height] = this.laneBox(lane);
      if (top + height < AXIS_HEIGHT || top > this.height) return;
      drawLane(schedule, lane, this.t0, this.timeScale, this.plotWidth, (bar, x, width, share, whole) =>
        this.paintBar(bar, LABEL_WIDTH + x, top, width, height, share * faded, whole));
    });
    this.rows.forEach((row, number) => { if (row.kind === "memory") this.paintMemory(row, number); });
    if (this.selected >= 0) this.paintSelection();
    context.restore();
    this.paintFrame();
  }

  paintBar(bar, x, top, width, height, alpha, whole) {
    const { context, schedule } = this, layer = schedule.bar_layer[bar], hatch = this.hatches[schedule.bar_category[bar]];
    context.globalAlpha = alpha;
    context.fillStyle = layer >= 0 ? schedule.layers[layer].colour : "#999";
    context.fillRect(x, top, whole && width > 4 ? width - 0.7 : width, height);
    if (!whole || width < 5) return;
    if (hatch) {
      context.fillStyle = hatch;
      context.fillRect(x, top, width - 0.7, height);
    }
    if (schedule.bar_kind[bar] === NODE && width > 26 && height > 10 && alpha > 0.5) {
      const name = schedule.nodeName(schedule.bar_item[bar]);
      if (name.length * 6.2 + 4 > width) return;
      context.fillStyle = schedule.layers[layer].text;
      context.font = "10px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(name, x + width / 2, top + height / 2);
    }
  }

  paintMemory(row, number) {
    const { context } = this, height = this.rowHeight(row) - 6;
    const bottom = AXIS_HEIGHT + this.rowTop[number] + 3 + height - this.scroll.scrollTop;
    if (bottom < AXIS_HEIGHT || bottom - height > this.height) return;
    const isLow = row.peak_bits < LEAST_SHARE * row.capacity_bits, top = isLow ? row.peak_bits : row.capacity_bits;
    context.globalAlpha = 1;
    context.fillStyle = MEMORY_COLOUR;
    drawMemory(this.schedule, row, this.t0, this.timeScale, this.plotWidth, (x, width, bits) => {
      const tall = height * bits / Math.max(top, 1);
      context.fillRect(LABEL_WIDTH + x, bottom - tall, width, tall);
    });
    context.fillStyle = "#bbb";
    context.fillRect(LABEL_WIDTH, bottom, this.plotWidth, 0.6);
    if (isLow) return;
    context.fillStyle = LIMIT_COLOUR;
    for (let x = LABEL_WIDTH; x < this.width; x += 9) context.fillRect(x, bottom - height, 5, 1);
  }

  paintGrid() {
    const { context } = this;
    context.fillStyle = "#eee";
    for (const time of ticks(this.t0, this.t1, this.plotWidth)) context.fillRect(this.xOf(time), 0, 1, this.height);
  }

  // Draws, on top of all other bars, the selected bar and the bars that depend on it or on which it depends, with lines.
  paintSelection() {
    const { schedule, context } = this, bar = this.selected, item = schedule.bar_item[bar];
    this.outline(bar, "#000", 2);
    this.paintChain();
    if (schedule.bar_kind[bar] === TRANSFER) {
      for (const other of schedule.transferBars.get(item)) this.outline(other, "#000", 2);
      const producer = schedule.piece_producer[schedule.transfer_piece[item]];
      if (producer >= 0) this.link(schedule.nodeBar[producer], bar, "#D55E00");
      return;
    }
    const node = schedule.bar_kind[bar] === NODE ? item : schedule.stream_node[item];
    if (schedule.bar_kind[bar] === STREAM) { this.outline(schedule.nodeBar[node], "#000", 2); return; }
    for (const edge of schedule.incoming(node)) this.link(schedule.nodeBar[schedule.edge_source[edge]], bar, "#D55E00");
    for (const edge of schedule.outgoing(node)) this.link(bar, schedule.nodeBar[schedule.edge_target[edge]], "#0072B2");
    this.outline(bar, "#000", 2);
    context.globalAlpha = 1;
  }

  // Draws the visible part of the chain of causes of the selected bar, back to time 0: lines from the end of each cause (or
  // from its start, if the start was the cause) to the start of the next bar.
  paintChain() {
    const { causes, chain, context } = this;
    let lines = 0;
    for (let i = 1; i < chain.length && lines < MOST_CHAIN_LINES; i++) {
      const from = causes.barOf(chain[i]), to = causes.barOf(chain[i - 1]), time = this.schedule.bar_start[to];
      if (time < this.t0 || this.schedule.bar_start[from] > this.t1) continue;
      this.outline(from, CHAIN_COLOUR, 1.5);
      const [fromY, toY] = [from, to].map((bar) => {
        const [top, height] = this.laneBox(this.schedule.barLane[bar]);
        return top + height / 2;
      });
      context.globalAlpha = 1;
      context.fillStyle = CHAIN_COLOUR;
      context.fillRect(this.xOf(time) - 1, Math.min(fromY, toY), 2, Math.max(Math.abs(fromY - toY), 2));
      lines++;
    }
  }

  // Draws a line from the end of a bar to the start of another bar, which may be invisible.
  link(from, to, colour) {
    const { schedule, context } = this;
    for (const bar of [from, to]) if (bar !== this.selected) this.outline(bar, colour, 1);
    const [fromTop, fromHeight] = this.laneBox(schedule.barLane[from]), [toTop, toHeight] = this.laneBox(schedule.barLane[to]);
    const x0 = this.xOf(schedule.bar_end[from]), x1 = this.xOf(schedule.bar_start[to]);
    const y0 = fromTop + fromHeight / 2, y1 = toTop + toHeight / 2, bend = Math.max(12, Math.min(80, Math.abs(x1 - x0) / 2));
    context.globalAlpha = 0.85;
    context.strokeStyle = colour;
    context.lineWidth = 1.2;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
  }

  outline(bar, colour, width) {
    const { schedule, context } = this, [top, height] = this.laneBox(schedule.barLane[bar]);
    const x = Math.max(this.xOf(schedule.bar_start[bar]), LABEL_WIDTH - 4);
    const across = Math.max(2, Math.min(this.xOf(schedule.bar_end[bar]), this.width + 4) - x);
    if (schedule.bar_end[bar] >= this.t0 && schedule.bar_start[bar] <= this.t1) {
      this.paintBar(bar, x, top, across, height, 1, true);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x, top, across, height);
    }
  }

  // Draws names of rows and the axis, on top of rows that have been scrolled below them.
  paintFrame() {
    const { context } = this;
    context.globalAlpha = 1;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.rows.forEach((row, number) => {
      const middle = AXIS_HEIGHT + this.rowTop[number] + this.rowHeight(row) / 2 - this.scroll.scrollTop;
      if (middle < AXIS_HEIGHT - 10 || middle > this.height + 10) return;
      context.fillStyle = "#e6e6e6";
      context.fillRect(0, AXIS_HEIGHT + this.rowTop[number] - this.scroll.scrollTop, this.width, 0.6);
      context.fillStyle = "#222";
      context.textAlign = "left";
      context.fillText(row.name, 8, middle, LABEL_WIDTH - (row.kind === "memory" ? 90 : 60));
      context.fillStyle = "#777";
      context.textAlign = "right";
      const share = row.kind === "memory" ? row.peak_bits / row.capacity_bits : row.busy_cycles / this.latency;
      const words = `${(100 * share).toFixed(1)} %`;
      context.fillText(row.kind === "memory" ? `peak ${words}` : words, LABEL_WIDTH - 8, middle);
    });
    context.fillStyle = "#fff";
    context.fillRect(0, 0, this.width, AXIS_HEIGHT);
    context.fillStyle = "#444";
    context.fillRect(LABEL_WIDTH, AXIS_HEIGHT - 1, this.plotWidth, 1);
    context.textAlign = "left";
    context.fillText("busy", LABEL_WIDTH - 36, AXIS_HEIGHT / 2);
    context.fillText("cycles", 8, AXIS_HEIGHT / 2);
    let free = LABEL_WIDTH;
    for (const time of ticks(this.t0, this.t1, this.plotWidth)) {
      const x = this.xOf(time);
      if (x < LABEL_WIDTH) continue;
      context.fillRect(x, AXIS_HEIGHT - 6, 1, 5);
      // A label is to the right of its tick, at the right edge to the left of it, and never covers another label.
      const text = time.toLocaleString("en"), across = context.measureText(text).width;
      const left = x + 3 + across > this.width ? x - 3 - across : x + 3;
      if (left < free) continue;
      context.fillText(text, left, AXIS_HEIGHT / 2 - 1);
      free = left + across + 6;
    }
  }

  // --- actions of the user ---

  zoom(factor, x = LABEL_WIDTH + this.plotWidth / 2) {
    const time = this.timeAt(Math.max(x, LABEL_WIDTH));
    const span = Math.max(4, Math.min(this.latency * 1.02, (this.t1 - this.t0) * factor));
    this.t0 = time - (time - this.t0) * span / (this.t1 - this.t0);
    this.t1 = this.t0 + span;
    this.move(0);
  }

  move(cycles) {
    const span = this.t1 - this.t0, margin = 0.02 * span;
    this.t0 = Math.max(-margin, Math.min(this.t0 + cycles, this.latency - span + margin));
    this.t1 = this.t0 + span;
    this.draw();
  }

  barUnder(x, y) {
    const { schedule } = this;
    if (x < LABEL_WIDTH || y < AXIS_HEIGHT) return -1;
    const down = y - AXIS_HEIGHT + this.scroll.scrollTop, row = firstAbove(this.rowTop, down, 0, this.rowTop.length) - 1;
    const lane = schedule.lanes.findIndex((_, number) => {
      const [top, height] = this.laneBox(number);
      return schedule.lanes[number].row === row && y >= top - 2 && y < top + height;
    });
    return lane < 0 ? -1 : schedule.barAt(lane, this.timeAt(x), 2 / this.timeScale);
  }

  // Text about the item below the cursor; null if there is no item.
  wordsUnder(x, y) {
    const bar = this.barUnder(x, y);
    if (bar >= 0) return this.schedule.describe(bar);
    if (x < LABEL_WIDTH || y < AXIS_HEIGHT) return null;
    const down = y - AXIS_HEIGHT + this.scroll.scrollTop, row = this.rows[firstAbove(this.rowTop, down, 0, this.rowTop.length) - 1];
    return row && row.kind === "memory" ? this.schedule.describeMemory(row, this.timeAt(x)) : null;
  }

  select(bar) {
    this.selected = bar;
    this.chain = bar < 0 ? [] : this.causes.chain(this.causes.itemOf(bar));
    showWhy(this.causes, bar, this.page, (other) => this.goToBar(other));
    this.draw();
  }

  // Makes the selected bar visible, with all bars that depend on it or on which it depends.
  fit() {
    if (this.selected < 0) return;
    const { schedule } = this;
    let first = schedule.bar_start[this.selected], last = schedule.bar_end[this.selected];
    for (const bar of schedule.joined(this.selected)) {
      first = Math.min(first, schedule.bar_start[bar]);
      last = Math.max(last, schedule.bar_end[bar]);
    }
    const margin = Math.max(2, 0.03 * (last - first));
    this.t0 = first - margin;
    this.t1 = last + margin;
    this.draw();
  }

  // Makes a CN visible and selects it.
  goTo(node) { this.goToBar(this.schedule.nodeBar[node]); }

  goToBar(bar) {
    const { schedule } = this, span = Math.min(this.t1 - this.t0, 40 * schedule.bar_duration[bar]);
    this.t0 = schedule.bar_start[bar] - span / 2;
    this.t1 = this.t0 + span;
    this.scroll.scrollTop = Math.max(0, this.rowTop[schedule.lanes[schedule.barLane[bar]].row] - this.height / 2);
    this.select(bar);
    this.move(0);
  }

  showTip(words, x, y) {
    if (!words) { this.tip.style.display = "none"; return; }
    this.tip.replaceChildren();
    const table = this.page.createElement("table");
    for (const [name, value] of words) {
      if (value === undefined) {
        const head = this.page.createElement("b");
        head.textContent = name;
        this.tip.append(head);
        continue;
      }
      const line = table.insertRow();
      line.insertCell().textContent = name;
      line.insertCell().textContent = value;
    }
    this.tip.append(table);
    this.tip.style.display = "block";
    const { offsetWidth, offsetHeight } = this.tip, view = globalThis;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, view.innerWidth - offsetWidth - 8))}px`;
    this.tip.style.top = `${y + offsetHeight + 22 > view.innerHeight ? Math.max(4, y - offsetHeight - 10) : y + 14}px`;
  }

  listen() {
    const { canvas, page } = this, on = (id, what) => page.getElementById(id).addEventListener("click", what);
    let held = null;
    on("in", () => this.zoom(0.5));
    on("out", () => this.zoom(2));
    on("fit", () => this.fit());
    on("last", () => this.goToBar(this.causes.last()));
    on("all", () => { this.t0 = 0; this.t1 = this.latency; this.draw(); });
    page.getElementById("find").addEventListener("change", (event) => {
      const text = event.target.value.trim(), [node, words] = text ? this.schedule.search(text) : [-1, ""];
      page.getElementById("found").textContent = words;
      if (node >= 0) this.goTo(node);
    });
    globalThis.addEventListener("resize", () => this.resize());
    this.scroll.addEventListener("scroll", () => this.draw());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.move((event.deltaX || event.deltaY) / this.timeScale);
      } else this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) / 300), event.offsetX);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) {
        this.showTip(this.wordsUnder(event.offsetX, event.offsetY), event.clientX, event.clientY);
        return;
      }
      const dx = event.clientX - held.x, dy = event.clientY - held.y;
      if (!held.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
      held = { x: event.clientX, y: event.clientY, moved: true };
      this.showTip(null);
      this.scroll.scrollTop -= dy;
      this.move(-dx / this.timeScale);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held && !held.moved) this.select(this.barUnder(event.offsetX, event.offsetY));
      held = null;
    });
    canvas.addEventListener("pointerleave", () => this.showTip(null));
    page.addEventListener("keydown", (event) => {
      if (event.target.tagName === "INPUT" && event.target.type === "search") return;
      const step = (this.t1 - this.t0) / 8;
      const keys = {
        "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1 / 0.7),
        ArrowLeft: () => this.move(-step), ArrowRight: () => this.move(step),
        ArrowUp: () => { this.scroll.scrollTop -= 60; }, ArrowDown: () => { this.scroll.scrollTop += 60; },
        f: () => this.fit(), c: () => this.goToBar(this.causes.last()),
        0: () => { this.t0 = 0; this.t1 = this.latency; this.draw(); }, Escape: () => this.select(-1),
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) { keys[event.key](); event.preventDefault(); }
    });
  }
}

async function start(page) {
  const schedule = await decode(JSON.parse(page.getElementById("schedule").textContent));
  return new Viewer(schedule, page);
}

if (typeof module !== "undefined") module.exports = { drawLane, start, ticks, Viewer };
else start(document).then((viewer) => { globalThis.viewer = viewer; });
