// How a lane of the interactive schedule is drawn in the pixels that it has, and where the axis has its ticks.
// Needs schedule_data.js before it.
"use strict";

const LEAST_SHAPE = 1.5;

// Draws the bars of a lane that lie in [t0, t1): `paint` gets (bar, x, width, filled share, whether it is one whole bar).
function drawLane(schedule, lane, t0, scale, width, paint) {
  const { bars, starts, ends, busy } = schedule.shown[lane];
  const t1 = t0 + width / scale, last = firstAbove(starts, t1, 0, bars.length, true);
  let i = firstAbove(ends, t0, 0, bars.length);
  while (i < last) {
    const x = (starts[i] - t0) * scale, across = (ends[i] - starts[i]) * scale;
    if (across >= LEAST_SHAPE) {
      const left = Math.max(x, -2);
      paint(bars[i], left, Math.min(x + across, width + 2) - left, 1, true);
      i++;
      continue;
    }
    const pixel = Math.floor(x);
    let next = Math.max(i + 1, firstAbove(starts, t0 + (pixel + 1) / scale, i, last, true));
    // A wide bar that begins in this pixel is drawn as a whole.
    if (next - 1 > i && (ends[next - 1] - starts[next - 1]) * scale >= LEAST_SHAPE) next--;
    const step = Math.max(1, (next - i) >> 3);
    let longest = i;
    for (let j = i; j < next; j += step) if (ends[j] - starts[j] > ends[longest] - starts[longest]) longest = j;
    paint(bars[longest], pixel, 1, Math.max(0.12, Math.min(1, (busy[next] - busy[i]) * scale)), false);
    i = next;
  }
}

// Round steps of an axis: times between t0 and t1, about a label each 110 pixels.
function ticks(t0, t1, width) {
  const raw = Math.max(1, (t1 - t0) / Math.max(1, width / 110)), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  const found = [];
  for (let time = Math.ceil(t0 / step) * step + 0; time <= t1; time += step) found.push(time);
  return found;
}
