"""Dataclasses are encoded to JSON and decoded again."""

import json
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright import parse_accelerator, parse_mapping, parse_workload
from tilewright.base.artifacts.codec import decode, encode
from tilewright.hardware.core import Memory, OperationalArray
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.workload.access import AxisIndex, loop
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import Layer

CONFIG = Path(__file__).resolve().parents[4] / "config"


@pytest.mark.parametrize("kind", [Layer, WorkloadNode, Memory, OperationalArray, MappingConstraints])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_value_comes_back(kind: Any, data: st.DataObject) -> None:
    """Encoding and decoding through JSON gives an equal value, for any value."""
    value = data.draw(st.from_type(kind).map(without_odd_floats))
    for field in fields(kind) if is_dataclass(kind) else ():
        if "spread" in field.metadata:
            values = st.dictionaries(st.sampled_from(field.metadata["spread"]()), st.floats(0, 1e9))
            value = replace(value, **{field.name: tuple(sorted(data.draw(values).items()))})
    assert decode(kind, json.loads(json.dumps(encode(value)))) == value


def test_whole_descriptions_come_back() -> None:
    """A real accelerator, network and mapping are equal after encoding and decoding."""
    for value in (
        parse_accelerator(CONFIG / "hardware" / "cube_3d.yaml"),
        parse_workload(CONFIG / "workload" / "mobilenetv2.onnx"),
        parse_mapping(CONFIG / "mapping" / "cube_3d.yaml"),
    ):
        assert decode(type(value), json.loads(json.dumps(encode(value)))) == value


def without_odd_floats(value: Any) -> Any:
    """Return the record with 0 in place of NaN and infinities, which readers refuse."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{f.name: without_odd_floats(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, tuple):
        items = [without_odd_floats(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, float) and not abs(value) < 1e300:
        return 0.0
    return value


def test_named_tuples_are_objects_as_dataclasses_are() -> None:
    """Named tuples are encoded as objects with the names of their fields."""
    axis = loop("OY", 2, offset=-1)
    assert encode(axis) == {"terms": [["OY", 2]], "offset": -1}
    assert decode(AxisIndex, encode(axis)) == axis
    with pytest.raises(ValueError, match="expected an object with terms, offset"):
        decode(AxisIndex, [[["OY", 2]], -1])


def test_keys_that_do_not_fit_are_named() -> None:
    """The message names an unknown key, which can belong to a plug-in, and expected keys."""
    data = encode(OperationalArray((("D1", 2),), 1))
    with pytest.raises(ValueError, match=r"unknown key 'tree_pj'; no installed plug-in defines it$"):
        decode(OperationalArray, data | {"tree_pj": 0.1})
    with pytest.raises(ValueError, match=r"^AxisIndex: unknown key 'more'; expected the key 'offset'$"):
        decode(AxisIndex, {"terms": [], "more": 1})


def test_integers_in_float_fields_stay_integers() -> None:
    """A cost written as 1 comes back as the integer 1, since the model computes integers exactly."""
    array = OperationalArray((("D1", 2),), 1)
    assert type(decode(OperationalArray, encode(array)).unit_energy_pj) is int


@pytest.mark.parametrize("data", [{}, [], {"entries": 1}, {"entries": [], "more": 1}, {"entries": [{"name": 1}]}])
def test_wrong_shape_is_told(data: Any) -> None:
    """Data that does not fit the type is a ValueError, never half an object."""
    with pytest.raises(ValueError, match=r"expected|unknown key"):
        decode(Mapping, data)


def test_figures_are_keys_of_their_owner() -> None:
    """An attribute of hardware is a key beside the fields of its owner, unless it has its default value.
    Other keys and wrong values are refused.
    """
    memory = parse_accelerator(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml").cores[0].memories[0]
    assert "leakage_mw" not in encode(memory)
    data = encode(replace(memory, figures=(("leakage_mw", 0.5),)))
    assert data == encode(memory) | {"leakage_mw": 0.5}
    assert decode(Memory, data).figures == (("leakage_mw", 0.5),)
    for wrong in ({"unit_leakage_mw": 0.5}, {"leakage_mw": "much"}):
        with pytest.raises(ValueError, match=r"expected|unknown key"):
            decode(Memory, encode(memory) | wrong)


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        (
            OperationalArray,
            {"unit_energy_pj": "much"},
            "OperationalArray.unit_energy_pj: expected a number, got 'much'",
        ),
        (Memory, {"size_bits": "x" * 90}, "Memory.size_bits: expected a whole number, got 'xxxx"),
        (Memory, {"name": 3}, "Memory.name: expected text, got 3"),
        (Memory, {"operands": {}}, "Memory.operands: expected a list, got {}"),
        (Memory, {"leakage_mw": "much"}, "Memory.leakage_mw: expected a number, got 'much'"),
        (tuple[Memory, ...], None, "value: expected a list, got None"),
        (Memory | None, 3, "value: expected an object or null, got 3"),
        (dict[str, int], [], "value: expected an object, got []"),
        (bool | float, "a", "value: expected true or false or a number, got 'a'"),
        (Literal["a", "b"], "c", "value: expected a, b, got 'c'"),
    ],
)
def test_messages_name_types_in_words(kind: Any, data: Any, told: str) -> None:
    """A message about a value of a wrong type says in words which type is expected, never a class of Python."""
    if data and kind in (Memory, OperationalArray):
        own = parse_accelerator(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml").cores[0]
        data = encode(own.memories[0] if kind is Memory else own.operational_array) | data
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        decode(kind, data)
