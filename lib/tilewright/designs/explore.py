"""Exploration of a space: make the shards that are missing or out of date, and collect the results of all shards.

A shard is a file with the costs of a range of designs. One or several processes make shards.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas

from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import count_of
from tilewright.base.measures import IN_TIME
from tilewright.base.processes import in_processes
from tilewright.designs.clocks import Clocks
from tilewright.designs.columns import LIMITED
from tilewright.designs.design_cost import Sharing
from tilewright.designs.exploration import Exploration
from tilewright.designs.fixed_units import fixed_unit_lines
from tilewright.designs.kept_designs import Found, KeptDesigns
from tilewright.designs.memory_axes import slower_with_more_memory
from tilewright.designs.parts import SHARD_SCHEMA, ShardDigests, SpacePart, shards_of
from tilewright.designs.plan_gaps import dropped_sentences
from tilewright.designs.results import OK
from tilewright.designs.shard import ShardContent, ShardMaker, content_of, joined, read_shards, write_shard
from tilewright.designs.space import FusedSystemOptions, Space, SystemOptions
from tilewright.designs.space_reader import read_space
from tilewright.designs.stamped_tables import digest_in
from tilewright.search.options import CoreSearchOptions, SearchOptions, loops_of_loma
from tilewright.search.progress import Advance
from tilewright.search.store import Store


def assumptions(space: Space) -> tuple[str, ...]:
    """Assumptions under which the designs of a space are compared, one sentence each."""
    options = space.options
    model = f"Model profile {options.model}: energies and areas come from {_sources(space)}."
    mapping = "" if space.mapping is None else " with the choices that the mapping file fixes"
    count = _spatial_count(options)
    tried = f"at most {count_of(count, 'spatial mapping')}" if count else "all spatial mappings"
    open_to_search = (
        "The space has no mapping file, so the search can unroll any loop along any side of the array, and"
        if space.mapping is None
        else "Where the mapping file does not fix the spatial mapping, the search"
    )
    search = (
        f"mapping with the least {options.objective} that {_how(options)}{mapping}. {open_to_search} tries {tried}."
    )
    of_nodes = f"For each computation node on each core: the {search}"
    operands = (*_bits(space), *_zeros(space))
    if isinstance(options, SystemOptions):
        return model, *operands, of_nodes, *_of_systems(options)
    if isinstance(options, FusedSystemOptions):
        return model, *operands, of_nodes, *_of_plans(options)
    return (
        model,
        *operands,
        f"For each layer: the {search}",
        *fixed_unit_lines(space),
        _kept(options),
        "Layers run one after another; the costs of a network are the sums of the costs of its layers.",
    )


def _bits(space: Space) -> Iterator[str]:
    """Sentence on the bits of operands, if the space sets them."""
    bits = dict(pair for network in space.networks for pair in network.options.bits)
    if bits:
        told = ", ".join(f"{operand} {count}" for operand, count in bits.items())
        yield f"Bits of operands: {told}. Other operands have the same bits as in a run without `bits`."


def _zeros(space: Space) -> Iterator[str]:
    """Sentences on the shares of zeros that the space sets: one sentence for each group of networks with the same
    shares.
    """
    names: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for network in space.networks:
        names.setdefault(network.options.zeros, []).append(network.name)
    for shares, networks in names.items():
        if shares:
            told = ", ".join(f"{operand} {share:g}" for operand, share in shares)
            yield f"Shares of zeros of {', '.join(networks)}: {told}."


def _sources(space: Space) -> str:
    """Words on the sources of energies and areas: the hardware file, the laws of the space, the library of costs."""
    settings = [setting for axis in space.axes for own in axis.settings for setting in own]
    uses_library = _has_library_cost(space.base) or any(
        _COST in path or _has_library_cost(value) for path, value in settings
    )
    file = "the hardware file and the laws of the space" if space.laws else "the hardware file"
    return f"{file} and, for memories with the key `{_COST}`, from the library of costs" if uses_library else file


_COST = "cost"
"""Key with which a memory takes its energies and its area from the library of costs."""


def _has_library_cost(value: Any) -> bool:
    """True if a part of a hardware file contains a memory with costs from the library."""
    if isinstance(value, dict):
        return _COST in value or any(map(_has_library_cost, value.values()))
    return isinstance(value, list) and any(map(_has_library_cost, value))


def _how(options: CoreSearchOptions) -> str:
    engine = options.temporal_mapping_search_engine
    how = {
        "loma": f"all orders of {loops_of_loma(options.lpf_limit)}",
        "salsa": f"simulated annealing, {options.salsa_restarts} x {options.salsa_iteration_number} steps",
        "exact": f"the exact search, {options.allocation} allocation",
        "best": f"loma, then salsa, then the exact search until the gap to the lower bound is at most"
        f" {options.largest_gap:.2%}; {options.allocation} allocation",
    }[engine]
    return f"{engine} finds ({how})"


def _spatial_count(options: CoreSearchOptions) -> int:
    return options.spatial_count(options.of_bounds is not None)


def _kept(options: SearchOptions) -> str:
    if options.exploit_data_locality:
        return "Between layers, data stay in the lowest memory that has room for them."
    return "Every layer reads its inputs from the topmost memory and writes its outputs there."


def _of_systems(options: SystemOptions) -> tuple[str, str]:
    cut = (
        "as the mapping file says" if options.cn_define_mode is None else f"by cn_define_mode {options.cn_define_mode}"
    )
    return (
        f"Layers are cut into computation nodes {cut}; the mode of stacks is {options.mode}.",
        f"A genetic algorithm tries {options.planned_evaluations:,} allocations to cores (or all, if there are few)."
        f" The one with the least {options.objective} under the schedule model {options.schedule_model} is used.",
    )


def _of_plans(options: FusedSystemOptions) -> tuple[str, str]:
    most = options.nb_schedules
    limit = f"{options.nb_plans:,} plans" + ("" if most is None else f" or {most:,} schedules")
    return (
        f"For each design, a search (seed {options.seed}) looks for the plan with the least {options.objective}. A plan"
        " sets the stacks, tiles and parts of layers, their cores, and the options of the schedule. The search ends"
        f" after {limit}; its last plan can exceed the limit.",
        f"The designs of a block of {count_of(options.search_block, 'design')} are searched one after another, in"
        f" ascending order of their lower bounds of {options.objective}. Each search starts from the plan of the"
        " nearest design that was already searched in the block, if there is one.",
    )


SpaceSource = str | Path | dict[str, Any]
"""Path of a space file, or the content of such a file."""
Task = TypeVar("Task")
Result = TypeVar("Result")
Maker = Callable[[Space], Callable[[Task], Result]]
"""Function at module level. It takes a space, and returns a function that runs one task. Each process calls the
function at module level once.
"""


@contextlib.contextmanager
def working(
    source: SpaceSource, space: Space, maker: Maker[Task, Result], most: int, jobs: int
) -> Iterator[Callable[[Sequence[Task]], Iterator[Result]]]:
    """Context that yields a function for running tasks. This function returns the results in the order of the tasks.

    If `jobs` or `most` is at most 1, the tasks run in this process. Otherwise, they run in other processes, whose
    number is the smaller of `jobs` and `most`. `most` is the number of tasks. `maker` makes the function that runs one
    task.
    """
    is_here = min(jobs, most) <= 1
    make = partial(maker, space) if is_here else partial(_made_of, source, maker)
    with in_processes(make, most, jobs) as work:
        yield work


def _made_of(source: SpaceSource, maker: Maker[Task, Result]) -> Callable[[Task], Result]:
    """Function that runs one task. `maker` makes this function for the space of `source`. The space is read from
    `source`, because this process does not have the space yet.
    """
    return maker(read_space(source))


SHARDS = "shards"
"""Name of the folder with the shards, in the folder of an exploration."""
BLOCK_DESIGNS = 4
"""Number of designs in a block, for designs with one core and a search without bounds. A process evaluates one block
between two reports of progress. Blocks are stored as a whole. Other designs take longer, so their blocks have one
design.
"""
Counted = tuple[Found, Sharing]
"""Pair (rows of designs, counts of the work that these designs share with others)."""


@dataclass(frozen=True)
class ShardStates:
    """States of the shards of a space in one folder."""

    fresh: tuple[SpacePart, ...]
    missing: tuple[SpacePart, ...]
    """Shards that are missing, or whose inputs have changed since they were made."""
    digests: dict[int, str]
    """Digest of the present inputs of each shard, by number of the shard."""


def shard_states(space: Space, digests: ShardDigests, folder: Path, only: int | None = None) -> ShardStates:
    """Shards of a space that are up to date in `folder`, and shards that are missing or out of date there. If `only` is
    not None, only the shard with this number is checked.
    """
    shards = [shard for shard in shards_of(space) if only in (None, shard.number)]
    wanted = {shard.number: digests.of(shard) for shard in shards}
    is_fresh = {
        shard.number: digest_in(folder / SHARDS / shard.file_name, SHARD_SCHEMA) == wanted[shard.number]
        for shard in shards
    }
    return ShardStates(
        tuple(shard for shard in shards if is_fresh[shard.number]),
        tuple(shard for shard in shards if not is_fresh[shard.number]),
        wanted,
    )


def make_shards(
    source: SpaceSource,
    space: Space,
    shards: Sequence[SpacePart],
    jobs: int,
    advance: Advance,
    sharing: Sharing | None = None,
    kept: KeptDesigns | None = None,
) -> Iterator[tuple[SpacePart, ShardContent]]:
    """Evaluate shards. Yields a pair (shard, its content) for each shard, in the order of `shards`.

    Each call of `advance` reports the number of further designs that are done. Only designs that meet the constraints
    checked before evaluation are counted. `sharing` counts the work that designs share. Designs that `kept` has are not
    evaluated again, and each block of designs that is done is added to `kept`. The results do not depend on `jobs`,
    `sharing` or `kept`.
    """
    sharing = sharing or Sharing()
    known = {shard.number: {} if kept is None else kept.blocks(shard) for shard in shards}
    blocks = [block for shard in shards for block in _blocks(space, shard) if block.start not in known[shard.number]]
    with working(source, space, partial(_counted_designs, store=sharing.store), len(blocks), jobs) as work:
        found = work(blocks)
        for shard in shards:
            designs: Found = []
            for block in _blocks(space, shard):
                own = known[shard.number].get(block.start)
                if own is None:
                    own, counts = next(found)
                    sharing.add(counts, Sharing())
                    if kept is not None:
                        kept.keep(shard, block.start, own)
                advance(space.allowed_in(block))
                designs += own
            yield shard, content_of(space, designs)


def _blocks(space: Space, shard: SpacePart) -> list[range]:
    """Blocks of a shard: ranges of designs that one process evaluates together."""
    options = space.options
    is_fast = isinstance(options, SearchOptions) and options.of_bounds is None
    size = space.block_size if space.block_size > 1 else BLOCK_DESIGNS if is_fast else 1
    return [range(first, min(first + size, shard.end)) for first in range(shard.first, shard.end, size)]


def complete(
    source: SpaceSource,
    space: Space,
    folder: Path,
    jobs: int,
    advance: Advance,
    only: int | None = None,
    sharing: Sharing | None = None,
) -> None:
    """Make the shards of a folder that are missing or out of date. If `only` is not None, make only the shard with this
    number, if needed.

    Each shard is written as soon as it is done. The designs of an unfinished shard are kept, too. If `only` is None,
    files of shards that no longer belong to the space are deleted. Each call of `advance` adds to the number of designs
    that are done, as in `make_shards`.
    """
    digests = ShardDigests(space)
    states = shard_states(space, digests, folder, only)
    make_folder(folder / SHARDS)
    if only is None:
        names = {Path(shard.file_name).stem for shard in shards_of(space)}
        for path in (folder / SHARDS).iterdir():
            if path.suffix in (".parquet", ".jsonl") and path.stem not in names:
                path.unlink()
    advance(sum(space.allowed_in(range(shard.first, shard.end)) for shard in states.fresh))
    kept = KeptDesigns(folder / SHARDS, states.digests)
    for shard, content in make_shards(source, space, states.missing, jobs, advance, sharing, kept):
        write_shard(folder / SHARDS / shard.file_name, content, states.digests[shard.number], digests.made_of)
        kept.forget(shard)


def gathered(space: Space, folder: Path) -> tuple[Exploration, tuple[SpacePart, ...]]:
    """Pair (exploration, other shards). The exploration has the results of all shards that are up to date, and of the
    designs that are kept for unfinished shards. The other shards are missing, unfinished or out of date.
    """
    states = shard_states(space, ShardDigests(space), folder)
    contents = read_shards([folder / SHARDS / shard.file_name for shard in states.fresh])
    by_shard = dict(zip((shard.number for shard in states.fresh), contents, strict=True))
    kept = KeptDesigns(folder / SHARDS, states.digests)
    missing = sum(shard.end - shard.first for shard in states.missing)
    for shard in states.missing:
        designs = kept.designs(shard)
        by_shard[shard.number] = content_of(space, designs)
        missing -= len(designs)
    content = joined(space, [by_shard[number] for number in sorted(by_shard)])
    return replace(exploration_of(space, content), missing=missing), states.missing


def kept_count(space: Space, states: ShardStates, folder: Path) -> int:
    """Number of designs of unfinished shards that are kept in `folder`."""
    kept = KeptDesigns(folder / SHARDS, states.digests)
    return sum(len(kept.designs(shard)) for shard in states.missing)


def explored(
    source: SpaceSource, space: Space, jobs: int, advance: Advance, sharing: Sharing | None = None
) -> Exploration:
    """Exploration of the space, computed in memory without shard files."""
    contents = [content for _, content in make_shards(source, space, shards_of(space), jobs, advance, sharing)]
    return exploration_of(space, joined(space, contents))


def exploration_of(space: Space, content: ShardContent, clocks: Clocks | None = None) -> Exploration:
    """Exploration with the results of shards. The column `unmet` of its table has, for each row, the constraints that
    the results violate.

    `clocks` is the relation between the clocks of all compared designs. It must be passed if the shards have only some
    of the designs.
    """
    axes = tuple(axis.name for axis in space.axes)
    table = content.table.assign(unmet=list(_unmet(space, content.table)))
    found = Exploration(
        space.name,
        axes,
        tuple(name for name in space.value_names if name not in axes),
        space.objectives,
        tuple(network.name for network in space.networks),
        (*assumptions(space), *slower_with_more_memory(space, table), *dropped_sentences(table)),
        table,
        dict(sorted(content.excluded.items())),
        axis_values={axis.name: axis.values for axis in space.axes},
        given_clocks=clocks,
        searched_for=space.options.objective,
    )
    return replace(found, assumptions=(*found.assumptions, *_constraints_in_cycles(space, found.clocks)))


def _constraints_in_cycles(space: Space, clocks: Clocks) -> Iterator[str]:
    """Sentence on constraints that limit cycles while latencies are compared in time; no sentence if there are no such
    constraints.
    """
    texts = [one.expression.text for one in space.constraints_after if {*IN_TIME} & {*one.expression.names}]
    if texts and clocks is Clocks.DIFFER:
        told = "; ".join(texts)
        yield f"The clocks of designs differ, but these constraints limit cycles, not time: {told}."


def _unmet(space: Space, table: pandas.DataFrame) -> Iterator[str]:
    """Constraints that the results in each row violate (`Space.unmet`). '' for a row without results, and for a row
    whose results meet all constraints.
    """
    if not space.constraints_after:
        yield from ("" for _ in range(len(table)))
        return
    for row in table.to_dict("records"):
        if row["status"] != OK:
            yield ""
            continue
        results = {key: row[key] for key in LIMITED if key in row and row[key] == row[key]}
        yield space.unmet(space.values(int(row["index"])), results)


def _counted_designs(space: Space, store: Store | None) -> Callable[[range], Counted]:
    """Function that evaluates blocks of designs. It is made once in each process."""
    maker = ShardMaker(space, Sharing(store))

    def work(block: range) -> Counted:
        before = maker.sharing.counts()
        found, counts = list(maker.rows(block)), Sharing()
        counts.add(maker.sharing, before)
        return found, counts

    return work
