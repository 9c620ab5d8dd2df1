"""Shards: Parquet files, each with the costs of some designs of a space on all its networks.

The metadata of a shard contain a digest of the inputs from which the shard was made (parts.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas

from tilewright.base.errors import InputError, Problem
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, EDP_PJ_S, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.objectives import energy_delay_product
from tilewright.designs.columns import energy_column
from tilewright.designs.design_cost import DesignCost, Sharing
from tilewright.designs.design_evaluator import DesignEvaluator, accelerator_of
from tilewright.designs.front_odds import part_columns
from tilewright.designs.parts import SHARD_SCHEMA
from tilewright.designs.results import INVALID, numbers_or_words
from tilewright.designs.space import Design, FusedSystemOptions, Network, Space, SystemOptions
from tilewright.designs.stamped_tables import read_stamped, write_stamped
from tilewright.pipeline.sources import parse_workload

if TYPE_CHECKING:
    from tilewright.designs.fused_systems import FusedBlocks

Row = dict[str, Any]


@dataclass(frozen=True)
class ShardContent:
    """Content of a shard."""

    table: pandas.DataFrame
    """Table with one row per network, for each design that no constraint excludes before evaluation."""
    excluded: Mapping[str, int]
    """Number of designs that each constraint excludes before evaluation, by constraint."""


class ShardMaker:
    """Function object that evaluates designs of a space for shards. It reads the networks when it evaluates the first
    design.
    """

    def __init__(self, space: Space, sharing: Sharing | None = None) -> None:
        self.space = space
        self.sharing = sharing or Sharing()

    @cached_property
    def evaluators(self) -> dict[str, DesignEvaluator]:
        """Evaluators of the networks, by name of the network.

        Raises InputError with all mistakes in the networks and the mapping file.
        """
        problems: list[Problem] = []
        found: dict[str, DesignEvaluator] = {}
        for network in self.space.networks:
            try:
                found[network.name] = self._evaluator(network)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(dict.fromkeys(problems))
        return found

    @cached_property
    def blocks(self) -> "FusedBlocks":
        """Object that searches for the plans of designs, one block of designs at a time. The object is needed only if
        the option `fusion` of the space is `search`.
        """
        from tilewright.designs.fused_systems import FusedBlocks, FusedEvaluator

        found = {name: one for name, one in self.evaluators.items() if isinstance(one, FusedEvaluator)}
        return FusedBlocks(self.space, found)

    def _evaluator(self, network: Network) -> DesignEvaluator:
        """Evaluator of one network. Raises InputError with all mistakes in the network and the mapping file."""
        options = self.space.options
        if isinstance(options, FusedSystemOptions):
            from tilewright.designs.fused_systems import NETWORK_MODEL, FusedEvaluator

            return FusedEvaluator(
                parse_workload(network.file, model=NETWORK_MODEL, options=network.options), self.space.mapping, options
            )
        if isinstance(options, SystemOptions):
            from tilewright.designs.evaluate_system import NETWORK_MODEL, SystemEvaluator

            workload = parse_workload(network.file, model=NETWORK_MODEL, options=network.options)
            return SystemEvaluator(workload, self.space.mapping, options, self.sharing)
        from tilewright.designs.evaluate import NetworkEvaluator

        return NetworkEvaluator(
            parse_workload(network.file, model=options.model, options=network.options), self.space.mapping, options
        )

    def rows(self, indexes: Iterable[int]) -> Iterator[tuple[list[Row], str]]:
        """Pairs (rows, constraint), one per design.

        If a constraint excludes the design before evaluation, `constraint` is this constraint, and there are no rows.
        Otherwise `constraint` is ''.
        """
        for index in indexes:
            design = self.space.design(index)
            if design.excluded_by:
                yield [], design.excluded_by
            else:
                yield [self._row(design, name, cost) for name, cost in self._costs(design)], ""

    def _costs(self, design: Design) -> Iterator[tuple[str, DesignCost]]:
        """Pairs (name of a network, cost of the design on this network), in the order of the networks."""
        if isinstance(self.space.options, FusedSystemOptions):
            yield from self.blocks.costs(design.index).items()
            return
        refused, accelerator = DesignCost(INVALID, design.problem), None
        if not design.problem:
            try:
                accelerator = accelerator_of(design.hardware, self.space.is_of_systems)
            except InputError as error:
                refused = DesignCost.refused(error)
        for name, evaluator in self.evaluators.items():
            yield name, refused if accelerator is None else evaluator.cost(accelerator)

    def _row(self, design: Design, network: str, cost: DesignCost) -> Row:
        row = {"index": design.index, "design": self.space.design_name(design.index)}
        row |= {**design.values, "network": network}
        row |= {"status": cost.status, "reason": cost.reason}
        row |= {ENERGY_PJ: cost.energy_pj, LATENCY_CYCLES: float(cost.latency_cycles)}
        row |= {EDP_PJ_CYCLES: energy_delay_product(cost.energy_pj, cost.latency_cycles), AREA_MM2: cost.area_mm2}
        row |= cost.further
        row |= cost.texts
        seconds = cost.further.get(LATENCY_S)
        if seconds is not None:
            row[EDP_PJ_S] = energy_delay_product(cost.energy_pj, seconds)
        row |= {energy_column(term): energy for term, energy in cost.energy_terms_pj.items()}
        row |= {f"energy_memory_{name}_pj": energy for name, energy in cost.memory_energy_pj.items()}
        row |= part_columns(cost.cost_parts, cost.latency_cycles, seconds)
        return row | {f"latency_{part}_cycles": float(cycles) for part, cycles in cost.latency_terms_cycles.items()}


def make_rows(space: Space) -> Callable[[Sequence[int]], list[tuple[list[Row], str]]]:
    """Function that computes the rows of the designs with the given indexes. Its results are those of
    `ShardMaker.rows`. Each process calls `make_rows` once.
    """
    maker = ShardMaker(space)
    return lambda indexes: list(maker.rows(indexes))


def content_of(space: Space, found: Iterable[tuple[list[Row], str]]) -> ShardContent:
    """Content of a shard. `found` has a pair (rows, constraint) for each of its designs, as from `ShardMaker.rows`."""
    rows: list[Row] = []
    excluded: dict[str, int] = {}
    for own, constraint in found:
        rows += own
        if constraint:
            excluded[constraint] = excluded.get(constraint, 0) + 1
    leading = ["index", "design", *space.value_names, "network", "status", "reason"]
    leading += [ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES, AREA_MM2]
    further = dict.fromkeys(key for row in rows for key in row if key not in leading)
    table = pandas.DataFrame(rows, columns=[*leading, *further])
    for name in space.value_names:
        given = [row.get(name) for row in rows]
        table[name] = numbers_or_words(given, space.known_values.get(name, given))
    return ShardContent(table, excluded)


def write_shard(path: Path, content: ShardContent, digest: str, made_of: Mapping[str, Any]) -> None:
    """Write a shard to a file. Equal content gives equal bytes."""
    said = {"schema": SHARD_SCHEMA, "digest": digest, "excluded": dict(content.excluded), "provenance": dict(made_of)}
    write_stamped(path, content.table, said)


def read_shards(paths: Sequence[Path]) -> list[ShardContent]:
    """Contents of the shards in files. Raises InputError if a file is damaged."""
    found = (read_stamped(path, SHARD_SCHEMA) for path in paths)
    return [ShardContent(table, said["excluded"]) for table, said in found]


def joined(space: Space, contents: Sequence[ShardContent]) -> ShardContent:
    """Content of several consecutive shards as one. Without shards, the table has no rows."""
    excluded: dict[str, int] = {}
    for content in contents:
        for constraint, count in content.excluded.items():
            excluded[constraint] = excluded.get(constraint, 0) + count
    tables = [content.table for content in contents]
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    filled = [table for table in tables if len(table)]
    if not filled:
        return ShardContent(content_of(space, []).table, excluded)
    return ShardContent(pandas.concat(filled, ignore_index=True).reindex(columns=columns), excluded)
