"""Table of the errors of predictions: its file, classes and limits, and the message for an unknown class."""

import csv

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.results.error_bars.table import (
    ANY,
    LATENCY,
    LEAST_ROWS,
    LEVELS,
    LIMITS,
    MACHINE,
    OWN,
    POWER,
    PROGRAM,
    ROW_STATIONARY,
    TABLE,
    WHOLE,
    check_class,
    error_table,
    has_waiting,
    limit_of,
    table_of,
    table_rows,
)
from tilewright.search.options import MACHINES

ARRAY, MOVING_DATA, WAITING = LIMITS


def test_the_file_is_what_its_cells_give() -> None:
    """Reading the table of the package and writing it again gives the same rows."""
    with TABLE.open(newline="") as file:
        assert table_rows(list(error_table().cells.values())) == list(csv.reader(file))


def test_quantiles_rise_with_their_level() -> None:
    """Quantiles of each part never fall with their level, and latencies have all three parts."""
    for key, cell in error_table().cells.items():
        assert tuple(cell.parts) == ((PROGRAM, MACHINE, OWN) if key.quantity == LATENCY else (WHOLE,))
        assert all(np.all(np.diff(values) >= 0) for values in cell.parts.values())
        assert all(len(values) == len(LEVELS) for values in cell.parts.values())


def test_every_class_is_in_the_table() -> None:
    """Each class has errors of its own, and `any` has errors for every limit that a hardware file can have."""
    keys = error_table().cells.keys()
    assert {key.device_class for key in keys} == set(MACHINES)
    limits = {(key.has_keys, key.limit) for key in keys if (key.device_class, key.quantity) == (ANY, LATENCY)}
    assert limits == {*((True, limit) for limit in LIMITS), (False, ARRAY), (False, MOVING_DATA)}


def test_errors_without_the_keys_are_larger() -> None:
    """Predictions without keys of calls, commands and requests are faster than measured, and more uncertain."""
    for limit in (ARRAY, MOVING_DATA):
        with_keys, without = (error_table().cell(ANY, has_keys, limit) for has_keys in (True, False))
        assert without.quantile(PROGRAM, 0.5) > max(0.0, with_keys.quantile(PROGRAM, 0.5))
        for part in (PROGRAM, MACHINE, OWN):
            spreads = [cell.quantile(part, 0.9) - cell.quantile(part, 0.1) for cell in (with_keys, without)]
            assert spreads[1] > spreads[0]


def test_few_rows_are_replaced_by_those_of_all_classes() -> None:
    """A limit with fewer than five rows in a class, or with none, has the errors of the class `any`."""
    table = error_table()
    own = next(cell for key, cell in table.cells.items() if key[:3] == (ROW_STATIONARY, False, MOVING_DATA))
    assert own.rows < LEAST_ROWS
    assert table.cell(ROW_STATIONARY, False, MOVING_DATA) is table.cell(ANY, False, MOVING_DATA)
    assert table.cell(ROW_STATIONARY, True, WAITING) is table.cell(ANY, True, WAITING)
    assert table.cell(ROW_STATIONARY, False, ARRAY).key.device_class == ROW_STATIONARY


def test_only_one_class_has_measured_power() -> None:
    """The power of Eyeriss is the only measured power; it also stands for the class `any`."""
    measured = {name: table.sets for name in MACHINES if (table := error_table().power(name)) is not None}
    assert measured == {ROW_STATIONARY: ("eyeriss_v1",), ANY: ("eyeriss_v1",)}
    assert error_table().power(ROW_STATIONARY).key.quantity == POWER  # type: ignore[union-attr]


def test_the_limit_is_the_kind_of_cause_with_most_cycles() -> None:
    """The limit is the kind of cause with most cycles; idle units count as the array, and all ports as moving data."""
    assert limit_of({"ideal": 4, "spatial_stall": 3, "temporal_stall": 6}) == ARRAY
    assert limit_of({"ideal": 4, "temporal_stall": 3, "onloading": 2}) == MOVING_DATA
    assert limit_of({"ideal": 4, "call_waiting": 3, "command_waiting": 2}) == WAITING
    assert limit_of({}) == ARRAY
    assert has_waiting([{"ideal": 1}, {"ideal": 1, "request_waiting": 1}])
    assert not has_waiting([{"ideal": 1, "request_waiting": 0}])


def test_an_unknown_class_is_told_with_the_nearest() -> None:
    """The message has the option, the name, all classes and the nearest one."""
    assert check_class(ANY) == ANY
    with pytest.raises(InputError) as found:
        check_class("many-cores")
    text = str(found.value)
    assert "error_bars: no such class of machines, got many-cores" in text
    assert "did you mean 'many-core'" in text
    assert all(name in text for name in MACHINES)


def test_a_table_is_read_by_its_headings() -> None:
    """A cell is read with its counts and the names of its sets."""
    row = {f"{level:g}": str(level) for level in LEVELS} | {"quantity": LATENCY, "class": ANY, "keys": "with"}
    row |= {"limit": ARRAY, "part": OWN, "sets": "one two", "machines": "2", "programs": "3", "rows": "40"}
    (cell,) = table_of([row]).cells.values()
    assert (cell.sets, cell.machines, cell.programs, cell.rows) == (("one", "two"), 2, 3, 40)
    assert cell.quantile(OWN, 0.3) == pytest.approx(0.3)


def test_the_help_of_each_verb_explains_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of `map`, `explore` and `compare` says which machines each class has."""
    for verb in ("map", "explore", "compare"):
        assert main([verb, "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        for name, words in MACHINES.items():
            assert f"{name}: {words}" in told.replace("- ", "-"), (verb, name)
