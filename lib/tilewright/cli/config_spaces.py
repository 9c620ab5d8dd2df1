"""Design space for the rules of the workflow."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.designs.parts import PartDigests, ShardDigests, SpacePart
    from tilewright.designs.space import Space


class ExploredSpace:
    """Input files of a space, and its shards or parts; the file is read when it is first needed."""

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def space(self) -> "Space":
        """Design space. Raises InputError with everything that is wrong with its file."""
        from tilewright.designs.space_reader import read_space

        return read_space(Path(self.file))

    @cached_property
    def shards(self) -> "dict[str, SpacePart]":
        """Shards by their file name."""
        from tilewright.designs.parts import shards_of

        return {shard.file_name: shard for shard in shards_of(self.space)}

    @cached_property
    def parts(self) -> "dict[str, SpacePart]":
        """Parts of the costs of families by their file name."""
        from tilewright.designs.parts import parts_of

        return {part.file_name: part for part in parts_of(self.space)}

    @property
    def files(self) -> list[str]:
        """Files on which all shards and parts depend; their digests include the designs themselves."""
        mapping = [] if self.space.mapping is None else [self.space.mapping]
        return [str(path) for path in (*(network.file for network in self.space.networks), *mapping)]

    def digest(self, name: str) -> str:
        """Digest of the inputs of the shard with this name, without suffix."""
        return self._digests.of(self.shards[f"{name}.parquet"])

    def part_digest(self, name: str) -> str:
        """Digest of the inputs of the part with this name, without suffix."""
        return self._part_digests.of(self.parts[f"{name}.parquet"])

    @cached_property
    def _part_digests(self) -> "PartDigests":
        from tilewright.designs.parts import PartDigests

        return PartDigests(self.space)

    @cached_property
    def _digests(self) -> "ShardDigests":
        from tilewright.designs.parts import ShardDigests

        return ShardDigests(self.space)
