"""Random changes of valid files: the readers accept the result or raise InputError."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError, Problem
from tilewright.base.yamlfile import parse_yaml
from tilewright.designs.space_reader import read_space, space_of
from tilewright.hardware.yaml_reader import accelerator_of, read_accelerator
from tilewright.mapping.file_checks import check_mapping_against_core
from tilewright.mapping.yaml_reader import mapping_of, read_mapping
from tilewright.workload.yaml_reader import read_workload_yaml, workload_of

from tests.members import members

HARDWARE = """\
name: small
memories:
  rf:
    size: 64
    r_cost: 0.1
    w_cost: 0.2 pJ
    operands: [I1, I2]
    ports:
      - {name: r, type: read, bandwidth_min: 8, bandwidth_max: 2 B/cycle, allocation: ["I1, tl", "I2, tl"]}
      - {name: w, type: write, bandwidth_min: 8, bandwidth_max: 16, allocation: ["I1, fh", "I2, fh"]}
    served_dimensions: []
  sram:
    size: 2 KiB
    r_cost: 10
    w_cost: 11
    operands: [I1, I2, O]
    ports:
      - {name: rw, type: read_write, bandwidth_min: 8, bandwidth_max: 16, allocation: ["I1, tl", "I2, tl", "O, fl"]}
    served_dimensions: [D1, D2]
operational_array: {unit_energy: 0.5, dimensions: [D1, D2], sizes: [4, 8], systolic_dimensions: [D1]}
dataflows: [{D1: ["K, 4"]}, {D1: ["OX, 2", "OY, 2"], D2: ["C, 8"]}]
"""
MAPPING = """\
- name: default
  spatial_mapping: {D1: ["K, 32"], D2: ["C, 2", "FX, 3"]}
  spatial_mapping_hint: {D1: [K]}
  memory_operand_links: {O: O, W: I2, I: I1}
  temporal_ordering: [[OX, 112], [OY, "*"], ["*", "*"]]
- name: Add
"""
WORKLOAD = """\
- id: 0
  name: conv
  operator_type: Conv
  equation: O[k][ox]+=W[k][c][fx]*I[c][ix]
  dimension_relations: [ix=2*ox+1*fx]
  loop_dims: [K, C, OX, FX]
  loop_sizes: [8, 4, 5, 3]
  operand_precision: {W: 8, I: 4, O: 24, O_final: 9}
  operand_source: {I: 0, W: 0}
  pr_loop_dims: [IX]
  padding: [[1, 2]]
- {id: 1, operator_type: Gemm, equation: "O[d] = I[d] + W[]", loop_dims: [d], loop_sizes: [2],
   operand_precision: {W: 8, I: 4, O: 24, O_final: 9}, operand_source: {I: 0}}
"""
CONFIG = Path(__file__).resolve().parents[3] / "config"
SPACE = f"""\
accelerator: {CONFIG}/hardware/systolic/systolic.yaml
mapping: {CONFIG}/mapping/zigzag/tpu_like.yaml
networks: [{CONFIG}/workload/mobilenetv2.onnx]
axes:
  rows: {{path: operational_array.sizes.0, values: [8, 16]}}
  kib: {{from: 32, to: 128, factor: 2}}
  bits: {{from: 64, to: 128, step: 64, path: [memories.sram.ports.r_port_1.bandwidth_max]}}
  memory: {{choices: {{small: {{memories.sum_register.size: 16}}, large: {{memories.sum_register.size: 32}}}}}}
laws: {{mm2: 0.002 * kib + 0.1, memories.sram.area: mm2, memories.sram.size: kib * 8192, one: 1}}
constraints: [rows * kib < 512 or memory == 'small', area_mm2 <= 2]
objectives: [energy_pj, area_mm2]
options: {{objective: EDP, lpf_limit: 6}}
shard_designs: 10
"""
KINDS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "hardware": (HARDWARE, read_accelerator, accelerator_of),
    "mapping": (MAPPING, read_mapping, mapping_of),
    "space": (SPACE, read_space, space_of),
    "workload": (WORKLOAD, read_workload_yaml, lambda document: workload_of(document, "w")),
}
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 70), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["D1", "I1", "O", "I1, tl", "K, 4", "2 KiB", "*", "ix=ox+fx", "default", "Conv", "0"]),
    st.sampled_from(["rows", "1/kib", "memories.sram.area"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS.filter(str), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a nested value."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        found += [(value, key) for key in value]
    elif isinstance(value, list):
        found += [(value, index) for index in range(len(value))]
    for container, key in list(found):
        found += places(container[key])
    return found


def problems_of(read: Callable[[Any], Any], source: Any) -> tuple[Problem, ...] | None:
    """Return the problems of a source, or None if it is read; any other exception fails the test."""
    try:
        read(source)
    except InputError as error:
        return error.problems
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_the_unchanged_file_is_valid(kind: str) -> None:
    """The unchanged files are valid."""
    text, read_data, read_document = KINDS[kind]
    assert read_document(parse_yaml(text))
    assert read_data(yaml.safe_load(text))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=members(100, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_changed_values_are_read_or_refused(kind: str, data: st.DataObject) -> None:
    """Replaced, deleted or added values give a result or an InputError with problems that print."""
    text, read_data, _ = KINDS[kind]
    changed = copy.deepcopy(yaml.safe_load(text))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(changed)))
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "replace":
            container[key] = data.draw(VALUES)
        elif action == "delete":
            del container[key]
        elif isinstance(container, dict):
            container[data.draw(SCALARS)] = data.draw(VALUES)
        else:
            container.append(data.draw(VALUES))
        if not places(changed):
            break
    problems = problems_of(read_data, changed)
    assert problems is None or (problems and all(str(problem) for problem in problems))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=members(100, 40), deadline=None)
@given(
    start=st.integers(0, 2000),
    length=st.integers(0, 30),
    insert=st.one_of(
        st.text(max_size=10), st.text(alphabet=" \n\t-:[]{}*&!|>'\"#%@,?0123456789abcDIOKWX", max_size=12)
    ),
)
def test_changed_text_is_read_or_refused(kind: str, start: int, length: int, insert: str) -> None:
    """Text that is cut or inserted anywhere gives a result or an InputError."""
    text, _, read_document = KINDS[kind]
    position = start % len(text)
    changed = text[:position] + insert + text[position + length :]
    problems = problems_of(lambda content: read_document(parse_yaml(content, "f.yaml")), changed)
    files = {problem.file for problem in problems or ()}
    assert {file for file in files if not file.startswith(f"{CONFIG}/")} <= {"f.yaml"}, "a problem is in another file"


@settings(max_examples=members(50, 20), deadline=None)
@given(name=st.text(max_size=5), dimension=st.integers(0, 99))
def test_a_mapping_is_checked_against_any_core(name: str, dimension: int) -> None:
    """The check of a mapping against a core returns problems and raises nothing."""
    core = read_accelerator(yaml.safe_load(HARDWARE)).cores[0]
    mapping = read_mapping([{"name": "default", "spatial_mapping": {f"D{dimension}": ["K, 4"]}}])
    problems = check_mapping_against_core(mapping, core, name)
    assert bool(problems) == (dimension not in (1, 2))
