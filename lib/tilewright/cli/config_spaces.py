"""Input files, shards and parts of a design space, for the jobs of the pipeline."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.designs.parts import PartDigests, ShardDigests, SpacePart
    from tilewright.designs.space import Space


class ExploredSpace:
    """Design space of a configuration, with its input files, shards and parts. The space file is read at the first
    use.
    """

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def space(self) -> "Space":
        """Design space. Raises InputError with all problems of its file."""
        from tilewright.designs.space_reader import read_space

        return read_space(Path(self.file))

    @cached_property
    def shards(self) -> "dict[str, SpacePart]":
        """Shards of the space, by file name. A shard is a set of designs that one job evaluates."""
        from tilewright.designs.parts import shards_of

        return {shard.file_name: shard for shard in shards_of(self.space)}

    @cached_property
    def parts(self) -> "dict[str, SpacePart]":
        """Parts of the space, by file name. One job computes the costs of one part. A part is a range of families of
        designs. The designs of a family differ only in numbers that change the costs of a mapping but not the data that
        the mapping moves.
        """
        from tilewright.designs.parts import parts_of

        return {part.file_name: part for part in parts_of(self.space)}

    @property
    def files(self) -> list[str]:
        """Paths of the networks and of the mapping file, if there is one. All shards and parts depend on these files.
        Hardware files are not listed, because the digest of a shard or part covers its designs.
        """
        mapping = [] if self.space.mapping is None else [self.space.mapping]
        return [str(path) for path in (*(network.file for network in self.space.networks), *mapping)]

    def digest(self, name: str) -> str:
        """Digest of the inputs of a shard. `name` is the file name of the shard without suffix."""
        return self._digests.of(self.shards[f"{name}.parquet"])

    def part_digest(self, name: str) -> str:
        """Digest of the inputs from which a part of the space is computed. `name` is the file name of the part without
        suffix.
        """
        return self._part_digests.of(self.parts[f"{name}.parquet"])

    @cached_property
    def _part_digests(self) -> "PartDigests":
        from tilewright.designs.parts import PartDigests

        return PartDigests(self.space)

    @cached_property
    def _digests(self) -> "ShardDigests":
        from tilewright.designs.parts import ShardDigests

        return ShardDigests(self.space)
