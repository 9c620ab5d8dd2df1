"""Costs of the library as rows of data, and as lines of text for people."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.hardware.silicon.library import CACTI, CHECKED, LibraryEntry, sram_table
from tilewright.hardware.silicon.memory_cost import CostSource, MemoryCost


def entry_row(entry: LibraryEntry) -> JsonObject:
    """Library entry as JSON data."""
    low, high = entry.energy_range_pj or (None, None)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "what": entry.what,
        "node_nm": entry.node_nm,
        "energy_pj": entry.energy_pj,
        "energy_low_pj": low,
        "energy_high_pj": high,
        "energy_per": entry.energy_per,
        "area_um2": entry.area_um2,
        "leakage_mw": entry.leakage_mw,
        "bandwidth_gbyte_s": entry.bandwidth_gbyte_s,
        "conditions": entry.conditions,
        "checked": entry.checked,
        "sources": [{"publication": source.publication, "note": source.note} for source in entry.sources],
    }


def entry_lines(entry: LibraryEntry) -> Iterator[str]:
    """Lines of text that describe a library entry."""
    node = f", {entry.node_nm:g} nm" if entry.node_nm else ""
    yield f"{entry.name}: {entry.what}{node} ({entry.kind})"
    if entry.energy_pj is not None:
        low, high = entry.energy_range_pj or (None, None)
        ranged = "" if low is None else f", {low:g} to {high:g} by source or condition"
        yield f"  energy      {entry.energy_pj:g} pJ, for each {entry.energy_per}{ranged}"
    if entry.area_um2 is not None:
        yield f"  area        {entry.area_um2:g} um2"
    if entry.leakage_mw is not None:
        yield f"  leakage     {entry.leakage_mw:g} mW"
    if entry.bandwidth_gbyte_s is not None:
        yield f"  bandwidth   {entry.bandwidth_gbyte_s:g} GB/s"
    if entry.conditions:
        yield f"  conditions  {entry.conditions}"
    for place, source in enumerate(entry.sources):
        yield f"  {'source' if place == 0 else 'also':<10}  {source.publication}: {source.note}"
    yield f"  checked     {entry.checked}: {CHECKED[entry.checked]}"


def memory_row(cost: MemoryCost) -> JsonObject:
    """Costs of a memory as JSON data."""
    return {
        "read_energy_pj": cost.read_energy_pj,
        "write_energy_pj": cost.write_energy_pj,
        "area_mm2": cost.area_mm2,
        **source_row(cost.source),
        "remarks": list(cost.remarks),
    }


def source_row(source: CostSource) -> JsonObject:
    """Source of costs as JSON data."""
    return {
        "leakage_mw": source.leakage_mw,
        "access_time_ns": source.access_time_ns,
        "range_low": source.relative_range[0],
        "range_high": source.relative_range[1],
        "law": source.law,
        "source": source.source,
        "steps": list(source.steps),
    }


def memory_lines(row: dict[str, Any]) -> Iterator[str]:
    """Lines of text that describe the costs in `row`, which is a result of `memory_row`. The remarks are left out if
    `row` has no key `remarks`.
    """
    energies = f"read {row['read_energy_pj']:g} pJ, write {row['write_energy_pj']:g} pJ a word"
    yield f"  {energies}, area {row['area_mm2']:g} mm2"
    leakage, access = row["leakage_mw"], row["access_time_ns"]
    told = ["leakage not known" if leakage is None else f"leakage {leakage:g} mW"]
    told.append("access time not known" if access is None else f"access time {access:g} ns")
    yield f"  {', '.join(told)}"
    if (row["range_low"], row["range_high"]) != (1.0, 1.0):
        yield f"  range: energies and area can be {row['range_low']:.4g} to {row['range_high']:.4g} times these values"
    yield f"  law: {row['law']}; source: {row['source']}"
    for number, step in enumerate(row["steps"], 1):
        yield f"  {number}. {step}"
    for remark in row.get("remarks", ()):
        yield f"  note: {remark}"


def table_lines() -> Iterator[str]:
    """Lines that summarise the CACTI table by setup, process node and cell type."""
    for group, found in sorted(sram_table(CACTI).items()):
        sizes = [place.size_bytes for place in found]
        widths = Counter(place.width_bits for place in found)
        span = f"{min(sizes):,} to {max(sizes):,} bytes, words of {min(widths)} to {max(widths)} bits"
        yield f"{group.setup} {group.node_nm} nm {group.cell_type}: {len(found)} memories, {span}"
