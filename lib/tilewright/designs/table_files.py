"""Files with the tables of a space: designs and fronts, as CSV and Parquet."""

from pathlib import Path

import pandas

from tilewright.base.unused import with_unused
from tilewright.designs.answer import Answer
from tilewright.designs.columns import (
    ASSUMES,
    COMPARED_BY,
    DOMINATED_BY,
    LARGEST_ENERGY,
    LARGEST_LATENCY,
    ODDS,
    OF_ALL,
    ON_FRONT,
)
from tilewright.designs.front import Front
from tilewright.designs.front_odds import FRONT_PROBABILITY
from tilewright.designs.results import ALL_NETWORKS
from tilewright.results.paper_tables import write_table
from tilewright.results.text_tables import write_csv, write_parquet

SPACE_STEM, FRONT_STEM = "space", "front"


_TEXTS = (DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY)


def space_table(answer: Answer) -> pandas.DataFrame:
    """Table of results with further columns.

    For each row, they say whether the design is on the front of the network, name the first design on the front that
    dominates it, and name its largest terms of energy and latency. If there are several networks, the same columns
    describe the front of all networks. Notices on unused input are in the `attrs` of the table, which Parquet stores.
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
    """Write the tables `space` and `front` as `.csv` and `.parquet` into a folder. Returns the paths."""
    return (*_written(space_table(answer), folder / SPACE_STEM), *write_front_tables(answer, folder))


def write_front_tables(answer: Answer, folder: Path) -> tuple[Path, ...]:
    """Write `front.csv` and `front.parquet` into a folder. Returns the paths.

    For a paper, the values of the axes and the compared measures are also written as LaTeX and Markdown.
    """
    table, stem = front_table(answer), folder / FRONT_STEM
    columns = ("network", "design", *answer.exploration.axis_names, *answer.exploration.measures)
    return (*write_table(table, stem.with_suffix(".csv"), columns), _as_parquet(table, stem))


def _written(table: pandas.DataFrame, stem: Path) -> tuple[Path, ...]:
    csv = stem.with_suffix(".csv")
    write_csv(table, csv)
    return csv, _as_parquet(table, stem)


def _as_parquet(table: pandas.DataFrame, stem: Path) -> Path:
    path = stem.with_suffix(".parquet")
    write_parquet(table, path)
    return path


def _with_objectives(front: Front) -> pandas.DataFrame:
    return front.members.assign(**{COMPARED_BY: " ".join(front.objectives)})
