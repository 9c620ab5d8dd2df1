"""The complete fronts of a space, in a folder: bounds part by part, then values where bounds do not decide."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas

from tilewright.artifacts.files import make_folder
from tilewright.errors import InputError, Problem
from tilewright.exploration.bounds import Bounds, joined, make_bounds, make_values
from tilewright.exploration.bounds_plan import SCHEMA, PartDigests, check_space, parts_of
from tilewright.exploration.certificate import Certificate, certificate_of, write_certificate
from tilewright.exploration.complete_front import ON_FRONT, Points, complete, front_count
from tilewright.exploration.explore import exploration_of
from tilewright.exploration.parts import Part
from tilewright.exploration.results import OK, Exploration
from tilewright.exploration.shard import Row, ShardMaker, content_of
from tilewright.exploration.space import Space
from tilewright.exploration.stamped_tables import digest_in, read_stamped, write_stamped
from tilewright.exploration.workers import SpaceSource, working
from tilewright.search.progress import Advance

BOUNDS, VALUES = "bounds", "values.parquet"
"""Folder of the parts, and the file of the values that are known so far, in that of a front."""
VALUES_SCHEMA = "tilewright/space-values"
BLOCK_FAMILIES = 4
"""Families that a process looks at between two reports."""
Group = Sequence[int]
Costs = tuple[int, list[float], list[float]]


@dataclass(frozen=True, eq=False)
class CompleteFront:
    """The fronts of a space, and how they were found."""

    exploration: Exploration
    """Of the designs on a front alone."""
    certificate: Certificate
    valued: int
    """Designs whose costs were computed."""
    bounded: int
    """Designs that bounds settled."""
    rounds: int


def missing_parts(space: Space, digests: PartDigests, folder: Path, only: int | None = None) -> list[Part]:
    """The parts that are not there or out of date, of all or of `only` one."""
    parts = [part for part in parts_of(space) if only in (None, part.number)]
    return [part for part in parts if digest_in(folder / BOUNDS / part.file_name, SCHEMA) != digests.of(part)]


def make_parts(
    source: SpaceSource, space: Space, folder: Path, jobs: int, advance: Advance, only: int | None = None
) -> None:
    """Make the parts of a folder that are missing or out of date, or `only` one; each is kept as soon as it is done.

    `advance` is told families.
    """
    check_space(space)
    digests = PartDigests(space)
    missing = missing_parts(space, digests, folder, only)
    make_folder(folder / BOUNDS)
    if only is None:
        _remove_others(space, folder)
        advance(sum(part.end - part.first for part in parts_of(space) if part not in missing))
    for part, bounds in _found(source, space, missing, jobs, advance):
        said = {"schema": SCHEMA, "digest": digests.of(part), "excluded": dict(bounds.excluded)}
        path = folder / BOUNDS / part.file_name
        write_stamped(path, bounds.table, {**said, "provenance": digests.made_of})


def front_of_folder(
    source: SpaceSource, space: Space, folder: Path, file: Path, jobs: int, advance: Advance
) -> CompleteFront:
    """The fronts from the parts of a folder, with their certificate, which is written into `file`.

    `advance` is told designs that are valued. Raises InputError where parts are missing.
    """
    check_space(space)
    digests = PartDigests(space)
    missing = missing_parts(space, digests, folder)
    if missing:
        names = ", ".join(str(part.number) for part in missing[:10]) + (", ..." if len(missing) > 10 else "")
        raise InputError([Problem(f"{len(missing)} parts are missing or out of date: {names}", str(folder / BOUNDS))])
    parts = []
    for part in parts_of(space):
        table, said = read_stamped(folder / BOUNDS / part.file_name, SCHEMA)
        parts.append(Bounds(table, said["excluded"]))
    bounds = joined(parts, len(space.networks))
    points = Points.of(space, bounds.table)
    _check_areas(points)
    kept = _Kept(folder / VALUES, digests, points)
    with working(source, space, make_values, len(points.index), jobs) as work:

        def value(groups: Sequence[Group]) -> Iterator[list[Costs]]:
            for valued in work(groups):
                advance(len(valued))
                kept.add(valued)
                yield valued
            kept.write()

        kept.restore()
        rounds = complete(points, value)
    said = {"space": digests.said, "objectives": list(space.objectives), "provenance": digests.made_of}
    said |= {"networks": [network.name for network in space.networks], "designs": len(space)}
    certificate = certificate_of(points, bounds.table, bounds.excluded, said)
    write_certificate(file, certificate)
    return _complete_front(space, points, certificate, rounds)


class _Kept:
    """The values that are known, in a file, so that an interruption loses no round."""

    def __init__(self, path: Path, digests: PartDigests, points: Points) -> None:
        self.path, self.digest, self.points = path, digests.said, points
        self._found: list[Costs] = []

    def restore(self) -> None:
        """Take over what an earlier run has found for the same space."""
        if digest_in(self.path, VALUES_SCHEMA) != self.digest:
            return
        table, _ = read_stamped(self.path, VALUES_SCHEMA)
        numbers = table.to_numpy(np.float64)
        count = (numbers.shape[1] - 1) // 2
        self._found = [(int(row[0]), row[1 : 1 + count].tolist(), row[1 + count :].tolist()) for row in numbers]
        if self._found:
            self.points.set_values(self._found)

    def add(self, valued: list[Costs]) -> None:
        """Remember costs."""
        self._found += valued

    def write(self) -> None:
        """Keep what is known."""
        count = len(self.points.space.networks)
        columns = ["index", *(f"energy_{n}_pj" for n in range(count)), *(f"latency_{n}_cycles" for n in range(count))]
        rows = [(index, *energies, *latencies) for index, energies, latencies in self._found]
        write_stamped(
            self.path, pandas.DataFrame(rows, columns=columns), {"schema": VALUES_SCHEMA, "digest": self.digest}
        )


def _found(
    source: SpaceSource, space: Space, parts: Sequence[Part], jobs: int, advance: Advance
) -> Iterator[tuple[Part, Bounds]]:
    """The bounds of parts, in their order."""
    blocks = [
        range(first, min(first + BLOCK_FAMILIES, part.end))
        for part in parts
        for first in range(part.first, part.end, BLOCK_FAMILIES)
    ]
    with working(source, space, make_bounds, len(blocks), jobs) as work:
        results = work(blocks)
        for part in parts:
            found = []
            for first in range(part.first, part.end, BLOCK_FAMILIES):
                found.append(next(results))
                advance(min(first + BLOCK_FAMILIES, part.end) - first)
            yield part, joined(found, len(space.networks))


def _remove_others(space: Space, folder: Path) -> None:
    names = {part.file_name for part in parts_of(space)}
    for path in (folder / BOUNDS).glob("*.parquet"):
        if path.name not in names:
            path.unlink()


def _check_areas(points: Points) -> None:
    """Raises InputError where designs are to be compared by an area that is not given."""
    unknown = int((np.isnan(points.area_mm2) & points.is_ok.any(axis=1)).sum())
    if unknown and "area_mm2" in points.objectives:
        message = (
            f"{unknown:,} designs have no area, since a part has none, and others do: they cannot be compared by it"
        )
        raise InputError([Problem(message, points.space.file, path="objectives", value="area_mm2")])


def _complete_front(space: Space, points: Points, certificate: Certificate, rounds: int) -> CompleteFront:
    """The designs on a front with all that is known of a design."""
    fronts = [certificate.table[f"dominated_by_{front}"].to_numpy() == ON_FRONT for front in range(front_count(space))]
    members = points.index[np.logical_or.reduce(fronts)].tolist()
    found = list(ShardMaker(space).rows(members))
    _check_rows(points, [row for rows, _ in found for row in rows])
    valued, bounded = int(points.is_value.sum()), int((~points.is_value).sum())
    told = (
        f"The fronts are complete: of {len(points.index):,} designs {valued:,} were costed, and {bounded:,}"
        f" cannot be on a front whatever their mapping. The certificate has the costs or bounds of each, and who"
        " dominates it."
    )
    exploration = exploration_of(space, content_of(space, found))
    exploration = replace(
        exploration,
        assumptions=(told, *exploration.assumptions),
        excluded=dict(certificate.excluded),
        settled=len(points.index) - len(members),
    )
    return CompleteFront(exploration, certificate, valued, bounded, rounds)


def _check_rows(points: Points, rows: Sequence[Row]) -> None:
    """What a design costs alone is what it costs among its family."""
    networks = [network.name for network in points.space.networks]
    for row in rows:
        place, network = points.row_of[row["index"]], networks.index(row["network"])
        if row["status"] == OK:
            known = points.energy_pj[place, network], points.latency_cycles[place, network]
            assert known == (row["energy_pj"], row["latency_cycles"]), f"{row['design']} alone and in its family differ"
