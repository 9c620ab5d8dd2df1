"""Statements about proofs: each text with a bound, a gap or an optimum says for which set it holds."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import tilewright
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.proof import (
    ALLOWED_ALLOCATIONS,
    ORDERS,
    BoundedValue,
    Schedules,
    SpatialMappings,
    TilePlans,
    contradictions,
    covered_by,
    covered_text,
    if_copied_line,
    optimum_line,
)

PACKAGE = Path(tilewright.__file__).parent
TELLS = re.compile(
    r"lower bounds? |\bgap (of|to)\b|optimum proven|proven to be|no \w+ is better|could be better|above (its|the) bound"
    r"|bound of (any|all)"
)
SAYS = re.compile(r"\bover\b|for schedules that|of its tiles|covers|scope|ALLOWED_ALLOCATIONS|covered_by")
ROOMS = (
    "cli",
    "results",
    "tiles",
    "plans",
    "multicore/allocation",
    "tokens",
    "search",
)
NOT_A_CLAIM = (
    "no lower bound: ",  # a schedule model without bounds
    "the lower bound, ",  # of a certificate that contradicts itself
    "lower bound {",
    "the bound of the latency is the largest of: ",  # the terms of the line above it
    "lower bounds computed again",  # what a check of a certificate did
    "lower bounds of all other stacks computed again",
    "report its gap to the lower bound.",  # the help of a verb, whose output says over what
)


def sentences() -> Iterator[tuple[str, str]]:
    """Yield (place, source of the text) of each text in the printing modules, without docstrings."""
    for path in sorted(
        [PACKAGE / "base/proof.py", *(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))]
    ):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        inside = {id(part) for node in joined for part in ast.walk(node) if part is not node}
        for node in nodes:
            is_plain = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if (is_plain or isinstance(node, ast.JoinedStr)) and id(node) not in docstrings | inside:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", ast.unparse(node)  # type: ignore[attr-defined]


def test_every_sentence_says_over_what_it_holds() -> None:
    """Each text about a bound, a gap or an optimum names the searched set, and the walk finds at least ten."""
    told = [(place, text) for place, text in sentences() if TELLS.search(text)]
    claims = [(place, text) for place, text in told if not any(words in text for words in NOT_A_CLAIM)]
    assert len(claims) >= 10, told
    assert [(place, text) for place, text in claims if not SAYS.search(text)] == []


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (Schedules(), "all allocations to cores"),
        (Schedules(21, 0), "all allocations to cores"),
        (Schedules(21, 12), "all allowed allocations to cores (12 of 21 parts have only one core)"),
        (Schedules(21, 21), "the only allowed allocation to cores"),
    ],
)
def test_schedules_say_which_allocations_are_allowed(scope: Schedules, words: str) -> None:
    """The scope of schedules says how many parts have a fixed core and that other tiles are not covered."""
    moved = "with data copied into a core before use or streamed"
    tiles = f"all schedules of these tiles, {moved} (other tiles are not covered)"
    assert scope.text == f"{words} and {tiles}"


def test_the_bound_of_schedules_that_copy_is_told_where_it_is_larger() -> None:
    """The bound for schedules that copy data has its own line with its gap, unless it equals the other bound."""
    found = {"gap_latency": 0.5, "gap_latency_if_copied": 0.1, "lower_bound": {"if_copied": {"latency_cycles": 1800}}}
    line = (
        "lower bound for schedules that, like this one, copy data into a core before use whenever the data fit:"
        " 1,800 cycles; gap: 10.0% in latency"
    )
    assert if_copied_line(found) == [line]
    assert if_copied_line({**found, "gap_latency": 0.1004}) == []
    assert if_copied_line({"lower_bound": {"latency_cycles": 1000}}) == if_copied_line({"lower_bound": None}) == []


def test_scopes_of_mappings_and_tiles() -> None:
    """The scope of mappings and of tiles says what the search covers and what it does not."""
    assert SpatialMappings().text == "the spatial mapping of the mapping file"
    assert "by divisors of the size of the loop or of the largest factor" in SpatialMappings("open").text
    assert "spatial_mapping_hint" in SpatialMappings("open", hinted=True).text
    assert SpatialMappings("open", 2).text.startswith("the first 2 ")
    assert "memories that have one instance" in TilePlans("attention", 6).text
    assert "if loma with lpf_limit 6 maps the layers of each tile" in TilePlans("attention", 6).text
    assert "no lpf_limit" in TilePlans("depth-first").text
    assert covered_text("A", "free") == f"A, with {ORDERS['free']}"
    assert covered_by({}) == f"{ALLOWED_ALLOCATIONS} (other tiles are not covered)"
    assert optimum_line("energy", True, 0.0, "plans", "X", "3 plans") == (
        "energy: the best plan found is optimal over X (3 plans)"
    )
    late = optimum_line("energy", False, 0.25, "plans", "X", "3 plans")
    assert late == "energy: the optimum is at most 25.00% below the best plan found, over X (3 plans)"


def test_a_gap_is_worked_out_in_one_place() -> None:
    """The module `proof` is the only one that computes a gap from a lower bound and a value."""
    written = re.compile(r"1(\.0)? - [\w.\[\]\"()]*bound[\w.\[\]\"()]* / ")
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "proof.py"]
    assert not [f"{path}: {line}" for path in files for line in path.read_text().splitlines() if written.search(line)]


@given(st.floats(1e-3, 1e12), st.floats(0, 1.1))
def test_what_is_stated_contradicts_nothing(value: float, share: float) -> None:
    """The stated gap of any value and bound passes the check, and a changed gap is found."""
    bound = min(value, value * share)

    @dataclass(frozen=True)
    class Found(BoundedValue):
        value: float
        lower_bound: float

    stated = Found(value, bound).stated()
    claim = SimpleNamespace(**stated)
    assert list(contradictions(claim)) == []
    claim.gap = stated["gap"] + 0.01
    assert len(list(contradictions(claim))) == 1
