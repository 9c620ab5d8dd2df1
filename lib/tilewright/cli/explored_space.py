"""A design space as the rules of the workflow see it."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.exploration.shard_plan import Shard, ShardDigests
    from tilewright.exploration.space import Space


class ExploredSpace:
    """The files that a space is made of, and its shards; the file is read when it is first asked for."""

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def space(self) -> "Space":
        """The space. Raises InputError with everything that is wrong with its file."""
        from tilewright.exploration.space_reader import read_space

        return read_space(Path(self.file))

    @cached_property
    def shards(self) -> "dict[str, Shard]":
        """Name of its file -> shard."""
        from tilewright.exploration.shard_plan import shards_of

        return {shard.file_name: shard for shard in shards_of(self.space)}

    @property
    def files(self) -> list[str]:
        """Files that all shards are made of. What the space itself says of its designs is in their digests."""
        mapping = [] if self.space.mapping is None else [self.space.mapping]
        return [str(path) for path in (*(network.file for network in self.space.networks), *mapping)]

    def digest(self, name: str) -> str:
        """Of what the shard with this name, without suffix, is made."""
        return self._digests.of(self.shards[f"{name}.parquet"])

    @cached_property
    def _digests(self) -> "ShardDigests":
        from tilewright.exploration.shard_plan import ShardDigests

        return ShardDigests(self.space)
