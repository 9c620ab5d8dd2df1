"""Processing latency of layers on Eyeriss v1, with mappings from the exact search instead of the published ones.

`python -m tilewright_evidence.court.eyeriss_search [FOLDER]` prints a table for the sample of the package, or for the
set in FOLDER. The paper (Chen et al., IEEE JSSC 52(1), 2017) gives the mappings of AlexNet, but not those of VGG-16.
This module searches mappings for both networks, under the rules of the hardware file. It fits no number.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilewright.base.errors import MappingError
from tilewright.base.profile import CORRECTED
from tilewright.cost.record import LayerRecord
from tilewright.mapping.constraints import Unrolling
from tilewright.search.evaluate import evaluate_prepared, prepare
from tilewright.search.exact.search import ExactResult, search_candidates
from tilewright.search.options import ExactParameters, SearchOptions

from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.eyeriss import CYCLES_PER_MS, EYERISS, FIRST, PROCESSING
from tilewright_evidence.court.eyeriss import prepare as layers_of
from tilewright_evidence.court.eyeriss_mapping import (
    COLUMNS,
    ROWS,
    EyerissWork,
    Shape,
    eyeriss_core,
)
from tilewright_evidence.court.mapped_layer import LINKS

OPTIONS = ExactParameters("energy", "free", time_budget_s=3600.0)
"""Options of the exact search: the least energy, as in the paper, and free boundaries between memories. A proof takes
seconds. The time budget is large, so that each optimum is proven even on a busy machine.
"""


@dataclass(frozen=True)
class Searched:
    """Mapping with the least energy, among the mappings that the rules of the hardware file allow."""

    rows: int
    """Number of output rows in a pass: `e` in table III of the paper."""
    channel_sets: int
    """Number of sets of units with different channels: `r` in table III."""
    kernel_sets: int
    """Number of sets of units with different kernels: `t` in table III."""
    result: ExactResult
    record: LayerRecord


def sets(shape: Shape) -> Iterator[tuple[tuple[int, int, int], Unrolling]]:
    """Pairs ((e, r, t), spatial mapping), for every possible number `e` of output rows in a pass.

    Each mapping has as many sets of units as the array has room for, divided into `r` sets for channels times `t` sets
    for kernels. A set that is wider than the array is cut into pieces, which lie below each other. Several sets lie
    below each other, or side by side if the array is not high enough.
    """
    for e in range(1, min(shape.output, COLUMNS * (ROWS // shape.kernel)) + 1):
        pieces = -(-e // COLUMNS)
        columns = -(-e // pieces)
        below = ROWS // (shape.kernel * pieces)
        count = below if below > 1 else COLUMNS // columns
        for r in (r for r in range(1, count + 1) if count % r == 0):
            high, wide = {"FY": shape.kernel, "OY": pieces}, {"OY": columns}
            (high if below > 1 else wide).update({"C": r, "K": count // r})
            sides = (("D1", high), ("D2", wide))
            found = tuple((side, tuple((d, n) for d, n in lanes.items() if n > 1)) for side, lanes in sides)
            yield (e, r, count // r), found


def searched(work: EyerissWork, *, is_first: bool) -> Searched:
    """Mapping with the least energy, among the spatial mappings of `sets` and all temporal mappings that the rules of
    the hardware file allow.
    """
    core = eyeriss_core(is_first=is_first)
    names, problems = [], []
    for name, unrolling in sets(work.shape):
        with suppress(MappingError):  # more sets than channels or kernels
            options = SearchOptions(model=CORRECTED.name)
            problems.append(prepare(work.whole_layer(), core, LINKS, unrolling, options))
            names.append(name)
    result = search_candidates(problems, (), OPTIONS)
    assert result is not None
    found = problems[result.candidate]
    return Searched(*names[result.candidate], result, evaluate_prepared(found, result.order, result.boundaries))


def table(folder: Path | None = None) -> str:
    """Table with one row for each layer: numbers of rows and sets (e, r, t), and processing latencies in ms."""
    files = set_files(DATA / EYERISS.name if folder is None else folder, EYERISS.patterns)
    lines = ["layer             e   r   t   measured   predicted   ratio"]
    for one in layers_of(files):
        if one.quantity != PROCESSING:
            continue
        row = one.layer.row
        found = searched(one.layer.work, is_first=(row["network"], row["layer"]) in FIRST)
        assert found.result.is_proven
        time_ms, measured = found.record.latency_cycles / CYCLES_PER_MS, one.layer.measured(PROCESSING)
        name = f"{row['network']} {row['layer']}"
        own = f"{found.rows:4}{found.channel_sets:4}{found.kernel_sets:4}"
        lines.append(f"{name:15}{own}{measured:11.1f}{time_ms:12.1f}{time_ms / measured:8.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
