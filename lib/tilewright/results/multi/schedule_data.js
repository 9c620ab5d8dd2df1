// Data of the interactive schedule: functions that decode the data that page.py wrote and search in them.
"use strict";

const NODE = 0, TRANSFER = 1, STREAM = 2;

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Column: base64 of deflated bytes, first bytes of all values first. With "delta", each value is a difference to the last.
async function decodeColumn(column) {
  const packed = Uint8Array.from(atob(column.data), (letter) => letter.charCodeAt(0));
  const planes = await inflate(packed), count = column.length, size = column.type === "i4" ? 4 : 8;
  const bytes = new Uint8Array(count * size);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0, from = plane * count; i < count; i++) bytes[i * size + plane] = planes[from + i];
  }
  const values = column.type === "i4" ? new Int32Array(bytes.buffer) : new Float64Array(bytes.buffer);
  if (column.delta) for (let i = 1; i < count; i++) values[i] += values[i - 1];
  return values;
}

async function decode(payload) {
  const columns = {};
  for (const [name, column] of Object.entries(payload.columns)) columns[name] = await decodeColumn(column);
  return new Schedule(payload, columns);
}

// First place in a rising list, from `low` to below `high`, whose value is larger than `value` (or equal, with `orEqual`).
function firstAbove(values, value, low, high, orEqual = false) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > value || (orEqual && values[middle] === value)) high = middle; else low = middle + 1;
  }
  return low;
}

class Schedule {
  constructor(payload, columns) {
    Object.assign(this, payload, columns);
    const bars = this.bar_start.length;
    this.bar_end = this.bar_start.map((start, bar) => start + this.bar_duration[bar]);
    this.nodeCount = this.node_group.length;
    this.nodeBar = new Int32Array(this.nodeCount);
    this.barLane = new Int32Array(bars);
    this.lanes.forEach((lane, number) => {
      for (let bar = lane.first; bar < lane.last; bar++) {
        this.barLane[bar] = number;
        if (this.bar_kind[bar] === NODE) this.nodeBar[this.bar_item[bar]] = bar;
      }
    });
    this.transferBars = new Map();
    for (let bar = 0; bar < bars; bar++) {
      if (this.bar_kind[bar] !== TRANSFER) continue;
      const others = this.transferBars.get(this.bar_item[bar]);
      if (others) others.push(bar); else this.transferBars.set(this.bar_item[bar], [bar]);
    }
    // Edges are sorted by target. This index has the places of the edges of each source.
    this.sourceFirst = new Int32Array(this.nodeCount + 1);
    for (const source of this.edge_source) this.sourceFirst[source + 1]++;
    for (let node = 0; node < this.nodeCount; node++) this.sourceFirst[node + 1] += this.sourceFirst[node];
    const next = this.sourceFirst.slice();
    this.sourceEdge = new Int32Array(this.edge_source.length);
    this.edge_source.forEach((source, edge) => { this.sourceEdge[next[source]++] = edge; });
    this.show(new Set(), new Set());
  }

  // Selects the bars to draw: all bars except those of hidden layers or categories.
  show(hiddenLayers, hiddenCategories) {
    this.hiddenLayers = hiddenLayers;
    this.hiddenCategories = hiddenCategories;
    const everything = !hiddenLayers.size && !hiddenCategories.size;
    this.shown = this.lanes.map(({ first, last }) => {
      let bars = Int32Array.from({ length: last - first }, (_, i) => first + i);
      if (!everything) bars = bars.filter((bar) => this.isShown(bar));
      const starts = new Float64Array(bars.length), ends = new Float64Array(bars.length);
      const busy = new Float64Array(bars.length + 1);
      bars.forEach((bar, i) => {
        starts[i] = this.bar_start[bar];
        ends[i] = this.bar_end[bar];
        busy[i + 1] = busy[i] + this.bar_duration[bar];
      });
      return { bars, starts, ends, busy };
    });
  }

  isShown(bar) {
    return !this.hiddenLayers.has(this.bar_layer[bar]) && !this.hiddenCategories.has(this.bar_category[bar]);
  }

  // Bar of a lane at a time, or at most `slack` cycles away from this time; -1 if there is none.
  barAt(lane, time, slack = 0) {
    const { bars, starts, ends } = this.shown[lane];
    const place = firstAbove(ends, time, 0, ends.length);
    let best = -1, distance = slack;
    for (const near of [place - 1, place]) {
      if (near < 0 || near >= bars.length) continue;
      const away = Math.max(starts[near] - time, time - ends[near], 0);
      if (away <= distance) { best = bars[near]; distance = away; }
    }
    return best;
  }

  layerOf(node) {
    return firstAbove(this.first_node, node, 0, this.first_node.length) - 1;
  }

  nodeName(node) {
    const layer = this.layerOf(node);
    return `${layer}.${node - this.first_node[layer]}`;
  }

  // Edges that lead to a CN, and edges that begin at it.
  incoming(node) {
    const first = firstAbove(this.edge_target, node, 0, this.edge_target.length, true);
    const last = firstAbove(this.edge_target, node, first, this.edge_target.length);
    return Array.from({ length: last - first }, (_, i) => first + i);
  }

  outgoing(node) {
    return Array.from(this.sourceEdge.subarray(this.sourceFirst[node], this.sourceFirst[node + 1]));
  }

