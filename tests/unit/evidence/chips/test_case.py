"""Cases of chips as folders: discovery, reading, and messages about faults."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright_evidence.chips.case import CaseFiles, SiliconCase, find_cases
from tilewright_evidence.chips.case import read_case as read

from tests.unit.evidence.chips.cases import MAPPING, RUN, core, write_case


def read_case(name: str, folder: Path, variant: Path | None = None) -> SiliconCase:
    """Read the case in a folder."""
    return read(name, CaseFiles(folder, variant))


def test_a_case_is_read(tmp_path: Path) -> None:
    """The values of the files are read, and unknown values are None."""
    case = read_case("tiny", write_case(tmp_path))
    assert case.run.hint_loops == [["OY", "all"]]
    assert case.tiling.cn_define_mode == 1
    assert (case.expected.measured_cycles, case.expected.reference_cycles) == (100, 90)
    assert case.expected.reference_nodes is None
    assert case.expected.layer_cycles == {}
    assert case.system.workload.outputs == ("L1.O",)


def test_what_is_expected_may_be_unknown(tmp_path: Path) -> None:
    """Expected results can be unknown: without their file, or with other values in it."""
    assert read_case("tiny", write_case(tmp_path, expected=None)).expected.measured_cycles is None
    other = {"measured": {"latency": "soon"}, "layers": {0: {"cycles": [1, 2]}, 1: {"cycles": [1, 2, 3, 4]}}}
    expected = read_case("tiny", write_case(tmp_path, expected=other)).expected
    assert expected.measured_cycles is None
    assert expected.layer_cycles == {1: (1, 2, 3, 4)}


def test_cases_and_variants_are_found(tmp_path: Path) -> None:
    """Cases of a folder are found by name, each before its variants; a folder can be a case itself."""
    for name in ("b", "a"):
        write_case(tmp_path / name)
    (tmp_path / "a" / "variant_small").mkdir()
    (tmp_path / "notes").mkdir()
    assert [*find_cases(tmp_path)] == ["a", "a/variant_small", "b"]
    assert [*find_cases(tmp_path / "b")] == ["b"]
    assert [*find_cases(tmp_path, ("a",))] == ["a", "a/variant_small"]
    assert [*find_cases(tmp_path, ("a/variant_small", "b"))] == ["a/variant_small", "b"]


def test_cases_are_found_at_any_depth_by_their_paths(tmp_path: Path) -> None:
    """Cases at any depth are found and named by their paths, even without a run file; reading such a case fails."""
    for place in ("2023/a", "2024/a", "2024/deep/b"):
        write_case(tmp_path / place)
    (tmp_path / "2024" / "a" / "run.yaml").unlink()
    write_case(tmp_path / ".hidden")
    assert [*find_cases(tmp_path)] == ["2023/a", "2024/a", "2024/deep/b"]
    assert [*find_cases(tmp_path, ("2024",))] == ["2024/a", "2024/deep/b"]
    assert [*find_cases(tmp_path, ("2024/deep/",))] == ["2024/deep/b"]
    with pytest.raises(InputError, match=r"2024/a/run\.yaml is missing \(allowed: run\.yaml or run\.yml\)"):
        read_case("a", tmp_path / "2024" / "a")


def test_a_link_to_a_case_is_a_case_of_its_own(tmp_path: Path) -> None:
    """A link to a case is a further case with the name of the link."""
    write_case(tmp_path / "a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert [*find_cases(tmp_path)] == ["a", "b"]


def test_files_may_have_other_names(tmp_path: Path) -> None:
    """Files of a case can have other suffixes and names, if only one file fits."""
    write_case(tmp_path)
    for old, new in (("accelerator.yaml", "hardware.yml"), ("run.yaml", "run.yml"), ("mapping.yaml", "mapping.yml")):
        (tmp_path / old).rename(tmp_path / new)
    assert read_case("tiny", tmp_path).run.hint_loops == [["OY", "all"]]
    (tmp_path / "network.onnx").write_bytes(b"")
    files = CaseFiles(tmp_path)
    assert files.notices() == [f"{tmp_path}/network.onnx: has no effect, because {tmp_path}/workload.yaml is used"]
    (tmp_path / "workload.yaml").unlink()
    assert files.find("workload") == tmp_path / "network.onnx"
    (tmp_path / "network.onnx").rename(tmp_path / "resnet18_head.onnx")
    assert files.find("workload") == tmp_path / "resnet18_head.onnx"
    (tmp_path / "other.onnx").write_bytes(b"")
    assert files.find("workload") is None


def test_a_table_of_loops_is_by_layer(tmp_path: Path) -> None:
    """`hint_loops` as a table gives each layer its own loops, for either mode that the file names."""
    for mode in (1, 3):
        run = {**RUN, "cn_define_mode": mode, "hint_loops": {0: [["OY", "all"]], "1": []}}
        case = read_case("tiny", write_case(tmp_path, run=run))
        assert case.tiling.cn_define_mode == 3
        assert case.tiling.hint_loops == {(0,): (("OY", "all"),), (1,): ()}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hint_loops": "OY"}, r"run\.yaml:2 hint_loops: wrong form"),
        ({"cn_define_mode": 9}, r"run\.yaml:1 cn_define_mode: no mode"),
        ({"hint_loops": [["OY", 0]]}, r"run\.yaml:2 hint_loops\[0\]: the size"),
        ({"layer_cutoffs": [1]}, r"run\.yaml:11 layer_cutoffs: is for cn_define_mode 3 only"),
    ],
)
def test_wrong_loops_are_told_with_their_line(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    """Wrong loops are reported with their line when the case is read."""
    with pytest.raises(InputError, match=said):
        read_case("tiny", write_case(tmp_path, run={**RUN, **changed}))


@pytest.mark.parametrize(("value", "number"), [("6.18e6", 6.18e6), (-5, None), (float("nan"), None), (True, None)])
def test_a_number_that_is_none_is_unknown_and_a_notice_says_so(
    tmp_path: Path, value: object, number: float | None
) -> None:
    """A measured value that is no positive number is unknown, with a notice; the text 6.18e6 is read as a number."""
    case = read_case("tiny", write_case(tmp_path, expected={"measured": {"latency": value}}))
    assert case.expected.measured_cycles == number
    assert any("measured.latency: is not a number above 0" in notice for notice in case.notices) == (number is None)


def test_a_file_of_results_must_be_a_table(tmp_path: Path) -> None:
    """A file of results that is no table is refused."""
    with pytest.raises(InputError, match=r"expected\.yaml.* must be a table of keys"):
        read_case("tiny", write_case(tmp_path, expected=[100]))


def test_a_variant_has_files_of_its_own(tmp_path: Path) -> None:
    """A variant uses its own accelerator and core files, and the other files of the case."""
    write_case(tmp_path)
    only = dict.fromkeys(("workload", "mapping", "run", "expected"))
    variant = write_case(tmp_path / "variant_small", cores__core={**core(), "name": "other"}, **only)
    case = read_case("tiny/variant_small", tmp_path, variant)
    assert case.system.accelerator.cores[0].name == "other"
    assert read_case("tiny", tmp_path).system.accelerator.cores[0].name == "core"
    assert case.expected.measured_cycles == 100


def test_there_must_be_a_case(tmp_path: Path) -> None:
    """A missing folder, an empty folder and an unknown name of a case are refused."""
    with pytest.raises(InputError, match="no such folder"):
        find_cases(tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no case"):
        find_cases(tmp_path)
    write_case(tmp_path / "depfin")
    with pytest.raises(InputError, match=r"no such case, got depfun .*did you mean 'depfin'"):
        find_cases(tmp_path, ("depfun",))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """All problems of a case are reported together: a missing mapping and each fault of the run file."""
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
    """An unknown key of the run file gets a notice, and keys for the origin of a case get none."""
    notices = read_case("tiny", write_case(tmp_path, run={**RUN, "hint_lops": []})).notices
    assert [notice for notice in notices if "run.yaml" in notice] == [
        f"{tmp_path}/run.yaml:11 hint_lops: has no effect"
    ]
