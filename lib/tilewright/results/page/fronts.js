// Pareto fronts of networks: the front of one run, and the fronts of all runs of a group in one chart.
"use strict";

// Points of a front are [energy in µJ, latency in cycles, roles]. Marked points have a role: an end, the knee, this run.
function frontOf(run) {
  const detail = (DATA.details || {})[run];
  return detail && detail.front && detail.front.points.length ? detail.front : null;
}

// Line along the points: up to the latency of the next point, no less energy was found.
function frontSteps(points) {
  return points.flatMap(([x, y], place) => (place ? [[x, points[place - 1][1]], [x, y]] : [[x, y]]));
}

// Points of a chart for the front of a run. `scale` is the unit of the latency axis in cycles; `all` also draws points
// without a role. A run that is no point of its front is drawn, too.
function frontPoints(run, front, { scale = 1, unit = "cycles", all = false, named = "" } = {}) {
  const own = front.points.some((point) => point[2].includes("this run")) ? [] : [[valueOf(run, "energy_pj"), valueOf(run, "latency_cycles"), ["this run"]]];
  const drawn = [...front.points, ...own].filter((point) => all || point[2].length);
  const points = drawn.map(([energy, cycles, roles]) => {
    const isRun = roles.includes("this run"), words = roles.join(", ") || "point of the front";
    return {
      x: cycles * scale, y: energy, strong: isRun, shape: roles.includes("knee") ? "diamond" : "circle", size: roles.length ? 5 : 2.5,
      name: named ? (isRun ? named : "") : roles.join(", "), href: named ? `#run=${encodeURIComponent(run)}` : null,
      told: `${named ? `${run}, ` : ""}${words}: ${numberText(cycles * scale)} ${unit}, ${numberText(energy)} µJ`, roles,
    };
  });
  // Names are placed in this order, so points with a role come first.
  return points.sort((a, b) => b.roles.length - a.roles.length);
}

// Part of the page of a run on its front: chart, sentences, and all points as a table. null for a run without `front`.
function frontSection(run, detail) {
  if (!detail.front) return null;
  const title = "Pareto front of the network", lines = detail.front.lines.map((line) => element("p", {}, line)), front = frontOf(run);
  if (!front) return section(title, lines);
  const steps = frontSteps(front.points.map(([energy, cycles]) => [cycles, energy]));
  const chart = new Scatter(`Pareto front of ${run}`, frontPoints(run, front, { all: true }), { words: "latency [cycles]" }, { words: "energy [µJ]" }, { lines: [steps], height: 380 });
  const bounds = `Lower bounds of all mappings that the searches cover: ${numberText(front.least_energy)} µJ and ${numberText(front.least_latency)} cycles.`;
  const rows = front.points.map(([energy, cycles, roles], place) => [String(place + 1), energy, cycles, roles.join(", ")]);
  return section(title, lines,
    element("p", { class: "faint" }, `The diamond is the knee, the filled mark is this run. Less is better on both axes, which begin and end with the data. ${bounds}`), chart.node,
    element("details", {}, element("summary", {}, `the ${front.points.length} points as a table`), plainTable("points of the front", ["point", "energy [µJ]", "latency [cycles]", "role"], rows, [1, 2])));
}

// Unit of the latency axis for runs of a group: seconds if all times are known, else cycles.
function frontScale(run, column) {
  return column.key === "latency_s" ? valueOf(run, "latency_s") / valueOf(run, "latency_cycles") : 1;
}

// Chart with the fronts of the runs of a group, below its bars: ends, knee and chosen point of each run. null if no run
// of the group has a front.
function frontsOfGroup(group) {
  const runs = group.runs.filter(frontOf), left = group.all.filter((run) => (DATA.fronts_left_out || []).includes(run) || (frontOf(run) && !runs.includes(run)));
  const told = left.length ? element("p", { class: "faint" }, `Fronts that are not drawn here: ${left.length} of ${left.length + runs.length}.`) : null;
  if (!runs.length) return told;
  const column = group.columns[1], points = [], lines = [];
  for (const run of runs) {
    const front = frontOf(run), scale = frontScale(run, column);
    points.push(...frontPoints(run, front, { scale, unit: column.unit, named: run }));
    lines.push(frontSteps(front.points.map(([energy, cycles]) => [cycles * scale, energy])));
  }
  const words = `Pareto front of the mappings of ${runs.length === 1 ? "one run" : `each of ${runs.length} runs`}: what other mappings of the same network on the same hardware reach. Filled marks are the runs, diamonds the knees, other marks the ends.`;
  const chart = new Scatter(`Pareto fronts, ${group.name}`, points, { words: columnWords(column) }, { words: "energy [µJ]" }, { lines, height: 340 });
  return element("section", { class: "fronts", "aria-label": `Pareto fronts of the runs, ${group.name}` }, element("h3", {}, "Pareto fronts of the mappings"), element("p", { class: "faint" }, words), chart.node,
    ...runs.map((run) => element("p", { class: "faint" }, `${run}: ${frontOf(run).lines[0]}`)), told);
}