  // Bars that depend on a bar or on which it depends: predecessors and successors of a CN, the CN that made the data of a
  // transfer, the CN of a stream.
  joined(bar) {
    const item = this.bar_item[bar], kind = this.bar_kind[bar];
    if (kind === STREAM) return [this.nodeBar[this.stream_node[item]]];
    if (kind === TRANSFER) {
      const producer = this.piece_producer[this.transfer_piece[item]];
      return producer >= 0 ? [this.nodeBar[producer]] : [];
    }
    const nodes = [...this.incoming(item).map((edge) => this.edge_source[edge]),
      ...this.outgoing(item).map((edge) => this.edge_target[edge])];
    return nodes.map((node) => this.nodeBar[node]);
  }

  // CN for a text such as 3.17, or the first CN of the first layer whose name contains the text; -1 if there is none.
  find(text) {
    const parts = /^(\d+)\.(\d+)$/.exec(text);
    const layer = parts ? Number(parts[1]) : this.layers.findIndex((one) => one.name.includes(text));
    const within = parts ? Number(parts[2]) : 0;
    if (layer < 0 || layer >= this.layers.length) return -1;
    const node = this.first_node[layer] + within;
    return node < this.first_node[layer + 1] ? node : -1;
  }

  // Result of a search for a text: [CN, message]. The CN is -1 if nothing was found.
  search(text) {
    const node = this.find(text);
    if (node < 0) return [-1, `nothing found: no layer has “${text}” in its name, and no computation node has this number`];
    const found = this.layers.filter((one) => one.name.includes(text)).length;
    const others = /^\d+\.\d+$/.test(text) || found < 2 ? "" : `, the first of ${found} layers`;
    return [node, `CN ${this.nodeName(node)} of ${this.layers[this.layerOf(node)].name}${others}`];
  }

  // Place of the step of a memory row that is valid at a time; -1 before the first step.
  stepAt(row, time) {
    return Math.max(firstAbove(this.memory_time, time, row.first, row.last) - 1, row.first - 1);
  }

  // Bits in a memory at a time.
  describeMemory(row, time) {
    const step = this.stepAt(row, time), bits = step < row.first ? 0 : this.memory_bits[step];
    const share = `${number(100 * bits / row.capacity_bits, 3)} %`;
    return [[row.name], ["cycle", number(Math.max(0, Math.floor(time)))],
      ["holds", `${number(bits)} of ${number(row.capacity_bits)} bits (${share})`], ["whole run", row.text]];
  }

  describe(bar) {
    const kind = this.bar_kind[bar], item = this.bar_item[bar], lines = [];
    if (kind === NODE) this.describeNode(item, lines);
    else if (kind === TRANSFER) this.describeTransfer(item, lines);
    else {
      lines.push([`stream of CN ${this.nodeName(this.stream_node[item])}`], ["bits", number(this.stream_bits[item])]);
      lines.push(["rate", `${number(this.stream_rate[item])} bits per cycle`]);
    }
    lines.push(["start", number(this.bar_start[bar])], ["end", number(this.bar_end[bar])]);
    lines.push([kind === NODE ? "runtime" : "duration", `${number(this.bar_duration[bar])} cycles`]);
    if (this.cause_kind && kind !== STREAM) {
      this.why ??= new Causes(this);
      lines.push(["began", this.why.words(this.why.itemOf(bar))]);
    }
    return lines;
  }

  describeNode(node, lines) {
    const layer = this.layers[this.layerOf(node)], core = this.rows[this.lanes[this.barLane[this.nodeBar[node]]].row];
    lines.push([`CN ${this.nodeName(node)}`], ["layer", layer.name], ["operator", layer.operator_type]);
    lines.push(["core", core.name], ["group", String(this.node_group[node])]);
    const tile = layer.tile_dimensions.map((name, i) =>
      `${name} ${this[`tile_start_${i}`][node]} to ${this[`tile_end_${i}`][node] - 1}`);
    if (tile.length) lines.push(["tile", tile.join(", ")]);
    lines.push(["energy", `${number(this.energy_values[this.node_energy[node]] / 1e6, 6)} µJ on the core`]);
    const from = this.incoming(node), to = this.outgoing(node), shown = 6;
    const names = from.slice(0, shown).map((edge) =>
      `${this.nodeName(this.edge_source[edge])} (${number(this.edge_bits[edge])} bits)`);
    if (from.length) lines.push(["inputs from", names.join(", ") + (from.length > shown ? `, ${from.length - shown} more` : "")]);
    if (to.length) lines.push(["needed by", `${to.length} CN${to.length > 1 ? "s" : ""}`]);
  }

  describeTransfer(transfer, lines) {
    const piece = this.transfer_piece[transfer], producer = this.piece_producer[piece];
    const listeners = Array.from(this.listener.subarray(this.listener_first[transfer], this.listener_first[transfer + 1]));
    const to = [transfer, ...listeners].map((one) =>
      `${this.cores[this.transfer_target_core[one]]} (${this.memories[this.transfer_target_memory[one]]})`);
    const source = `${this.cores[this.transfer_source_core[transfer]]} (${this.memories[this.transfer_source_memory[transfer]]})`;
    lines.push([this.categories[this.transfer_category[transfer]].name], ["tensor", this.tensors[this.piece_tensor[piece]]]);
    if (producer >= 0) lines.push(["made by", `CN ${this.nodeName(producer)}`]);
    lines.push(["bits", number(this.piece_bits[piece])], ["from", source], ["to", to.join("; ")]);
    lines.push(["cause", this.causes[this.transfer_cause[transfer]]]);
    lines.push(["rate", `${number(this.transfer_rate[transfer])} bits per cycle`]);
  }
}

function number(value, digits = 15) {
  return value.toLocaleString("en", { maximumSignificantDigits: digits });
}

if (typeof module !== "undefined") module.exports = { decode, firstAbove, Schedule, NODE, TRANSFER, STREAM };
