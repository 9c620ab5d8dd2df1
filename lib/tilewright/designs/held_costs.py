"""Texts on the costs of designs: costs that have a range, and costs that stay the same in all samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas

from tilewright.base.measures import AREA_MM2, ENERGY_PJ
from tilewright.cost.ledger import ACCESSES, term_words
from tilewright.designs.columns import USES, energy_column
from tilewright.designs.front_odds import parts_of_row
from tilewright.designs.results import energy_parts
from tilewright.hardware.attributes import power_terms
from tilewright.results.held_costs import REST, REST_OF_SYSTEM, held_text, laws_text
from tilewright.results.text_tables import share_text


def varied_text(row: Mapping[Any, Any], measure: str) -> str:
    """Text that lists the costs that have a range and influence a measure of one design. It gives their share of the
    area if `measure` is the area, and their share of the energy for all other measures.
    """
    is_area = measure == AREA_MM2
    parts = parts_of_row(row)
    varied = sum(part.area_mm2 if is_area else part.energy_pj for part in parts)
    whole = float(row[AREA_MM2 if is_area else ENERGY_PJ])
    return f"{laws_text(parts)}: {share_text(varied, whole)} of the {'area' if is_area else 'energy'}"


def constant_text(row: Mapping[Any, Any]) -> str:
    """Text that lists the parts of one design's energy that have no range, each with its share of the energy; '' if
    there are no such parts.
    """
    ranged = sum(part.energy_pj for part in parts_of_row(row))
    is_system = USES[0] in row
    named = {words: float(row[column]) for column, words in _named(row, is_system).items()}
    return held_text(float(row[ENERGY_PJ]), ranged, named, REST_OF_SYSTEM if is_system else REST)


def constant_shares(rows: pandas.DataFrame) -> tuple[float, float]:
    """Least and largest share of the energy that has no range, over the designs in `rows`."""
    energies = rows[ENERGY_PJ].to_numpy(dtype=np.float64)
    ranged = np.array([sum(part.energy_pj for part in parts_of_row(row)) for row in rows.to_dict("records")])
    shares = 1 - np.divide(ranged, energies, out=np.ones_like(energies), where=energies > 0)
    return max(float(shares.min()), 0.0), float(shares.max())


def _named(row: Mapping[Any, Any], is_system: bool) -> dict[str, str]:
    """Columns of energies that never have a range, with words for each column. For several cores, these are the terms
    of static power, because the other terms include memories with a range.
    """
    if is_system:
        columns = {energy_column(term): term_words(term) for term in power_terms()}
        return {column: words for column, words in columns.items() if column in row}
    memory = energy_column(ACCESSES).removesuffix("_pj")
    return {column: words for column, words in energy_parts([*row]).items() if not column.startswith(memory)}
