"""`tilewright cost-library`: entries of the library of costs, and the derivation of the costs of a memory."""

from collections.abc import Sequence
from typing import Annotated, Any

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Label, Problem, nearest_name
from tilewright.base.harmless import ended_lines, terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits, OneOf
from tilewright.base.units import FieldError, parse_size_bits
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, verb
from tilewright.hardware.silicon.explanation import (
    entry_lines,
    entry_row,
    memory_lines,
    memory_row,
    source_row,
    table_lines,
)
from tilewright.hardware.silicon.library import LibraryEntry, dram_types, entries
from tilewright.hardware.silicon.memory_cost import (
    CELLS,
    REGISTER_FILE,
    SRAM,
    MemoryCost,
    MemoryShape,
    NoCostError,
    dram_memory,
    register_file_memory,
    sram_memory,
    zigzag_memory,
)

ZIGZAG = "auto_cost_extraction"
_GIVEN_IN_FILE = "numbers of the file"


def _show(rows: list[JsonObject], names: Sequence[str], hardware: FilePath | None, as_json: bool) -> None:
    if as_json:
        echo_json(rows)
    elif names or hardware:
        echo_text(terminal_lines(line for row in rows for line in _lines(row)), nl=True)
    else:
        echo_text(_listing(rows))


@verb(
    """List the library of costs, or explain the entries NAMES.

    The explanation of an entry gives its source. For a memory, give the name sram, register_file or
    auto_cost_extraction, with --size and --width: the command derives the costs of the memory step by step.

    Example: tilewright cost-library sram --size "48 KiB" --width 64 --node-nm 28 --cells lstp
    """,
    show=_show,
)
def cost_library(
    names: Annotated[Sequence[str], ARGUMENT] = (),
    kind: Annotated[str, Help("Kind of the entries to list, such as dram or link.")] = "",
    hardware: Annotated[FilePath | None, Help("Hardware file whose memory costs are explained.")] = None,
    size: Annotated[
        str | int, Help("Size of the memory, such as 64 KiB, for sram, register_file or auto_cost_extraction.")
    ] = "",
    width: Annotated[int | None, Limits(least=1), Help("Width of a word of the memory, in bits.")] = None,
    node_nm: Annotated[float | None, Limits(above=0), Help("Technology node of the memory, in nm.")] = None,
    cells: Annotated[str, OneOf(tuple(sorted(CELLS))), Help("Type of the cells of an SRAM.")] = "hp",
) -> list[JsonObject]:
    """Rows, one for each entry of the library, or for each name in `names`.

    For the names `sram`, `register_file` and `auto_cost_extraction`, the row has the costs of a memory of the given
    `size` with words of `width` bits. For the name of a DRAM with a `width`, the row has the costs of an access of
    `width` bits. If `hardware` is given, there is a row for each memory of the file, with its costs, their source, and
    their derivation. Energies are in pJ. Areas are in mm2 or um2; the key names the unit. Raises InputError for unknown
    names, and for memories for which the library has no costs.
    """
    if hardware is not None:
        return _of_hardware(hardware)
    if not names:
        return [entry_row(entry) for entry in _of_kind(kind)]
    return [_named(name, size, width, node_nm, cells) for name in names]


def _of_kind(kind: str) -> list[LibraryEntry]:
    kinds = list(dict.fromkeys(entry.kind for entry in entries().values()))
    if kind and kind not in kinds:
        near = nearest_name(kind, kinds)
        raise InputError(
            [
                Problem(
                    "there is no entry of this kind",
                    path="kind",
                    value=repr(kind),
                    allowed=", ".join(kinds),
                    nearest=near,
                )
            ]
        )
    return [entry for entry in entries().values() if kind in ("", entry.kind)]


