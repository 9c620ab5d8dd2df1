"""Ledger of a design: its row in the results of a space, in the form that the comparison of two runs reads."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Label, Problem, nearest_name
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.cost.ledger import ACCESSES
from tilewright.designs.front_odds import parts_of_row
from tilewright.designs.results import OK, SUMMED, energy_parts, latency_parts
from tilewright.designs.stamped_tables import read_parquet
from tilewright.designs.table_files import FRONT_STEM, SPACE_STEM
from tilewright.hardware.attributes import power_terms
from tilewright.results.run_ledger import ENERGY, LATENCY, LedgerPlace, RunLedger, ledger_of
from tilewright.results.run_point import RunPoint

ASSUMES = "assumes"
"""Name of a column in the table of the front. The column has the assumptions behind the numbers of the table."""


def ledger_of_design(folder: Path, design: str, network: str = "", likely: str = "") -> RunLedger:
    """Ledger of the design with the name `design`, from the results in the folder of an exploration. If `network` is
    '', the network `likely` is taken if the space has it; otherwise, the only network of the space is taken.

    Raises InputError in four cases: the folder has no results; the design or the network does not exist; no network is
    given, and the space has several; the design has no results for the network.
    """
    path = folder / f"{SPACE_STEM}.parquet"
    if not path.is_file():
        raise InputError([Problem(f"the folder has no file {path.name} with the results of a space", str(folder))])
    table = read_parquet(path)
    rows = table[table["design"] == design]
    if rows.empty:
        known = table["design"].unique().tolist()
        raise InputError([Problem("no such design", str(path), value=design, nearest=nearest_name(design, known))])
    networks = rows["network"].tolist()
    network = network or (likely if likely in networks else "")
    if network not in networks and (network or len(networks) > 1):
        problem = "no such network" if network else "the space has several networks: name one of them"
        raise InputError([Problem(problem, path="network", value=network, allowed=", ".join(networks))])
    row = rows[rows["network"] == (network or networks[0])].to_dict("records")[0]
    if row["status"] != OK:
        raise InputError(
            [Problem(f"the design has no results for {row['network']}: {row['reason']}", path=Label(design))]
        )
    return ledger_of(_candidate(row, folder), _entries(row))


def _candidate(row: Mapping[Any, Any], folder: Path) -> RunPoint:
    area = row[AREA_MM2]
    return RunPoint(
        run=row["design"],
        workload=row["network"],
        workload_digest=f"{row['network']} of {folder.resolve()}",  # nothing but its space says which file it is
        core=row["design"],
        objective="",
        model="",
        options=(),
        energy_pj=row[ENERGY_PJ],
        latency_cycles=row[LATENCY_CYCLES],
        area_mm2=None if area != area else area,
        clock_frequency_mhz=_clock_mhz(row),
        static_power_w=_static_power_w(row),
        knows_free_work=False,
        assumes=_assumed(folder),
        assumes_file=str(folder / f"{FRONT_STEM}.csv"),
        cost_parts=parts_of_row(row),
    )


def _clock_mhz(row: Mapping[Any, Any]) -> float | None:
    """Clock frequency of a design in MHz, to 12 digits, from its latency in cycles and in seconds.

    None if it is not known.
    """
    seconds = row.get(LATENCY_S)
    return float(f"{row[LATENCY_CYCLES] / seconds / 1e6:.12g}") if seconds and seconds == seconds else None


def _static_power_w(row: Mapping[Any, Any]) -> float | None:
    """Static power of a design in watts: its static energy divided by its latency. None if it is not known."""
    seconds = row.get(LATENCY_S)
    found = [row[column] for term in power_terms() if (column := f"energy_{term}_pj") in row]
    energy_pj = sum(value for value in found if value == value)
    return energy_pj * 1e-12 / seconds if found and seconds and seconds == seconds else None


def _assumed(folder: Path) -> str:
    """Assumptions behind the numbers in the table of the Pareto front, which is a file in `folder`. Every row of this
    table has the same assumptions. The assumption on sums over all networks is left out, because a ledger has one
    network. The result is '' if there is no table, or if the table has no rows.
    """
    path = folder / f"{FRONT_STEM}.parquet"
    found = read_parquet(path, [ASSUMES])[ASSUMES].tolist() if path.is_file() else []
    return str(found[0]).replace(SUMMED, "").strip().rstrip(".") if found else ""


def _entries(row: Mapping[Any, Any]) -> Iterator[tuple[LedgerPlace, float]]:
    """Pairs (place in the ledger, value): energy in pJ by term, energy of accesses in pJ by memory, and latency in
    cycles by part.

    Columns with the value NaN are left out, because they do not apply to the design.
    """
    names = [str(name) for name in row]
    known = {name: float(row[name]) for name in names if isinstance(row[name], float | int) and row[name] == row[name]}
    for column in energy_parts(names):
        if column in known:
            term = column.removeprefix("energy_").removesuffix("_pj")
            memory = term.removeprefix(f"{ACCESSES}_") if term.startswith(f"{ACCESSES}_") else ""
            yield LedgerPlace(ENERGY, "", ACCESSES if memory else term, memory), known[column]
    for column in latency_parts(names):
        if column in known:
            yield LedgerPlace(LATENCY, "", column.removeprefix("latency_").removesuffix("_cycles")), known[column]
