"""Numbers of docs/accuracy.md and its pages, made by comparing our predictions with the measurements.

`python -m tilewright_evidence.court.document docs/accuracy.md [FOLDER]` replaces the text between marks of these pages.
FOLDER is the folder of the full sets. Without FOLDER, only the results of the samples in the package are replaced. With
FOLDER, the results of the full sets are also replaced, on these pages and in README.md.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.harmless import markdown

from tilewright_evidence.court.calibration import calibration_text, judge_of
from tilewright_evidence.court.error_rows import error_rows
from tilewright_evidence.court.verb import Heard, accuracy
from tilewright_evidence.court.verdict import VerdictPart, set_text

SAMPLE, FULL = "sample", "full"
SUMMARY = "summary"
"""Name in the two marks around the table of `summary_text`. The table is in docs/accuracy.md and in README.md."""
README = Path(__file__).resolve().parents[3] / "README.md"
SHOWN = {
    ("gemmini-rtl", "D3 conv"): "Gemmini, RTL: convolutions, mappings that were searched for",
    ("gemmini-rtl", "D3 default tiling"): "Gemmini, RTL: the same layers, tiles of its driver",
    ("gpu-gemm", "a100 bf16"): "A100: matrix products in bf16",
    ("gpu-gemm", "h100 bf16"): "H100: matrix products in bf16",
    ("gpu-gemm", "h100 fp8"): "H100: matrix products in fp8",
    ("vidur_layers", "a100"): "A100: products of language models, constants of the A100 row above",
    ("vidur_layers", "h100"): "H100: products of language models, constants of the two H100 rows above",
    ("llmservingsim_layers", "h100"): "H100: products of language models in another framework, the same constants",
    ("vidur_layers", "a40"): "A40: products of language models",
    ("llmservingsim_layers", "rtx_a6000"): "RTX A6000: products of language models",
    ("llmservingsim_layers", "rtx_4090"): "RTX 4090: products of language models",
    ("llmservingsim_layers", "rtx_pro_6000"): "RTX PRO 6000: products of language models",
    ("llmservingsim_attention", "h100, decode"): "H100: attention, decode, kernel that cuts no sequence",
    ("llmservingsim_attention", "rtx_4090, mixed"): "RTX 4090: attention, prompts and decoding in one call",
    ("llmservingsim_attention", "rtx_pro_6000, mixed"): "RTX PRO 6000: attention, prompts and decoding in one call",
    ("aiconfigurator_attention", "a100, prefill"): "A100: attention of TensorRT-LLM, prompts",
    ("aiconfigurator_attention", "a100, decode"): "A100: attention of TensorRT-LLM, decode",
    ("aiconfigurator_attention", "h100, prefill"): "H100: attention of TensorRT-LLM, prompts",
    ("aiconfigurator_attention", "h100, decode"): "H100: attention of TensorRT-LLM, decode",
    ("tpu-v6e", "products"): "TPU v6e: matrix products of Llama-3.1-8B",
    ("tpu-v6e", "attention, decode"): "TPU v6e: attention of Llama-3.1-8B, decode",
    ("tenstorrent_gemm", "n150, tiles by hand"): "Tenstorrent n150, 64 cores: matrix products, tiles by hand",
    ("tenstorrent_gemm", "n150, default tiles"): "Tenstorrent n150: matrix products, tiles of its library",
    ("tenstorrent_gemm", "n150, default tiles, one row"): "Tenstorrent n150: the same, outputs divided only by columns",
    ("tenstorrent_gemm", "p150, tiles by hand"): "Tenstorrent p150, 110 or 130 cores: matrix products, tiles by hand",
    ("tenstorrent_gemm", "p150, default tiles"): "Tenstorrent p150: matrix products, tiles of its library",
    ("amd_xdna_gemm", "XDNA"): "AMD XDNA, 16 cores: matrix products, nothing fitted",
    ("amd_xdna_gemm", "XDNA2"): "AMD XDNA2, 32 cores: matrix products, nothing fitted",
    ("eyeriss_v1", "alexnet, latency"): "Eyeriss v1: latency of AlexNet layers, published mappings",
    ("eyeriss_v1", "alexnet, power"): "Eyeriss v1: power of the chip for the same layers",
}
"""Text for each part in the table of `summary_text`, by (set, part). The part with the largest median error has a
further row in this table.
"""
NOT_MEASURED = ("timeloop-points",)
"""Names of the sets of data whose values are not measurements. Another model computed these values."""


ERROR_BARS = "error bars"
"""Name in the two marks around the calibration of error bars in docs/accuracy/error-bars.md."""
PAIR_DRAWS = 100
"""Number of random draws of pairs of rows for the calibration of error bars on the page."""


def mark(kind: str, name: str) -> tuple[str, str]:
    """Pair of marks in a page: the mark before the numbers of a set, and the mark after them."""
    return f"<!-- {kind} {name}: made by tilewright_evidence.court.document -->", f"<!-- end of {kind} {name} -->"


def blocks(kind: str, data: Path | None) -> dict[str, str]:
    """Texts that go between the marks of a page, by name of the set.

    If `kind` is SAMPLE, `sample_text` makes the texts. If `kind` is FULL, `full_text` makes the texts, and the result
    also has the summary table under the name SUMMARY. The numbers come from the full sets in the folder `data`. If
    `data` is None, they come from the samples in the package.
    """
    heard = accuracy(package_samples=True) if data is None else accuracy(data=data)
    texts = {one.court_set.name: full_text(one) if kind == FULL else sample_text(one) for one in heard}
    return texts | {SUMMARY: summary_text(heard)} if kind == FULL else texts


def summary_text(heard: Sequence[Heard]) -> str:
    """Markdown table with one row for each part in `SHOWN`. A further row has the part with the largest median error;
    sets in `NOT_MEASURED` do not count for it.
    """
    parts = {
        (one.court_set.name, part.name): part
        for one in heard
        if one.court_set.name not in NOT_MEASURED
        for part in one.parts
    }
    worst = max(parts, key=lambda key: parts[key].errors["estimate"].median)
    words = SHOWN | {worst: f"**worst** of {len(parts)} parts: {worst[0]}, {worst[1]}"}
    rows = ["| measured by others | rows | median error | 90 % of errors below |", "|---|---:|---:|---:|"]
    for key, text in words.items():
        errors = parts[key].errors["estimate"]
        rows.append(f"| {text} | {errors.rows:,} | {errors.median:.1%} | {errors.high:.0%} |")
    return "\n".join(rows) + "\n\n"


def sample_text(one: Heard) -> str:
    """Text on a sample for the page: the error table."""
    return f"```text\n{set_text(one.court_set, one.parts)}\n```\n"


def full_text(one: Heard) -> str:
    """Text on a full set for the page: the error table, the constants, and the errors by cause. A cause is the part of
    the machine that limits the estimate.
    """
    lines = [f"```text\n{set_text(one.court_set, one.parts)}\n```\n", "| constant | value | meaning |\n|---|---|---|"]
    for device, constants in one.court_set.constants.items():
        lines += [
            f"| `{device}`: `{constant.name}` | {constant.value:g} {constant.unit} | {constant.meaning} |"
            for constant in constants
        ]
    if not any(one.court_set.constants.values()):
        lines.pop()
    lines.append(
        f"\nFitted to: {one.court_set.rule}.\n\n| part | limited by | rows | median error | bias |\n"
        "|---|---|---|---|---|"
    )
    lines += _cause_rows(one.parts)
    return "\n".join(lines) + "\n"


def _cause_rows(parts: Sequence[VerdictPart]) -> list[str]:
    return [
        f"| {markdown(part.name)} | {markdown(cause)} | {errors.rows:,} | {errors.median:.1%} | {errors.bias:+.1%} |"
        for part in parts
        for cause, errors in part.causes.items()
    ]


def error_bars_text(heard: Sequence[Heard]) -> str:
    """Text with the calibration of error bars for the page: a table of the statements on pairs of rows."""
    judge = judge_of(error_rows({one.court_set.name: one.cases for one in heard}))
    return f"```text\n{calibration_text(judge, PAIR_DRAWS)}\n```\n"


def with_blocks(page: str, kind: str, texts: dict[str, str]) -> str:
    """Page with new blocks: each text in `texts` replaces the text between the two marks of its block (`mark`). `texts`
    has the texts by name of the block, such as the name of a set. `kind` is SAMPLE or FULL. Raises ValueError if the
    page lacks a mark.
    """
    for name, text in texts.items():
        page = with_part(page, *mark(kind, name), f"\n{text}")
    return page


BETWEEN = "\n<!-- next page -->\n"
"""Text between two pages in the text of all pages."""


def page_paths(overview: Path) -> list[Path]:
    """Paths of the pages with results: the overview, then the pages in the folder of the same name, in order of their
    names.
    """
    return [overview, *sorted(overview.with_suffix("").glob("*.md"))]


def read_pages(overview: Path) -> str:
    """Text of all pages with results, with BETWEEN between two pages."""
    return BETWEEN.join(path.read_text() for path in page_paths(overview))


def main(arguments: Sequence[str]) -> None:
    """Write the new numbers into the pages. `arguments` are the path of the overview page and, optionally, the folder
    of the full sets. Without this folder, only the results of the samples are replaced. With this folder, the results
    of the full sets are also replaced, in the pages and in README.md.
    """
    overview = Path(arguments[0])
    text = with_blocks(read_pages(overview), SAMPLE, blocks(SAMPLE, None))
    if len(arguments) > 1:
        full = blocks(FULL, Path(arguments[1]))
        text = with_blocks(text, FULL, full)
        text = with_blocks(text, FULL, {ERROR_BARS: error_bars_text(accuracy(data=Path(arguments[1])))})
        write_atomically(README, with_blocks(README.read_text(), FULL, {SUMMARY: full[SUMMARY]}))
    for path, page in zip(page_paths(overview), text.split(BETWEEN), strict=True):
        write_atomically(path, page)


__all__ = ["FULL", "README", "SAMPLE", "SUMMARY", "blocks", "main", "mark", "page_paths", "read_pages", "with_blocks"]

if __name__ == "__main__":
    main(sys.argv[1:])
