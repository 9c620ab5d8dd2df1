// Drawing of a lane of the interactive schedule, pixel by pixel, and the positions of the ticks of the axis.
// Must be loaded after schedule_data.js.
"use strict";

const LEAST_SHAPE = 1.5;

// Draws the bars of a lane that lie in [t0, t1): `paint` gets (bar, x, width, filled share, whether this is one complete bar).
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

// Draws the content of a memory as columns, with the maximum in each pixel. `paint` gets (x, width, bits).
function drawMemory(schedule, row, t0, scale, width, paint) {
  const { memory_time: times, memory_bits: bits } = schedule, t1 = t0 + width / scale;
  let step = schedule.stepAt(row, t0);
  if (step < row.first) step = row.first;
  while (step < row.last && times[step] < t1) {
    const x = Math.max((times[step] - t0) * scale, 0);
    // The steps within one pixel are one column. The value of the last step is valid until the next column.
    let next = Math.max(step + 1, firstAbove(times, t0 + (Math.floor(x) + 1) / scale, step, row.last, true));
    let most = bits[step];
    for (let one = step + 1; one < next; one++) most = Math.max(most, bits[one]);
    if (next > step + 1 && x + 1 < width) paint(Math.floor(x), 1, most);
    const from = next > step + 1 ? Math.floor(x) + 1 : x;
    const to = next < row.last ? Math.min((times[next] - t0) * scale, width) : width;
    if (to > from) paint(from, to - from, next > step + 1 ? bits[next - 1] : most);
    step = next;
  }
}

// Round times between t0 and t1 for the labels of an axis, about one label for each 110 pixels.
function ticks(t0, t1, width) {
  const raw = Math.max(1, (t1 - t0) / Math.max(1, width / 110)), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw);
  const found = [];
  for (let time = Math.ceil(t0 / step) * step + 0; time <= t1; time += step) found.push(time);
  return found;
}
