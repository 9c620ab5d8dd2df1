"""The TPU in the court: bound and estimate follow from the values of a row, and `evaluate` gives the estimates."""

import re
from math import prod
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import evaluate
from tilewright.cost.waiting import WAITING_TERMS, waiting_keys
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.mapped_layer import PRODUCT_EQUATION
from tilewright_evidence.court.tpu import DEVICE, ON_CHIP, TPU, UP_DOWN, prepare, tpu
from tilewright_evidence.court.tpu_mapping import (
    COMMAND_LATENCY,
    DIMENSIONS,
    HARDWARE,
    REQUEST_LATENCY,
    clock_mhz,
    mapping_of,
    tpu_core,
    tpu_document,
)

IDEAL = {DEVICE: {COMMAND_LATENCY: 1e-6, REQUEST_LATENCY: 1.0}}
HEAD = "op,m,n,k,contents,time_ns"
ATTENTION_HEAD = "phase,batch,new_tokens,cached_tokens,p50_ns,flops,kv_bytes"
FILES = set_files(DATA / TPU.name, TPU.patterns)


def case_of(tmp_path: Any, line: str, kind: str = "matmul") -> Any:
    """Return the case of one row on an ideal chip."""
    for name, head in (("matmul", HEAD), ("attention", ATTENTION_HEAD)):
        (tmp_path / f"{name}_x.csv").write_text("\n".join([head, *([line] if name == kind else [])]) + "\n")
    (prepared,) = prepare(sorted(tmp_path.glob("*.csv")))
    return prepared.case(IDEAL)


@pytest.mark.parametrize(
    ("contents", "weights", "bound_weights"),
    [("own", 1, 1), ("up+down", 2, 2), ("gate+up", 2, 2), ("weights on chip", 0, 0), ("q or q+k+v", 1, 1)],
)
def test_what_a_row_holds_is_what_is_moved(tmp_path: Any, contents: str, weights: int, bound_weights: int) -> None:
    """The contents of a row decide how often its weights move: once, twice, or not at all.
    The row has eight tokens and 4096 x 14336 weights of two bytes.
    """
    found = case_of(tmp_path, f"x,8,4096,14336,{contents},1e9")
    read = 1e9 * 2 * 4096 * 14336 / tpu().hbm_bytes_per_s
    others = max(1, weights) * 1e9 * 8 * 2 * (4096 + 14336) / tpu().hbm_bytes_per_s
    if weights:
        # Beside HBM, only the first tile of weights goes through the vector memory while nothing else moves.
        assert weights * read + others <= found.estimate <= weights * (read + 300) + others
    else:
        assert found.estimate < read / 2
    assert found.bound == pytest.approx(bound_weights * read) or weights == 0


def test_tokens_are_padded() -> None:
    """4,097 tokens occupy the array as long as 4,104, in commands of eight tokens that each have a latency."""
    passes = 4096 // 256 * 4096 // 512
    for latency in (0.01, 1.5):
        core = tpu_core(((COMMAND_LATENCY, latency),))
        for tokens in (4097, 4100, 4104):
            parts = mapping_of(tokens, 4096, 4096).parts(core)
            busy = parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"] + parts["command_waiting"]
            assert busy == pytest.approx(passes * 4104 / 8 * (8 + latency), abs=2)


def test_the_array_starts_when_all_inputs_are_on_chip() -> None:
    """The array starts when all inputs have arrived over HBM, so `down` with longer inputs is slower than `up`."""
    core = tpu_core()
    down, up = mapping_of(1536, 4096, 14336), mapping_of(1536, 14336, 4096)
    waits = {name: mapping.parts(core)["onloading"] for name, mapping in (("down", down), ("up", up))}
    for name, inputs in (("down", 14336), ("up", 4096)):
        loading = 2 * 1536 * inputs / tpu().hbm_bytes_per_s * clock_mhz() * 1e6
        assert loading < waits[name] < loading + 2000
    assert sum(down.parts(core).values()) > sum(up.parts(core).values())


def test_an_impossible_row_is_explained(tmp_path: Any) -> None:
    """An impossible row breaks its bound and has an explanation."""
    found = case_of(tmp_path, "lm_head,1,128256,4096,implausible,330000")
    assert found.breaks_bound
    assert "too short to read the weights" in found.explained


def test_attention_moves_expanded_keys_and_scores(tmp_path: Any) -> None:
    """Attention moves four times the keys and values, and twelve bytes a score."""
    found = case_of(tmp_path, "decode,1,1,99,1e9,1,1000", "attention")
    assert found.estimate == pytest.approx(1e9 * (4 * 1000 + 12 * 32 * 100) / tpu().hbm_bytes_per_s)
    assert found.bound == pytest.approx(1e9 * 1000 / tpu().hbm_bytes_per_s)


def test_samples_hold_all_kinds_of_rows() -> None:
    """The samples have rows of every kind."""
    parts = {one.case(TPU.values()).part for one in prepare(FILES)}
    assert {"products", "q or q+k+v", "weights on chip", "attention, decode", "attention, prefill"} <= parts


