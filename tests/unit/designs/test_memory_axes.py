"""Axes of memory sizes, and the sentence on designs that are slower with more memory."""

import pandas
from tilewright.designs.memory_axes import memory_axes, slower_with_more_memory
from tilewright.designs.space import Space

from tests.unit.designs.space_cases import COLUMNS, ROWS, SIZE, space_of
from tests.unit.designs.system_cases import system_space


def of_one_core(**options: str) -> Space:
    """Return a space whose second axis sets a size by a law and whose third axis sets one directly."""
    axes = {
        "rows": {"path": ROWS, "values": [8, 16]},
        "kib": {"values": [32, 64, 128]},
        "size": {"path": "memories.dram.size", "values": ["1 GiB", "512 MiB"]},
    }
    return space_of(axes=axes, laws={SIZE: "kib * 8192", COLUMNS: "rows"}, options=options)


def rows_of(*cycles: tuple[int, int, str, float]) -> pandas.DataFrame:
    """Return a table of designs: rows, KiB, size, cycles."""
    keys = ("rows", "kib", "size", "latency_cycles")
    found = [dict(zip(keys, row, strict=True)) | {"index": n, "status": "ok"} for n, row in enumerate(cycles)]
    return pandas.DataFrame(found).assign(network="net", unmet="")


def test_axes_set_sizes_directly_and_by_laws() -> None:
    """Memory axes set sizes directly or by laws; an axis of the array is none."""
    assert memory_axes(of_one_core()) == ("kib", "size")
    assert memory_axes(system_space()) == ("activation",)


def test_neighbouring_values_are_compared() -> None:
    """Each pair has neighbouring values of an axis: one pair of three is slower, by 10 %."""
    table = rows_of(
        *((8, kib, "1 GiB", cycles) for kib, cycles in ((128, 90.0), (32, 100.0), (64, 110.0))),
        *((16, kib, "1 GiB", cycles) for kib, cycles in ((32, 70.0), (64, 70.0))),
    )
    (sentence,) = slower_with_more_memory(of_one_core(), table)
    assert "neighbouring values of kib and equal values of all other axes were compared" in sentence
    assert "In 1 of 3 pairs, the design with the larger value takes more cycles, by up to 10.00%" in sentence
    assert "minimises latency, and greedy allocation can" in sentence
    assert "not meet a constraint" not in sentence
    limited = table.assign(unmet=["", "area_mm2 <= 1", "area_mm2 <= 1", "", ""])
    (told,) = slower_with_more_memory(of_one_core(), limited)
    assert "The pairs include the 2 designs with results that do not meet a constraint." in told
    free = of_one_core(temporal_mapping_search_engine="exact", allocation="free")
    assert next(slower_with_more_memory(free, table)).endswith("the search minimises latency.")


def test_sizes_as_texts_are_in_their_order() -> None:
    """Sizes in text are ordered by their value, and failed designs are no neighbours."""
    table = rows_of((8, 32, "1 GiB", 120.0), (8, 32, "512 MiB", 100.0))
    assert "with neighbouring values of size and" in next(slower_with_more_memory(of_one_core(), table))
    assert list(slower_with_more_memory(of_one_core(), table.assign(latency_cycles=[100.0, 120.0]))) == []
    assert list(slower_with_more_memory(of_one_core(), table.assign(status=["ok", "infeasible"]))) == []


def test_a_space_of_systems_names_the_rule_of_schedules() -> None:
    """The sentence on a space of systems says that the scheduler prefetches all data that fit a core."""
    table = pandas.DataFrame(
        {
            "activation": ["1 KiB", "64 KiB"],
            "width": [32, 32],
            "latency_cycles": [10.0, 11.0],
            "index": [0, 1],
            "status": ["ok", "ok"],
            "network": ["bert", "bert"],
            "unmet": ["", ""],
        }
    )
    (sentence,) = slower_with_more_memory(system_space(), table)
    assert "the scheduler prefetches all data that fit into a core" in sentence
