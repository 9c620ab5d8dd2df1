"""Files with the tables of a space: designs and fronts, as CSV and Parquet."""

from collections.abc import Mapping
from pathlib import Path

import pandas

from tilewright.base.errors import count_of
from tilewright.base.unused import with_unused
from tilewright.designs.answer import Answer
from tilewright.designs.columns import (
    ACCESS_CYCLES,
    ASSUMES,
    COMPARED_BY,
    DOMINATED_BY,
    LARGEST_ENERGY,
    LARGEST_LATENCY,
    ODDS,
    OF_ALL,
    ON_FRONT,
)
from tilewright.designs.effects import marked_designs
from tilewright.designs.front import STEPS, Front, spread
from tilewright.designs.front_odds import FRONT_PROBABILITY
from tilewright.designs.results import ALL_NETWORKS, OK, Measure, file_word
from tilewright.designs.tables import MOST_ROWS
from tilewright.results.paper_tables import CommonUnits, common_units, unit_end, write_in_paper, write_table
from tilewright.results.text_tables import write_parquet

SPACE_STEM, FRONT_STEM = "space", "front"


_TEXTS = (DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY)


def space_table(answer: Answer) -> pandas.DataFrame:
    """Table of results with further columns.

    Two columns describe the front of the row's network: whether the design is on this front, and the first design on
    the front that dominates the design. Two columns have the largest terms of energy and latency. If costs have ranges,
    the table also has the columns ODDS. If there are several networks, columns with the suffix OF_ALL describe the
    front of all networks in the same way. Notices on unused input are in the `attrs` of the table, which Parquet
    stores.
    """
    table = answer.exploration.table
    of_networks = pandas.concat([front.rows for front in answer.fronts if front.network != ALL_NETWORKS])
    table = table.assign(
        **{
            ON_FRONT: of_networks[ON_FRONT].reindex(table.index, fill_value=False),
            **{key: of_networks[key].reindex(table.index, fill_value="") for key in _TEXTS},
            **{key: of_networks[key].reindex(table.index) for key in ODDS if key in of_networks},
        }
    )
    table.attrs = with_unused(table.attrs, answer.exploration.notices)
    if answer.overall.network != ALL_NETWORKS:
        return table
    by_design = answer.overall.rows.set_index("index")
    return table.assign(
        **{
            ON_FRONT + OF_ALL: table["index"].map(by_design[ON_FRONT]).eq(True),
            DOMINATED_BY + OF_ALL: table["index"].map(by_design[DOMINATED_BY]).fillna("").astype(object),
            **{key + OF_ALL: table["index"].map(by_design[key]) for key in (FRONT_PROBABILITY,) if key in by_design},
        }
    )


def front_table(answer: Answer) -> pandas.DataFrame:
    """Table of the designs on fronts: the front of each network, then that of all networks.

    Each front is sorted by the first objective. The column `assumes` has the assumptions of the comparison.
    """
    columns = [key for key in answer.overall.rows.columns if key not in ("status", "reason", "unmet", ON_FRONT)]
    leading = ["network", COMPARED_BY, "index", "design"]
    tables = [_with_objectives(front) for front in answer.fronts]
    columns = [*leading, *(key for key in columns if key not in (*leading, DOMINATED_BY))]
    assumed = " ".join(answer.assumptions)
    table = pandas.concat(tables, ignore_index=True)[columns].assign(**{ASSUMES: assumed})
    table.attrs = with_unused(table.attrs, answer.exploration.notices)
    return table


def write_tables(answer: Answer, folder: Path) -> tuple[Path, ...]:
    """Write the tables `space` and `front` as `.csv` and `.parquet` into a folder. Returns the paths.

    For a paper, both tables are also written as LaTeX and Markdown. In these two formats, the table `space` has only
    designs with a result, and a note below it counts the other designs.
    """
    table, stem = space_table(answer), folder / SPACE_STEM
    done = table[table["status"] == OK]
    order = f"{count_of(len(done), 'row')} with a result, in the order of the space"
    if left := len(table) - len(done):
        order += f"; {left:,} without a result {'is' if left == 1 else 'are'} left out"
    columns = (*_columns_in_paper(answer), ON_FRONT)
    notes = (f"{order}.", *answer.warnings, *answer.assumptions)
    units = units_in_paper(answer)
    below = notes[: 1 if left else 0]
    written = write_table(table, stem.with_suffix(".csv"), columns, done, notes, usual=units, below=below)
    return (*written, _as_parquet(table, stem), *write_front_tables(answer, folder))


