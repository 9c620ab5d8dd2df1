"""The page of a search of plans: the largest savings stand first, names are escaped, and missing parts are stated."""

import re
from typing import Any

import pytest
from tilewright.results.multi.fusion_page import fusion_page

FIGURES = {"latency_cycles": 100, "energy_pj": 2e6, "edp": 2e8}


def cut(after: str, without: int | None) -> dict[str, Any]:
    """A cut and the latency without it."""
    figures = None if without is None else {"latency_cycles": without, "energy_pj": 3e6, "edp": 3e6 * without}
    saves = {"saves_latency_cycles": None, "saves_energy_pj": None}
    if without is not None:
        saves = {"saves_latency_cycles": without - 100, "saves_energy_pj": 1e6}
    return {"after": after, "before": f"{after}+", "without": figures, **saves}


def document(**changes: Any) -> dict[str, Any]:
    """An answer in the form of `fusion.json`."""
    origin = {"origin": "uniform", "plans": 2, "schedules": 8, "infeasible": 1, "best_so_far": 1, "best": FIGURES}
    search = {"seed": 0, "plans": 2, "segments": 1, "schedules": 8, "stopped_by": "time_budget", "origins": [origin]}
    return {
        **{"workload": "<net>", "hardware": "chip", "objective": "latency", **FIGURES},
        **{"lower_bound": {"latency_cycles": 80, "energy_pj": 1e6}, "layer_by_layer": None},
        **{"gap_latency": 0.2, "gap_energy": 0.5, "gap_edp": 0.6, "search": search},
        **{"fixed": {"layer_stacks": True, "inter_core_tiling": ["a"]}, "reloads": [], "cuts": []},
        **{"stacks": [{"stack": 0, "layers": 2, "first": "a", "last": "b"}], "reproduce": {"cns": "--x '<'"}},
        "layers": [{"name": "a&b", "inter_core_tiling": ["K, 2"], "intra_core_tiling": [], "cores": [0, 2]}],
        **changes,
    }


TRIED: list[dict[str, Any]] = [
    {"plan": 0, "origin": "uniform", "stacks": 1, "is_best": True, "reason": "", **FIGURES},
    {"plan": 1, "origin": "uniform", "stacks": 1, "is_best": False, "reason": "no room", "latency_cycles": ""},
]


def text_of(page: str) -> str:
    """The words of a page without its figure."""
    return re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*</svg>", "", page, flags=re.DOTALL))


def test_cuts_that_save_most_stand_first() -> None:
    """A cut without which there is no schedule stands first, then cuts by their saving. Cuts with a loss stand last."""
    page = fusion_page(document(cuts=[cut("small", 101), cut("costs", 90), cut("large", 150), cut("all", None)]), TRIED)
    places = [page.index(f"<td>{name}</td>") for name in ("all", "large", "small", "costs")]
    assert places == sorted(places)
    assert "no schedule without this cut" in page
    assert '<td class="number">-10</td>' in page


def test_names_are_text_and_what_is_missing_is_said() -> None:
    """Names are escaped; words say that there is no baseline, cut or reload; reasons are counted."""
    page = fusion_page(document(), TRIED)
    assert "<net>" not in page
    assert "&lt;net&gt; on chip" in page
    assert "a&amp;b" in page
    words = text_of(page)
    for expected in (
        "Ended by time budget. Seed",
        "No cut is listed: the network is one stack",
        "No data are read from off-chip",
        "no room",
    ):
        assert expected in words
    assert "layer by layer" not in words


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
def test_every_objective_has_a_figure(objective: str) -> None:
    """The page has a figure for every objective, also if the best plan is the only one."""
    assert fusion_page(document(objective=objective, layer_by_layer=FIGURES), TRIED[:1]).count("<svg") == 1
