"""Cases as folders: found, read, and told what is wrong with them."""

from pathlib import Path

import pytest
from tilewright.errors import InputError
from tilewright.silicon.case import find_cases, read_case

from tests.unit.silicon.cases import MAPPING, RUN, core, write_case


def test_a_case_is_read(tmp_path: Path) -> None:
    """What the files say arrives; what is not known is None."""
    case = read_case("tiny", write_case(tmp_path))
    assert case.run.hint_loops == [["OY", "all"]]
    assert case.tiling.cn_define_mode == 1
    assert (case.expected.measured_cycles, case.expected.reference_cycles) == (100, 90)
    assert case.expected.reference_nodes is None
    assert case.expected.layer_cycles == {}
    assert case.system.workload.outputs == ("L1.O",)


def test_what_is_expected_may_be_unknown(tmp_path: Path) -> None:
    """A case without a file of results, and one whose file has other things only."""
    assert read_case("tiny", write_case(tmp_path, expected=None)).expected.measured_cycles is None
    other = {"measured": {"latency": "soon"}, "layers": {0: {"cycles": [1, 2]}, 1: {"cycles": [1, 2, 3, 4]}}}
    expected = read_case("tiny", write_case(tmp_path, expected=other)).expected
    assert expected.measured_cycles is None
    assert expected.layer_cycles == {1: (1, 2, 3, 4)}


def test_cases_and_variants_are_found(tmp_path: Path) -> None:
    """All cases in a folder by name, each before its variants; or a case by itself; or those that are asked for."""
    for name in ("b", "a"):
        write_case(tmp_path / name)
    (tmp_path / "a" / "variant_small").mkdir()
    (tmp_path / "notes").mkdir()
    assert [name for name, _, _ in find_cases(tmp_path)] == ["a", "a/variant_small", "b"]
    assert [name for name, _, _ in find_cases(tmp_path / "b")] == ["b"]
    assert [name for name, _, _ in find_cases(tmp_path, ("a",))] == ["a", "a/variant_small"]
    assert [name for name, _, _ in find_cases(tmp_path, ("a/variant_small", "b"))] == ["a/variant_small", "b"]


def test_a_variant_has_files_of_its_own(tmp_path: Path) -> None:
    """The accelerator of the variant counts, with the core files beside it; the rest is that of the case."""
    write_case(tmp_path)
    only = dict.fromkeys(("workload", "mapping", "run", "expected"))
    variant = write_case(tmp_path / "variant_small", cores__core={**core(), "name": "other"}, **only)
    case = read_case("tiny/variant_small", tmp_path, variant)
    assert case.system.accelerator.cores[0].name == "other"
    assert read_case("tiny", tmp_path).system.accelerator.cores[0].name == "core"
    assert case.expected.measured_cycles == 100


def test_there_must_be_a_case(tmp_path: Path) -> None:
    """No folder, an empty one, a name that none has."""
    with pytest.raises(InputError, match="no such folder"):
        find_cases(tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no case"):
        find_cases(tmp_path)
    write_case(tmp_path / "depfin")
    with pytest.raises(InputError, match=r"no such case, got depfun .*did you mean 'depfin'"):
        find_cases(tmp_path, ("depfun",))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """A missing mapping and everything wrong with the run."""
    run = {**RUN, "loma_lpf_limit": 0, "scheduler_candidate_selection": "fastest"}
    with pytest.raises(InputError) as raised:
        read_case("tiny", write_case(tmp_path, run=run, mapping=None))
    text = str(raised.value)
    for part in ("mapping.yaml is missing", "loma_lpf_limit", "scheduler_candidate_selection"):
        assert part in text
    wrong = [{**MAPPING[0], "core_allocation": "none"}, *MAPPING[1:]]
    with pytest.raises(InputError, match="core_allocation"):
        read_case("tiny", write_case(tmp_path, mapping=wrong))


def test_keys_without_effect_are_told(tmp_path: Path) -> None:
    """Keys that say where a case comes from are known; others are named."""
    notices = read_case("tiny", write_case(tmp_path, run={**RUN, "hint_lops": []})).notices
    assert [notice for notice in notices if "run.yaml" in notice] == [
        f"{tmp_path}/run.yaml:11 hint_lops: has no effect"
    ]
