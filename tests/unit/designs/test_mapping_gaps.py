"""How far the mappings of designs on the front can be from the best: the same gaps as `map` gives for each design."""

from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.designs import mapping_gaps
from tilewright.designs.answer import answer_of
from tilewright.designs.explore import explored
from tilewright.designs.mapping_gaps import MOST_BOUNDED, with_mapping_gaps
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import space_table
from tilewright.designs.tables import answer_text
from tilewright.search.options import SearchOptions

TINY = Path("tests/workflow/tiny").resolve()
WIDTHS = [8, 16, 32, 64, 128]


def space_of(**options: Any) -> tuple[dict[str, Any], Space]:
    """Cores whose memory moves more or fewer bits a cycle at more or less energy, so that all are on the front."""
    keys = {
        "accelerator": str(TINY / "hardware" / "narrow.yaml"),
        "networks": [str(TINY / "workload" / "two_layers.yaml")],
        "mapping": str(TINY / "mapping" / "free.yaml"),
        "axes": {"width": {"path": "memories.memory.ports.r_port_1.bandwidth_max", "values": WIDTHS}},
        "laws": {"memories.memory.r_cost": "width * width", "memories.memory.w_cost": "width * width"},
        "objectives": ["energy_pj", "latency_cycles"],
        "options": {"lpf_limit": 3, **options},
    }
    return keys, read_space(keys)


def answered(**options: Any) -> tuple[Space, Any]:
    """The space with its answer."""
    keys, space = space_of(**options)
    return space, with_mapping_gaps(space, answer_of(explored(keys, space, 1, lambda count: None)))


@pytest.mark.parametrize("objective", ["EDP", "latency"])
@pytest.mark.parametrize("engine", ["loma", "best"])
def test_gaps_are_those_of_map(objective: str, engine: str) -> None:
    """Each design with a gap has that of a run of `map` on its hardware file; the sentence has the largest."""
    space, answer = answered(objective=objective, temporal_mapping_search_engine=engine)
    table = space_table(answer)
    rows = table[table["mapping_gap"].notna()]
    assert 0 < len(rows) <= MOST_BOUNDED
    assert rows["pareto"].all()
    for row in rows.to_dict("records"):
        given = {**space.options.as_dict(), "bounds": engine == "loma"}
        run = tilewright.map(
            hardware=space.design(row["index"]).hardware,
            workload=TINY / "workload" / "two_layers.yaml",
            mapping=TINY / "mapping" / "free.yaml",
            options=SearchOptions(**given),
        )
        proof = run.summary["certificate"]["run"]
        assert run.summary["energy_pj"] == row["energy_pj"]
        assert row["mapping_gap"] == pytest.approx(proof["gap"], abs=1e-9)
    (sentence,) = answer.mapping_notes
    assert f"the {objective} of a network could be at most {rows['mapping_gap'].max():.1%} smaller" in sentence
    assert sentence in answer_text(answer)


def test_the_sentence_says_which_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the front, evenly spread, where it has more designs than are bounded."""
    monkeypatch.setattr(mapping_gaps, "MOST_BOUNDED", 2)
    _, answer = answered(objective="latency")
    members = len(answer.overall.members)
    assert members > 2
    start = f"Gaps of the mappings of 2 of the {members} designs on the front, at equal steps along it"
    assert answer.mapping_notes[0].startswith(start)


def test_no_bounds_if_none_are_wanted() -> None:
    """Neither a column nor a sentence; and all other numbers are equal."""
    _, plain = answered(bounds=False)
    _, bounded = answered()
    assert plain.mapping_notes == ()
    assert "mapping_gap" not in plain.exploration.table
    assert plain.exploration.table.equals(bounded.exploration.table.drop(columns="mapping_gap"))