@pytest.mark.parametrize("sizes", [(1, 4096, 4096), (7, 128256, 4096), (2048, 4096, 14336), (5, 100, 300), (3, 300, 9)])
def test_mappings_cover_the_product(sizes: tuple[int, int, int]) -> None:
    """The loop sizes of a mapping cover the matrix product, rounded up to whole passes over the array."""
    mapping = mapping_of(*sizes)
    found = dict.fromkeys(DIMENSIONS, 1)
    lanes = 1
    for name, size in (*mapping.order, *(loop for _, loops in mapping.unrolling for loop in loops)):
        found[name] *= size
    for _, loops in mapping.unrolling:
        lanes *= prod(size for _, size in loops)
    assert found == mapping.layer.size_of
    assert lanes <= 2 * 256 * 256
    assert found["B"] == sizes[0]
    for name, size in zip(("K", "C"), sizes[1:], strict=True):
        assert size <= found[name] <= size * 1.02 + 1


def test_evaluate_gives_the_same_numbers_to_the_bit(tmp_path: Path) -> None:
    """`evaluate` gives exactly the estimates of products; a row of two products is their sum."""
    kinds: dict[str, list[Any]] = {}
    for one in prepare(FILES):
        if "contents" in one.row:
            kinds.setdefault(one.row["contents"], []).append(one)
    assert {UP_DOWN, ON_CHIP, "own", "q or q+k+v"} <= set(kinds)
    for contents, rows in kinds.items():
        hardware, workload = tmp_path / "hardware.yaml", tmp_path / "workload.yaml"
        document = tpu_document(weights_on_chip=contents == ON_CHIP)
        hardware.write_text(yaml.safe_dump(document, sort_keys=False))
        for one in (rows[0], rows[-1]):
            cycles, alone = 0.0, 0.0
            for mapping in one.mappings:
                entry = {
                    "id": 0,
                    "name": mapping.layer.name,
                    "operator_type": "MatMul",
                    "equation": PRODUCT_EQUATION,
                    "loop_dims": list(DIMENSIONS),
                    "loop_sizes": [mapping.layer.size_of[name] for name in DIMENSIONS],
                    "operand_precision": {"W": 16, "I": 16, "O": 32, "O_final": 16},
                    "operand_source": {"I": 0, "W": 0},
                }
                workload.write_text(yaml.safe_dump([entry], sort_keys=False))
                (record,) = evaluate(
                    hardware=str(hardware), workload=str(workload), points=[mapping.point()], model="corrected"
                )
                cycles += record.latency_cycles
                alone += record.latency_cycles - sum(record.latency_breakdown_cycles[name] for name in WAITING_TERMS)
            case = one.case(TPU.values())
            assert (1e3 * cycles / clock_mhz(), 1e3 * alone / clock_mhz()) == (case.estimate, case.alone), one.row


def test_each_line_of_a_key_names_its_source() -> None:
    """The generated file equals the shipped one, and each of its lines on waiting or the clock names its source."""
    assert tpu_document() == yaml.safe_load(HARDWARE.read_text())
    assert tpu().flops_per_s == pytest.approx(9.18e14, rel=1e-8)
    assert tpu().hbm_bytes_per_s == 1.638e12
    assert not tpu_core(alone=True).waits
    keys = {*waiting_keys(tpu_core()), "command_dimensions", "clock_frequency"}
    lines = [line.strip() for line in HARDWARE.read_text().splitlines() if not line.startswith("#")]
    sourced = [line for line in lines if line.split(":")[0] in keys]
    assert len(sourced) == len(keys)
    assert all(re.search(r"# ([SJDFA], )*[SJDFA]: ", line) for line in sourced), sourced


@pytest.mark.parametrize("weights_on_chip", [False, True])
def test_other_times_give_the_core_of_the_whole_file(weights_on_chip: bool) -> None:
    """A core with replaced numbers equals that of the changed file."""
    values = {name: value * 1.07 for name, value in TPU.values()[DEVICE].items()}
    core = tpu_core(tuple(sorted(values.items())), weights_on_chip=weights_on_chip)
    read = read_accelerator(tpu_document(values, weights_on_chip=weights_on_chip)).cores[0]
    assert core == read != tpu_core(weights_on_chip=weights_on_chip)


def test_shares_are_those_of_the_keys() -> None:
    """Large products reach the shares of peak and bandwidth that the prediction of attention uses."""
    values = TPU.values()[DEVICE]
    core = tpu_core(tuple(sorted(values.items())))
    parts = mapping_of(8192, 4096, 4096).parts(core)
    busy = parts["ideal"] + parts["spatial_stall"] + parts["temporal_stall"] + parts["command_waiting"]
    peak = 2 * 8192 * 4096 * 4096 / tpu().flops_per_s * clock_mhz() * 1e6
    assert peak / busy == pytest.approx(tpu().matrix_share(values), rel=1e-3)
    moving = sum(mapping_of(1, 14336, 4096).parts(core).values()) / clock_mhz() / 1e6
    moved = 2 * (14336 * 4096 + 14336 + 4096) / tpu().hbm_bytes_per_s
    assert moved / moving == pytest.approx(tpu().memory_share(values), rel=1e-3)
