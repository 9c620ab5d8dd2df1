"""The content-addressed store of mapped layers: keyed by what was asked, not by names.

Key: canonical layer (name-free) x canonical core (name-free) x constraints x the stages of the search with their
parameters x digest of the code that these run. An entry is written once, atomically, and verified when read; a damaged
one counts as absent. Deleting the store costs only time.
"""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import JsonValue, canonical_text, content_digest
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import is_sealed_line, sealed_line
from tilewright.base.errors import InputError
from tilewright.base.json_values import JsonObject
from tilewright.cost.record import LayerRecord, record_of_row, record_row
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import BETWEEN_CORES, MappingConstraints
from tilewright.workload.layer import Layer

SCHEMA = "tilewright/mapped-layer/2"


def problem_key(layer: Layer, core: Core, constraints: MappingConstraints, search: JsonValue) -> str:
    """Digest of a mapping problem; `search` says how, and by which code, it is searched.

    Names of the layer, of the core and of the mapping entry do not count.
    """
    return content_digest([SCHEMA, *_name_free(layer, core, constraints), search])


def _name_free(layer: Layer, core: Core, constraints: MappingConstraints) -> list[JsonObject]:
    """What decides the result. Which operands are constant matters to the network, not to the mapping of a layer."""
    return [
        {**encode(layer), "name": "", "constant_operands": []},
        _name_free_core(core),
        {**{key: value for key, value in encode(constraints).items() if key not in BETWEEN_CORES}, "name": ""},
    ]


@lru_cache(maxsize=64)
def _name_free_core(core: Core) -> JsonObject:
    """Most layers of a network are asked for on the same core. What else it can run does not matter to a layer."""
    encoded = {**encode(core), "name": ""}
    del encoded["operator_types"]
    return encoded


@dataclass(frozen=True)
class Store:
    """A folder of entries, `ab/abcdef….json`."""

    directory: Path

    def path_of(self, key: str) -> Path:
        """Where the entry of `key` lies."""
        return Path(self.directory) / key[:2] / f"{key}.json"

    def get(self, key: str) -> list[LayerRecord] | None:
        """The stored records of one layer, or None if there is nothing or it is damaged."""
        try:
            content = self.path_of(key).read_bytes()
            entry = json.loads(content)
            if entry["key"] != key or not is_sealed_line(content):
                return None
            return [record_of_row(row) for row in entry["records"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, key: str, records: Sequence[LayerRecord]) -> None:
        """Store the records of one layer; what is there already is left alone.

        A store that cannot be written costs time in the next search, not this one's result.
        """
        if self.get(key) is not None:
            return
        rows = [record_row(record) for record in records]
        entry = {"key": key, "digest": content_digest(rows), "records": rows}
        with contextlib.suppress(OSError, InputError):
            write_atomically(self.path_of(key), sealed_line(canonical_text(entry) + "\n"), is_cache=True)

    def is_intact(self, path: Path) -> bool:
        """Whether an entry file is what was written, for the problem that it is named after."""
        try:
            content = path.read_bytes()
            return is_sealed_line(content) and json.loads(content)["key"] == path.stem
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def entries(self) -> list[Path]:
        """All entry files, sorted."""
        return sorted(Path(self.directory).glob("??/*.json"))
