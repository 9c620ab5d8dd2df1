"""Axes of the charts on the page have at least two distinct labels, whatever the range. The tests run Node."""

import json
import re
import shutil
import subprocess

import pytest
from tilewright.results.page.document import FOLDER

NODE = shutil.which("node")
TRY = """
let seed = 7;
const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
const wrong = [];
for (let i = 0; i < 3000; i++) {
  const low = 10 ** (random() * 30 - 12), kind = random();
  const high = kind < 0.2 ? low : kind < 0.6 ? low * (1 + random() * 8)
    : kind < 0.7 ? low * (1 + 10 ** (-random() * 6)) : low * 10 ** (random() * 12);
  for (const isLog of [true, false]) {
    for (const count of [3, 5, 9]) {
      const found = axis([low, high], isLog, count);
      const seen = found.ticks.filter((value) => value >= found.low * 0.9999 && value <= found.high * 1.0001);
      const texts = tickTexts(seen);
      if (texts.length < 2 || new Set(texts).size < texts.length) wrong.push([low, high, isLog, count, texts]);
    }
  }
}
console.log(JSON.stringify(wrong));
"""


def function_of(text: str, name: str) -> str:
    """The source of a JavaScript function that begins and ends at the left edge."""
    found = re.search(rf"^function {name}\(.*?^}}$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[0]


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_axes_have_two_labels_that_are_told_apart() -> None:
    """Linear and logarithmic axes, from a single number to many decades, have two labels on narrow and wide pages."""
    base, charts = ((FOLDER / name).read_text("utf-8") for name in ("base.js", "charts.js"))
    parts = [function_of(base, "numberText")]
    parts += [function_of(charts, name) for name in ("ticks", "tickTexts", "logTicks", "axis")]
    assert NODE is not None
    done = subprocess.run([NODE, "-e", "\n".join([*parts, TRY])], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
