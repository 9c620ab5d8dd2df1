"""Store of mapped layers, keyed by a digest of the content of each mapping problem, not by names.

The key is a digest of five things: the layer and the core (both without names), the constraints, the stages of the
search with their parameters, and the digest of the code that these stages run. An entry is written atomically, is never
overwritten, and is verified when it is read. A damaged entry counts as missing. If the store is deleted, no result is
lost; later runs only take longer.
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
from tilewright.cost.energy_terms import ENERGY_TERMS
from tilewright.cost.latency_terms import ENTERED as LATENCY_TERMS_OF_PLUGINS
from tilewright.cost.record import LayerRecord, record_of_row, record_row
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import BETWEEN_CORES, MappingConstraints
from tilewright.workload.layer import Layer

SCHEMA = "tilewright/mapped-layer/2"


def problem_key(layer: Layer, core: Core, constraints: MappingConstraints, search: JsonValue) -> str:
    """Digest of a mapping problem. `search` has the stages of the search with their parameters, and the digest of their
    code.

    The names of the layer, of the core and of the mapping entry do not change the digest.
    """
    return content_digest([SCHEMA, *_name_free(layer, core, constraints), search])


def _name_free(layer: Layer, core: Core, constraints: MappingConstraints) -> list[JsonValue]:
    """Encoded layer, digest of the core, and encoded constraints, all without names. This content decides the result of
    a search.

    The values of constant operands affect the mapping or the costs of a layer only if a term of a plug-in reads them.
    These values are therefore left out if no plug-in has such a term.
    """
    encoded = {**encode(layer), "name": ""}
    if not (ENERGY_TERMS.names or LATENCY_TERMS_OF_PLUGINS.names):
        encoded["constant_operands"] = []
    return [
        encoded,
        _digest_of_core(core),
        {**{key: value for key, value in encode(constraints).items() if key not in BETWEEN_CORES}, "name": ""},
    ]


@lru_cache(maxsize=64)
def _digest_of_core(core: Core) -> str:
    """Digest of the content of a core, without names. The digest is cached, because most layers of a network use the
    same core.

    The list of operators that the core can run (`operator_types`) is left out, because it does not affect the mapping
    of a layer.
    """
    encoded = {**encode(core), "name": ""}
    del encoded["operator_types"]
    return content_digest(encoded)


@dataclass(frozen=True)
class Store:
    """Folder with the stored records of mapped layers. Each mapping problem has one entry; the entry with the key
    `abcdef…` is in the file `ab/abcdef….json`.
    """

    directory: Path

    def path_of(self, key: str) -> Path:
        """Path of the file for the entry with the key `key`."""
        return Path(self.directory) / key[:2] / f"{key}.json"

    def get(self, key: str) -> list[LayerRecord] | None:
        """Stored records of one layer; None if there is no entry, or if the entry is damaged."""
        try:
            content = self.path_of(key).read_bytes()
            entry = json.loads(content)
            if entry["key"] != key or not is_sealed_line(content):
                return None
            return [record_of_row(row) for row in entry["records"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, key: str, records: Sequence[LayerRecord]) -> None:
        """Store the records of one layer. An intact existing entry is not replaced.

        If the store cannot be written, no error is raised. The next search of the same problem then only takes longer.
        """
        if self.get(key) is not None:
            return
        rows = [record_row(record) for record in records]
        entry = {"key": key, "digest": content_digest(rows), "records": rows}
        with contextlib.suppress(OSError, InputError):
            write_atomically(self.path_of(key), sealed_line(canonical_text(entry) + "\n"), is_cache=True)

    def is_intact(self, path: Path) -> bool:
        """True if an entry file is complete and undamaged, and its key is the key in the file name."""
        try:
            content = path.read_bytes()
            return is_sealed_line(content) and json.loads(content)["key"] == path.stem
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def entries(self) -> list[Path]:
        """Paths of the files of all entries, sorted."""
        return sorted(Path(self.directory).glob("??/*.json"))
