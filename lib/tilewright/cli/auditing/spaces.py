"""Audit of a design space: a sample of designs from the shards of `tilewright explore` or the parts of `tilewright
front`.

The costs of each sampled design are recomputed, one design at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import YAML_SUFFIXES
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES
from tilewright.cli.auditing.inputs import GivenDescriptions, note_of_code
from tilewright.cli.auditing.items import DESIGN, AuditDifference, AuditItem, Findings, LeftOut, Made, differences
from tilewright.cli.described_run import WRITTEN
from tilewright.cli.space_path import space_path_in
from tilewright.designs.design_cost import Sharing
from tilewright.designs.explore import SHARDS
from tilewright.designs.family_costs import energy_column, latency_column
from tilewright.designs.front_search import COSTS
from tilewright.designs.parts import (
    COSTS_SCHEMA,
    SHARD_SCHEMA,
    STEP,
    STEP_OF,
    PartDigests,
    ShardDigests,
    made_of,
    parts_of,
    shards_of,
)
from tilewright.designs.results import OK
from tilewright.designs.shard import Row, ShardMaker, content_of
from tilewright.designs.space import Space, SystemOptions
from tilewright.designs.space_reader import read_space
from tilewright.designs.stamped_tables import read_stamped

if TYPE_CHECKING:
    import pandas

_BY_TIME = "its search has a time budget, and the table of designs does not say whether the budget ended the search"


class _DesignFolder(Findings, ABC):
    """Folder with files of designs: shards of `tilewright explore`, or parts of `tilewright front`. Construction raises
    InputError if the designs cannot be recomputed.
    """

    place: str
    """Name of the subfolder with the files of designs: `shards` for `tilewright explore`, `costs` for `tilewright
    front`.
    """
    schema: str

    def __init__(self, folder: Path, given: GivenDescriptions) -> None:
        super().__init__()
        self.folder = folder
        self.files = sorted((folder / self.place).glob("*.parquet"))
        self.space = self._found(given.space)
        step = self._step()
        for file in self.files:
            table, said = read_stamped(file, self.schema)
            self._check(file, said)
            self._take(file, table)
        self.notes += note_of_code(self.folder, said["provenance"], step) if self.files else []
        self._maker = ShardMaker(self.space, Sharing())

    @abstractmethod
    def _step(self) -> str:
        """Name of the pipeline step that writes the files of designs."""

    @abstractmethod
    def _digest(self, space: Space, said: Mapping[str, Any], number: int) -> str:
        """Digest that file number `number` must contain if its input is the space `space`. `said` is the content of the
        file without its table, such as the provenance.
        """

    @abstractmethod
    def _compared(self, stored: "pandas.DataFrame", rows: Sequence[Row]) -> Iterator[AuditDifference]:
        """Differences between the stored rows and the recomputed rows of one design."""

    def again(self, items: Sequence[AuditItem]) -> Iterator[Made]:
        """Comparisons of designs with the stored rows. Each design is recomputed alone."""
        for file in dict.fromkeys(item.place[0] for item in items):
            table, _ = read_stamped(file, self.schema)
            for item in (one for one in items if one.place[0] == file):
                index = item.place[1]
                ((rows, _),) = self._maker.rows([index])
                yield Made(item, tuple(self._compared(table[table["index"] == index], rows)))

    def _take(self, file: Path, table: "pandas.DataFrame") -> None:
        """Add the designs of a file to the results that can be recomputed. If the searches have a time budget, the
        designs are left out instead, because the file does not say whether the budget ended a search.
        """
        options = self.space.options
        bounds = options.of_bounds
        is_by_time = (bounds is not None and bounds.limits.time_budget_s is not None) or (
            isinstance(options, SystemOptions) and options.ga_time_budget_s is not None
        )
        for index in sorted({*table["index"].tolist(), *self._wanted(int(file.stem))}):
            item = AuditItem(self.folder, DESIGN, self.space.design_name(index), (file, index))
            if is_by_time:
                self.left_out.append(LeftOut(item, _BY_TIME, is_sure=False))
            else:
                self.items.append(item)

    def _wanted(self, number: int) -> list[int]:
        """Indexes of the designs for which the file with the number `number` must have rows; [] if these designs are
        known only after their costs are computed.
        """
        return []

    def _check(self, file: Path, said: Mapping[str, Any]) -> None:
        """Raise InputError if a file was made from another space, or if its networks have changed since it was made."""
        stated, now = said["provenance"], made_of(self.space, self._step())
        changed = [
            f"{key} of the space has changed since the file was made"
            for key in {**stated["inputs"], **now["inputs"]}
            if stated["inputs"].get(key) != now["inputs"].get(key)
        ]
        if changed:
            raise InputError([Problem(message) for message in changed])
        if not self._is_of(self.space, file, said):
            raise InputError(
                [
                    Problem(
                        f"{file.name} was made from another space than {self.space.file}, or the file of the space has"
                        " changed since"
                    )
                ]
            )

    def _is_of(self, space: Space, file: Path, said: Mapping[str, Any]) -> bool:
        try:
            return bool(self._digest(space, said, int(file.stem)) == said["digest"])
        except (ValueError, IndexError):
            return False

    def _found(self, given: Path | None) -> Space:
        """Space in the file `given`. If `given` is None, candidate files are read until one has the space from which
        the first file of designs was made. Raises InputError if no candidate has this space.
        """
        if given is not None:
            return read_space(given)
        _, said = read_stamped(self.files[0], self.schema)
        for path in self._candidates():
            try:
                space = read_space(path)
            except TilewrightError:
                continue
            if self._is_of(space, self.files[0], said):
                return space
        message = (
            f"the file of the space was not found: no unchanged file is in {WRITTEN}, beside the folder or in the"
            " working folder; name it with the option space"
        )
        raise InputError([Problem(message)])

    def _candidates(self) -> list[Path]:
        """Files that could define the space: first the file that the folder names, then files with the same name as the
        folder, then all other files.
        """
        told = space_path_in(self.folder)
        named = [] if told is None else [told]
        places = (WRITTEN / "space").rglob("*"), self.folder.parent.glob("*"), Path().glob("*")
        written = sorted(path for found in places for path in found if path.suffix in YAML_SUFFIXES and path.is_file())
        return [*named, *sorted(dict.fromkeys(written), key=lambda path: path.stem != self.folder.name)]


class ExploredFolder(_DesignFolder):
    """Folder that `tilewright explore` wrote. All columns of its shards are compared."""

    place, schema = SHARDS, SHARD_SCHEMA

    def _step(self) -> str:
        return STEP_OF[self.space.is_of_systems]

    def _digest(self, space: Space, said: Mapping[str, Any], number: int) -> str:
        return ShardDigests(space, said["provenance"]).of(shards_of(space)[number])

    def _wanted(self, number: int) -> list[int]:
        shard = shards_of(self.space)[number]
        return [index for index in range(shard.first, shard.end) if not self.space.design(index).excluded_by]

    def _compared(self, stored: "pandas.DataFrame", rows: Sequence[Row]) -> Iterator[AuditDifference]:
        again = content_of(self.space, [([*rows], "")]).table
        yield from differences(_by_network(stored), _by_network(again))


class FrontOfSpace(_DesignFolder):
    """Folder that `tilewright front` wrote. Status, energy, latency and area of the designs in its parts are
    compared.
    """

    place, schema = COSTS, COSTS_SCHEMA

    def _step(self) -> str:
        return STEP

    def _digest(self, space: Space, said: Mapping[str, Any], number: int) -> str:
        return PartDigests(space, said["provenance"]).of(parts_of(space)[number])

    def _compared(self, stored: "pandas.DataFrame", rows: Sequence[Row]) -> Iterator[AuditDifference]:
        row = stored.to_dict("records")[0]
        for number, network in enumerate(self.space.networks):
            columns = {
                "status": f"status_{number}",
                ENERGY_PJ: energy_column(number),
                LATENCY_CYCLES: latency_column(number),
            }
            if row[columns["status"]] == OK:  # parts also have the area of designs without results
                columns[AREA_MM2] = AREA_MM2
            found = next((one for one in rows if one["network"] == network.name), {})
            told = {name: row[column] for name, column in columns.items()}
            again = {name: found.get(name) for name in columns}
            yield from differences(_plain(told), _plain(again), network.name)


def _by_network(table: "pandas.DataFrame") -> dict[str, JsonObject]:
    """Rows of one design, by name of the network, as JSON objects."""
    return {row["network"]: _plain(row) for row in table.to_dict("records")}


def _plain(row: Mapping[Any, Any]) -> JsonObject:
    """Row as a JSON object. Values that are None or NaN are left out."""
    plain = {key: value.item() if hasattr(value, "item") else value for key, value in row.items()}
    return {key: value for key, value in plain.items() if value is not None and value == value}
