"""Complete fronts of a space, computed in a folder: first the costs of all designs, then the fronts.

The costs are computed in parts, one file per part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas

from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.designs.certificate import (
    ON_FRONT,
    Certificate,
    DesignPoints,
    certificate_of,
    dominator_column,
    front_count,
    write_certificate,
)
from tilewright.designs.clocks import latency_s
from tilewright.designs.exploration import Exploration
from tilewright.designs.explore import BLOCK_DESIGNS, SpaceSource, exploration_of, working
from tilewright.designs.family_costs import FamilyCosts, joined, make_costs
from tilewright.designs.parts import COSTS_SCHEMA, MOST_TOGETHER, PartDigests, SpacePart, check_space, parts_of
from tilewright.designs.results import OK
from tilewright.designs.shard import Row, ShardContent, content_of, make_rows
from tilewright.designs.space import Space
from tilewright.designs.stamped_tables import digest_in, read_stamped, write_stamped
from tilewright.search.progress import Advance

COSTS = "costs"
"""Name of the folder with the files of the parts, in the folder of a front."""


@dataclass(frozen=True, eq=False)
class CompleteFront:
    """Fronts of a space, with the certificate that they are complete."""

    exploration: Exploration
    """Exploration with only the designs on a front."""
    certificate: Certificate


def missing_parts(space: Space, digests: PartDigests, folder: Path, only: int | None = None) -> list[SpacePart]:
    """Parts of the space whose file in `folder` is missing or out of date. If `only` is not None, only the part with
    this number is checked.
    """
    parts = [part for part in parts_of(space) if only in (None, part.number)]
    return [part for part in parts if digest_in(folder / COSTS / part.file_name, COSTS_SCHEMA) != digests.of(part)]


def make_parts(
    source: SpaceSource, space: Space, folder: Path, jobs: int, advance: Advance, only: int | None = None
) -> None:
    """Compute the costs of parts of the space, and write one file for each part. Parts whose file in `folder` is up to
    date are left out. If `only` is not None, consider only the part with this number.

    Each file is written as soon as its part is done. If `only` is None, files of parts that no longer belong to the
    space are deleted. Each call of `advance` adds to the number of families that are done. Raises InputError if the
    space does not allow costing by families.
    """
    check_space(space)
    digests = PartDigests(space)
    missing = missing_parts(space, digests, folder, only)
    make_folder(folder / COSTS)
    if only is None:
        _remove_others(space, folder)
        advance(sum(part.end - part.first for part in parts_of(space) if part not in missing))
    for part, costs in _found(source, space, missing, jobs, advance):
        said = {"schema": COSTS_SCHEMA, "digest": digests.of(part), "excluded": dict(costs.excluded)}
        path = folder / COSTS / part.file_name
        write_stamped(path, costs.table, {**said, "provenance": digests.made_of})


def front_of_folder(
    source: SpaceSource, space: Space, folder: Path, file: Path, jobs: int, advance: Advance
) -> CompleteFront:
    """Fronts from the parts in a folder, with their certificate, which is written to `file`.

    The designs on a front are costed again, each individually. Each call of `advance` reports the number of further
    designs on a front that are done. Raises InputError if parts are missing or out of date, or if the area is an
    objective but not known for some designs.
    """
    check_space(space)
    digests = PartDigests(space)
    missing = missing_parts(space, digests, folder)
    if missing:
        names = ", ".join(str(part.number) for part in missing[:10]) + (", ..." if len(missing) > 10 else "")
        message = f"missing or out of date: {count_of(len(missing), 'part')} of the space, no. {names}"
        raise InputError([Problem(message, str(folder / COSTS))])
    parts = []
    for part in parts_of(space):
        table, said = read_stamped(folder / COSTS / part.file_name, COSTS_SCHEMA)
        parts.append(FamilyCosts(table, said["excluded"]))
    costs = joined(parts, space)
    points = DesignPoints.of(space, costs.table)
    _check_areas(points)
    made_of: dict[str, object] = {
        "space": digests.said,
        "objectives": list(space.objectives),
        "provenance": digests.made_of,
    }
    made_of |= {"networks": [network.name for network in space.networks], "designs": len(space)}
    certificate = certificate_of(points, costs, made_of)
    write_certificate(file, certificate)
    members = points.index[_is_member(space, certificate)].tolist()
    blocks = [members[first : first + BLOCK_DESIGNS] for first in range(0, len(members), BLOCK_DESIGNS)]
    found = []
    with working(source, space, make_rows, len(blocks), jobs) as work:
        for rows in work(blocks):
            advance(len(rows))
            found += rows
    _check_rows(points, [row for rows, _ in found for row in rows])
    exploration = _exploration(space, points, content_of(space, found), certificate)
    return CompleteFront(replace(exploration, others=_outcomes(points, costs)), certificate)


def _outcomes(points: DesignPoints, costs: FamilyCosts) -> pandas.DataFrame:
    """Table with the outcome of each design on each network."""
    parts = [
        pandas.DataFrame(
            {
                "index": points.index,
                "network": network.name,
                "status": costs.table[f"status_{number}"].to_numpy(dtype=object),
                "reason": costs.table[f"reason_{number}"].fillna("").to_numpy(dtype=object),
                "unmet": points.unmet[:, number],
            }
        )
        for number, network in enumerate(points.space.networks)
    ]
    return pandas.concat(parts, ignore_index=True).sort_values("index", kind="stable", ignore_index=True)


def _is_member(space: Space, certificate: Certificate) -> np.ndarray:
    """Boolean array with one element per row of the certificate's table: True if the design of the row is on a
    front.
    """
    fronts = [certificate.table[dominator_column(front)].to_numpy() == ON_FRONT for front in range(front_count(space))]
    result: np.ndarray = np.logical_or.reduce(fronts)
    return result


def _found(
    source: SpaceSource, space: Space, parts: Sequence[SpacePart], jobs: int, advance: Advance
) -> Iterator[tuple[SpacePart, FamilyCosts]]:
    """Pairs (part, costs of the designs in this part), in the order of `parts`."""
    count = sum(part.end - part.first for part in parts)
    size = min(MOST_TOGETHER, max(1, -(-count // (2 * jobs)))) if jobs > 1 else MOST_TOGETHER
    blocks = {part.number: _blocks(part, size) for part in parts}
    with working(source, space, make_costs, sum(map(len, blocks.values())), jobs) as work:
        results = work([block for part in parts for block in blocks[part.number]])
        for part in parts:
            found = []
            for block in blocks[part.number]:
                found.append(next(results))
                advance(len(block))
            yield part, joined(found, space)


def _blocks(part: SpacePart, size: int) -> list[range]:
    return [range(first, min(first + size, part.end)) for first in range(part.first, part.end, size)]


def _remove_others(space: Space, folder: Path) -> None:
    names = {part.file_name for part in parts_of(space)}
    for path in (folder / COSTS).glob("*.parquet"):
        if path.name not in names:
            path.unlink()


def _check_areas(points: DesignPoints) -> None:
    """Raise InputError if the area is an objective but not known for some designs."""
    unknown = int((np.isnan(points.area_mm2) & points.is_ok.any(axis=1)).sum())
    if unknown and AREA_MM2 in points.objectives:
        message = (
            f"the area of {count_of(unknown, 'design')} is not known, because the area of a component is not given: "
            "designs cannot be compared by area"
        )
        raise InputError([Problem(message, points.space.file, path="objectives", value=AREA_MM2)])


def _exploration(space: Space, points: DesignPoints, content: ShardContent, certificate: Certificate) -> Exploration:
    """Exploration of the designs on a front, with all results of each design on each network."""
    told = (
        f"The fronts are complete: the costs of all {len(points.index):,} designs were computed. The certificate has"
        " the costs of each design, and, for each design off a front, a design that dominates it."
    )
    exploration = exploration_of(space, content, points.clocks)
    return replace(
        exploration,
        assumptions=(told, *exploration.assumptions),
        excluded=dict(certificate.excluded),
        settled=len(points.index) - content.table["index"].nunique(),
    )


def _check_rows(points: DesignPoints, rows: Sequence[Row]) -> None:
    """Check that the individual costs of designs equal the costs in their families. `rows` has the individual costs.
    Raises AssertionError if costs differ.
    """
    networks = [network.name for network in points.space.networks]
    for row in rows:
        place, network = points.row_of[row["index"]], networks.index(row["network"])
        if row["status"] == OK:
            known = points.energy_pj[place, network], points.latency_cycles[place, network]
            assert known == (row[ENERGY_PJ], row[LATENCY_CYCLES]), (
                f"{row['design']}: the costs computed for this design alone differ from those computed for its family"
            )
            seconds = latency_s(row[LATENCY_CYCLES], points.clock_period_ns[place])
            assert seconds == row.get(LATENCY_S, seconds) or seconds != seconds, f"{row['design']} has another clock"
