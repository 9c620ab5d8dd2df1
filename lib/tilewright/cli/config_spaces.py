"""A design space as the rules of the workflow see it."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.designs.parts import PartDigests, ShardDigests, SpacePart
    from tilewright.designs.space import Space


class ExploredSpace:
    """The files that a space is made of, and its shards or parts; the file is read when it is first asked for."""

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def space(self) -> "Space":
        """The space. Raises InputError with everything that is wrong with its file."""
        from tilewright.designs.space_reader import read_space

        return read_space(Path(self.file))

    @cached_property
    def shards(self) -> "dict[str, SpacePart]":
        """Name of its file -> shard."""
        from tilewright.designs.parts import shards_of

        return {shard.file_name: shard for shard in shards_of(self.space)}

    @cached_property
    def parts(self) -> "dict[str, SpacePart]":
        """Name of its file -> part of the costs of families."""
        from tilewright.designs.parts import parts_of

        return {part.file_name: part for part in parts_of(self.space)}

    @property
    def files(self) -> list[str]:
        """Files that all shards and parts are made of; what the space says of its designs is in their digests."""
        mapping = [] if self.space.mapping is None else [self.space.mapping]
        return [str(path) for path in (*(network.file for network in self.space.networks), *mapping)]

    def digest(self, name: str) -> str:
        """Digest of what the shard with this name, without suffix, is made of."""
        return self._digests.of(self.shards[f"{name}.parquet"])

    def part_digest(self, name: str) -> str:
        """Digest of what the part of these costs with this name, without suffix, is made of."""
        return self._part_digests.of(self.parts[f"{name}.parquet"])

    @cached_property
    def _part_digests(self) -> "PartDigests":
        from tilewright.designs.parts import PartDigests

        return PartDigests(self.space)

    @cached_property
    def _digests(self) -> "ShardDigests":
        from tilewright.designs.parts import ShardDigests

        return ShardDigests(self.space)