def _named(name: str, size: str | int, width: int | None, node_nm: float | None, cells: str) -> JsonObject:
    """Row of the library entry `name`. For `sram`, `register_file`, `auto_cost_extraction`, and a DRAM with a `width`,
    the row has the costs of a memory of the given size and width. Raises InputError for an unknown name, and for a
    missing or wrong argument.
    """
    if name in (SRAM, REGISTER_FILE, ZIGZAG) or (name in dram_types() and width is not None):
        return {"name": name, **memory_row(_memory(name, size, width, node_nm, cells))}
    if name not in entries():
        known = [SRAM, REGISTER_FILE, ZIGZAG, *entries()]
        near = nearest_name(name, known)
        raise InputError(
            [
                Problem(
                    "the library has no such entry",
                    value=repr(name),
                    allowed="`tilewright cost-library` lists them",
                    nearest=near,
                )
            ]
        )
    return entry_row(entries()[name])


def _memory(name: str, size: str | int, width: int | None, node_nm: float | None, cells: str) -> MemoryCost:
    needs: dict[str, object] = {"width": width} if name in dram_types() else {"size": size, "width": width}
    if name in (SRAM, REGISTER_FILE):
        needs["node_nm"] = node_nm
    if missing := [option for option, value in needs.items() if not value]:
        raise InputError([Problem(f"{name} needs this option", path=option) for option in missing])
    bits = width or 0
    try:
        size_bits = parse_size_bits(int(size) if str(size).isdigit() else size) if size else 0
        shape = MemoryShape(size_bits, bits, bits)
        if name == SRAM:
            return sram_memory(shape, node_nm or 0.0, cells)
        if name == REGISTER_FILE:
            return register_file_memory(shape, node_nm or 0.0)
        return zigzag_memory(size_bits, bits, SRAM) if name == ZIGZAG else dram_memory(shape, name)
    except FieldError as error:
        raise InputError([Problem(error.message, path="size", value=repr(size), allowed=error.allowed)]) from error
    except NoCostError as error:
        raise InputError([Problem(error.message, path=Label(name), allowed=error.allowed)]) from error


def _of_hardware(hardware: FilePath) -> list[JsonObject]:
    from tilewright.hardware.source import parse_accelerator

    rows = []
    for core in parse_accelerator(hardware).cores:
        for memory in core.memories:
            row: dict[str, Any] = {"core": core.name, "name": memory.name, "size_bits": memory.size_bits}
            row |= {"read_energy_pj": memory.read_energy_pj, "write_energy_pj": memory.write_energy_pj}
            row["area_mm2"] = memory.area_mm2
            nothing: dict[str, Any] = {
                "leakage_mw": None,
                "access_time_ns": None,
                "law": _GIVEN_IN_FILE,
                "source": "",
                "steps": [],
            }
            rows.append(row | (nothing if memory.cost_source is None else source_row(memory.cost_source)))
    return rows


def _lines(row: dict[str, Any]) -> list[str]:
    if "kind" in row:
        return list(entry_lines(entries()[row["name"]]))
    heading = f"{row['core']}, {row['name']}" if "core" in row else row["name"]
    if row["law"] == _GIVEN_IN_FILE:
        return [f"{heading}: {_GIVEN_IN_FILE}"]
    return [f"{heading}:", *memory_lines(row)]


def _listing(rows: list[dict[str, Any]]) -> str:
    from tilewright.results.terminal_tables import render, text_table

    table = text_table(
        "", ("name", "what", "energy for each", "checked"), ("nm", "energy\n[pJ]", "range\n[pJ]", "area\n[um²]")
    )
    for row in rows:
        spread = "" if row["energy_low_pj"] is None else f"{row['energy_low_pj']:g} to {row['energy_high_pj']:g}"
        cells = ["" if row[key] is None else f"{row[key]:g}" for key in ("node_nm", "energy_pj")]
        area = "" if row["area_um2"] is None else f"{row['area_um2']:g}"
        what = row["what"] if row["bandwidth_gbyte_s"] is None else f"{row['what']}, {row['bandwidth_gbyte_s']:g} GB/s"
        table.add_row(row["name"], what, row["energy_per"], row["checked"], *cells, spread, area)
    tables = ended_lines(table_lines())
    more = "`tilewright cost-library NAME` gives the source of an entry. Entries for SRAMs, from CACTI 7:"
    return f"{render(table)}{len(rows)} entries; {more}\n{tables}"
