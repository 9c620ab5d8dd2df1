// Causes of starts: the cause of each CN and transfer, and the chain of causes back to time 0.
// Must be loaded after schedule_data.js.
"use strict";

// Items are CNs, then transfers. A transfer that only receives a broadcast has no bar on links where the broadcast has one.
class Causes {
  constructor(schedule) {
    this.schedule = schedule;
    this.known = schedule.cause_kind !== undefined;
    this.mainOf = new Map();
    for (let main = 0; main + 1 < schedule.listener_first.length; main++) {
      for (let i = schedule.listener_first[main]; i < schedule.listener_first[main + 1]; i++) {
        this.mainOf.set(schedule.listener[i], main);
      }
    }
  }

  // The item of a bar; that of a stream is its CN.
  itemOf(bar) {
    const { schedule } = this, item = schedule.bar_item[bar];
    if (schedule.bar_kind[bar] === TRANSFER) return schedule.nodeCount + item;
    return schedule.bar_kind[bar] === NODE ? item : schedule.stream_node[item];
  }

  barOf(item) {
    const { schedule } = this, transfer = item - schedule.nodeCount;
    if (transfer < 0) return schedule.nodeBar[item];
    return (schedule.transferBars.get(transfer) || schedule.transferBars.get(this.mainOf.get(transfer)))[0];
  }

  startOf(item) { return this.schedule.bar_start[this.barOf(item)]; }

  // Chain of items: the item, its cause, the cause of this cause, and so on, back to an item that began at time 0. Empty if
  // causes are not known.
  chain(item) {
    const found = this.known ? [item] : [];
    for (let at = item; this.known && this.schedule.cause_item[at] >= 0; found.push(at)) at = this.schedule.cause_item[at];
    return found;
  }

  name(item) {
    const { schedule } = this, transfer = item - schedule.nodeCount;
    if (transfer < 0) return `CN ${schedule.nodeName(item)}`;
    const tensor = schedule.tensors[schedule.piece_tensor[schedule.transfer_piece[transfer]]];
    return `${tensor} (${schedule.categories[schedule.transfer_category[transfer]].name})`;
  }

  // Text on the cause of the start of an item.
  words(item) {
    const { schedule } = this, kind = schedule.start_causes[schedule.cause_kind[item]], cause = schedule.cause_item[item];
    if (cause < 0) return "at the beginning";
    const isNode = cause < schedule.nodeCount, name = this.name(cause), began = this.startOf(cause) === this.startOf(item);
    const said = {
      data: isNode ? `${name} had made its data` : `${name} had arrived`,
      core: began ? `the core began ${name} and could prepare the next` : `the core was busy with ${name}`,
      memory: `${name} ended and left room`,
      link: `${name} ended and left width`,
      order: began ? `${name} had to begin first` : `${name} came first`,
      other: `${name} ended`,
    };
    return `${kind}: ${said[kind]}`;
  }

  // Parts of a chain: [name of a core or kind of data, cycles], the largest first. The sum is the start of the first item.
  parts(chain) {
    const { schedule } = this, cycles = new Map();
    for (let i = 1; i < chain.length; i++) {
      const transfer = chain[i] - schedule.nodeCount, lasted = this.startOf(chain[i - 1]) - this.startOf(chain[i]);
      const name = transfer < 0
        ? `computing on ${schedule.rows[schedule.lanes[schedule.barLane[this.barOf(chain[i])]].row].name}`
        : schedule.categories[schedule.transfer_category[transfer]].name;
      if (lasted) cycles.set(name, (cycles.get(name) || 0) + lasted);
    }
    return [...cycles].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  }

  // Bar that ends last; the first one if several end last.
  last() {
    const { bar_end: ends } = this.schedule;
    let found = -1;
    for (let bar = 0; bar < ends.length; bar++) if (found < 0 || ends[bar] > ends[found]) found = bar;
    return found;
  }
}

// Writes into the side panel why the selected bar began. A click on a step of the chain shows the bar of this step.
const SHOWN_STEPS = 8;

function showWhy(causes, bar, page, goTo) {
  const place = page.getElementById("why");
  place.replaceChildren();
  if (bar < 0 || !causes.known) return;
  const add = (tag, text, to = place) => {
    const made = page.createElement(tag);
    made.textContent = text;
    to.append(made);
    return made;
  };
  const chain = causes.chain(causes.itemOf(bar)), start = causes.startOf(chain[0]);
  add("h2", `Why it began at ${number(start)}`);
  const list = add("ol", "");
  for (const item of chain.slice(0, SHOWN_STEPS)) {
    const button = add("button", causes.name(item), add("li", "", list));
    button.addEventListener("click", () => goTo(causes.barOf(item)));
    add("span", ` at ${number(causes.startOf(item))}; ${causes.words(item)}`, button.parentNode);
  }
  if (chain.length > SHOWN_STEPS) add("p", `and ${number(chain.length - SHOWN_STEPS)} steps more, back to cycle 0`);
  const parts = causes.parts(chain);
  if (!parts.length) return;
  add("h2", "The whole chain, in cycles");
  const table = add("table", "");
  for (const [name, cycles] of parts) {
    const row = table.insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = `${number(cycles)} (${number(100 * cycles / start, 3)} %)`;
  }
}
