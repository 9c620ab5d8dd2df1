"""Mapping gaps of designs on the front: equal to those of `map` for each design."""

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
    """Return a space whose designs are all on the front: a wider memory port is faster but costs more energy."""
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
    """Return the space with its answer."""
    keys, space = space_of(**options)
    return space, with_mapping_gaps(space, answer_of(explored(keys, space, 1, lambda count: None)))


@pytest.mark.parametrize("objective", ["EDP", "latency"])
@pytest.mark.parametrize("engine", ["loma", "best"])
def test_gaps_are_those_of_map(objective: str, engine: str) -> None:
    """Each mapping gap equals that of `map` on the hardware file, and the sentence has the largest."""
    space, answer = answered(objective=objective, temporal_mapping_search_engine=engine)
    table = space_table(answer)
    rows = table[table["mapping_gap"].notna()]
    assert 0 < len(rows) <= MOST_BOUNDED
    key = {"EDP": "edp_pj_cycles", "latency": "latency_cycles"}[objective]
    first, second = table.sort_values([key, "energy_pj"])["design"].tolist()[:2]
    assert {first, second} <= {*rows["design"]}
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


@pytest.mark.parametrize("most", [2, 3, 9])
def test_the_sentence_says_which_designs(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps are computed for the two best designs, then for designs of the front.
    The sentence says whether their order is open.
    """
    monkeypatch.setattr(mapping_gaps, "MOST_BOUNDED", most)
    _, answer = answered(objective="latency")
    rows = answer.overall.compared.sort_values(["latency_cycles", "energy_pj"])
    members = {*answer.overall.members["design"]}
    assert len(members) == 3
    table = answer.exploration.table
    known = {*table.loc[table["mapping_gap"].notna(), "design"]}
    first, second, *_ = rows["design"]
    assert known <= {*members, first, second}
    assert len(known) == min(most, len({*members, first, second}))
    (sentence,) = answer.mapping_notes
    assert sentence.startswith(f"Gaps of the mappings of {first}, {second}")
    assert all(name in sentence for name in known)
    values, gap = rows["latency_cycles"].to_numpy(), table["mapping_gap"].max()
    assert f"The latency of the second-best design, {second}, is" in sentence
    within = int((values[1:] * (1 - gap) < values[0]).sum())
    assert (f"{within} of {len(rows) - 1} other designs could be the best" in sentence) == bool(within)
    assert ("no other design could be the best" in sentence) == (not within)


@pytest.mark.parametrize("limit", [None, 0, 1, 2])
@pytest.mark.parametrize("mapping", ["free.yaml", None])
def test_the_sentence_names_spatial_mappings_that_are_left_out(limit: int | None, mapping: str | None) -> None:
    """Gaps of a search with a limit of generated spatial mappings say that other spatial mappings are left out."""
    keys, _ = space_of()
    keys["mapping"] = None if mapping is None else str(TINY / "mapping" / mapping)
    if limit is not None:
        keys["options"]["nb_spatial_mappings_generated"] = limit
    space = read_space({key: value for key, value in keys.items() if value is not None})
    answer = with_mapping_gaps(space, answer_of(explored(keys, space, 1, lambda count: None)))
    (sentence,) = answer.mapping_notes
    is_open = mapping is None  # the mapping file fixes the only side of the array
    assert ("of each layer were searched" in sentence or "of each layer was searched" in sentence) == (
        is_open and limit != 0
    )
    assert ("`--bounds` searches all spatial mappings" in sentence) == (is_open and limit is None)


def test_no_bounds_if_none_are_wanted() -> None:
    """A space without bounds has no gaps, and all other numbers are equal."""
    _, plain = answered(bounds=False)
    _, bounded = answered()
    assert plain.mapping_notes == ()
    assert "mapping_gap" not in plain.exploration.table
    assert plain.exploration.table.equals(bounded.exploration.table.drop(columns="mapping_gap"))
