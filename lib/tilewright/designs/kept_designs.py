"""Designs of a shard that is not complete yet, kept in a file, so that an interrupted exploration continues with the
other designs.

The file is in the folder of the shards. Its first line has the digest of the inputs of the shard. Each further line has
the rows of one block of designs, as JSON. The file is deleted when the shard is written.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.designs.parts import SpacePart

Found = list[tuple[list[dict[str, Any]], str]]
"""Pairs (rows of a design, constraint that excludes it), as from `ShardMaker.rows`. The constraint is '' if none
excludes the design.
"""
_PLAIN = (str, int, float, bool, type(None))
"""Types of the values that JSON keeps exactly."""


@dataclass
class KeptDesigns:
    """Designs of incomplete shards in the folder of the shards."""

    folder: Path
    """Folder of the shards."""
    digests: dict[int, str]
    """Digest of the present inputs of each shard, by number of the shard."""
    _begun: set[int] = field(default_factory=set)

    def path(self, shard: SpacePart) -> Path:
        """File with the designs of a shard."""
        return (self.folder / shard.file_name).with_suffix(".jsonl")

    def blocks(self, shard: SpacePart) -> dict[int, Found]:
        """Kept blocks of a shard: index of the first design -> rows of the designs. The result is empty if the inputs
        of the shard have changed since. A line that was not written completely is ignored.
        """
        found: dict[int, Found] = {}
        try:
            with self.path(shard).open(encoding="utf-8") as lines:
                if next(lines, "").rstrip("\n") != self.digests[shard.number]:
                    return {}
                for line in lines:
                    if not line.endswith("\n"):
                        break
                    first, designs = json.loads(line)
                    found[first] = [(rows, constraint) for rows, constraint in designs]
        except (OSError, ValueError, TypeError):
            return found
        self._begun.add(shard.number)
        return found

    def designs(self, shard: SpacePart) -> Found:
        """All kept designs of a shard, in the order of the designs."""
        kept = self.blocks(shard)
        return [design for first in sorted(kept) for design in kept[first]]

    def keep(self, shard: SpacePart, first: int, designs: Found) -> None:
        """Add a block of designs of a shard to its file. `first` is the index of its first design. A block with values
        that JSON cannot keep exactly is left out.
        """
        values = (value for rows, _ in designs for row in rows for value in row.values())
        if not all(isinstance(value, _PLAIN) for value in values):
            return
        is_new = shard.number not in self._begun
        with self.path(shard).open("w" if is_new else "a", encoding="utf-8") as file:
            if is_new:
                file.write(f"{self.digests[shard.number]}\n")
            file.write(json.dumps([first, designs], separators=(",", ":")) + "\n")
        self._begun.add(shard.number)

    def forget(self, shard: SpacePart) -> None:
        """Delete the file of a shard."""
        self._begun.discard(shard.number)
        self.path(shard).unlink(missing_ok=True)