def write_front_tables(answer: Answer, folder: Path) -> tuple[Path, ...]:
    """Write `front.csv` and `front.parquet` into a folder. Returns the paths.

    For a paper, a table is also written as LaTeX and Markdown. It has the values of the axes, the compared measures,
    and the rows that the terminal shows: at most MOST_ROWS of each front. Notes below the table give the order of the
    rows, the warnings and the assumptions. If there are several networks, the front of each network and the front of
    all networks also get separate tables (`front-<network>`).
    """
    table, stem = front_table(answer), folder / FRONT_STEM
    columns, told = _columns_in_paper(answer), _front_notes(answer)
    notes = (*told.values(), *answer.warnings, *answer.assumptions)
    named = {front.network: [*marked_designs(front)] for front in answer.fronts}
    parts = {network: spread(table[table["network"] == network], MOST_ROWS, named[network]) for network in told}
    shown = pandas.concat(parts.values()) if parts else table
    units = units_in_paper(answer)
    left_out = {front.network: _left_out(front) for front in answer.fronts}
    below = [words for network in told for words in left_out[network]]
    written = write_table(table, stem.with_suffix(".csv"), columns, shown, notes, usual=units, below=below)
    for network, note in told.items() if len(answer.fronts) > 1 else ():
        path, own = folder / f"{FRONT_STEM}-{file_word(network)}.csv", (note, *answer.warnings, *answer.assumptions)
        written += write_in_paper(parts[network], path, columns[1:], own, usual=units, below=left_out[network])
    return (*written, _as_parquet(table, stem))


def units_in_paper(answer: Answer) -> CommonUnits:
    """Units of all tables of a space for a paper: the tables of designs, of fronts and of decisions. The units are
    those of the terminal if the largest number of a measure is readable in them.
    """
    columns = tuple(answer.exploration.measures)
    table = answer.exploration.table
    return common_units(
        [(table[table["status"] == OK], columns), *((front.members, columns) for front in answer.fronts)],
        _units_of(answer.exploration.measures),
    )


def _units_of(measures: Mapping[str, Measure]) -> dict[str, tuple[float, str]]:
    """Units of measures in the terminal: ending of the column -> (divisor, unit)."""
    return {end: (measure.scale, measure.unit) for key, measure in measures.items() if (end := unit_end(key))}


def _columns_in_paper(answer: Answer) -> tuple[str, ...]:
    """Columns of the tables for a paper: names of network and design, values of the axes, and compared measures. If a
    compared design has a memory access longer than a cycle, a further column has the longest access in cycles.
    """
    access = (ACCESS_CYCLES,) if answer.access_notes else ()
    return ("network", "design", *answer.exploration.axis_names, *answer.exploration.measures, *access)


def _front_notes(answer: Answer) -> dict[str, str]:
    """Sentences on the designs of each front and their order, by network. Fronts without designs are left out."""
    return {
        front.network: f"{front.network}: {count_of(len(front.members), 'design')} on the front in"
        f" {', '.join(front.measures[key].words for key in front.objectives)}{_picked(len(front.members))};"
        f" the least {front.measures[front.objectives[0]].words} comes first."
        for front in answer.fronts
        if len(front.members) and front.objectives
    }


def _picked(count: int) -> str:
    """Words on the rows of a front in a table for a paper: '' if all `count` designs have a row."""
    return f", of which {MOST_ROWS} have a row: {STEPS}" if count > MOST_ROWS else ""


def _left_out(front: Front) -> list[str]:
    """Sentence on a front whose table has only some of its designs; [] if the table has all designs of the front."""
    count = len(front.members)
    return [f"{front.network}: {MOST_ROWS} of {count} designs on the front."] if count > MOST_ROWS else []


def _as_parquet(table: pandas.DataFrame, stem: Path) -> Path:
    path = stem.with_suffix(".parquet")
    write_parquet(table, path)
    return path


def _with_objectives(front: Front) -> pandas.DataFrame:
    return front.members.assign(**{COMPARED_BY: " ".join(front.objectives)})
