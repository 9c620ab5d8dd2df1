"""Keys of hardware and accelerator files: each is documented on a page of one of three topics."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tilewright.hardware.attributes import BUILT_IN
from tilewright.hardware.system_schema import multi_core_schema
from tilewright.hardware.topologies import topology_names
from tilewright.hardware.yaml_schema import hardware_schema

from docs.check_docs import text_of

TOPICS = ("formats", "model", "costs")
"""The topic of all keys, and the topics on in-memory arrays and on the library of costs to which it refers."""
CODE = re.compile(r"`[^`\n]+`|^```yaml.*?^```", re.MULTILINE | re.DOTALL)


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    """Keys of all tables in a schema."""
    for part in (schema, *schema.get("$defs", {}).values()):
        yield from part.get("properties", {})


def undocumented(keys: set[str], text: str) -> list[str]:
    """Keys that are in no code of a page."""
    return sorted(keys - {word for code in CODE.findall(text) for word in re.findall(r"\w+", code)})


@pytest.mark.parametrize("schema", [hardware_schema, multi_core_schema], ids=lambda schema: schema.__name__)
def test_every_key_is_documented(schema: Any) -> None:
    """Each key stands as code in a table, a sentence or an example of the pages."""
    text = "\n".join(map(text_of, TOPICS))
    assert undocumented(set(keys_of(schema())), text) == []


def test_attributes_and_topologies_are_on_the_page() -> None:
    """Each attribute and topology has a row, or shares one."""
    rows = [line for line in text_of("formats").splitlines() if line.startswith("| `")]
    first = "\n".join(row.split(" | ")[0] for row in rows)
    assert undocumented({one.key for one in BUILT_IN} | set(topology_names()), first) == []


def test_a_key_without_a_place_is_found() -> None:
    """A word of a sentence does not describe a key; only code does."""
    text = "The clock is `clock_frequency`, the size is not.\n```yaml\nname: x\n```\n```bash\nleak\n```\n"
    assert undocumented({"clock_frequency", "size", "name", "leak"}, text) == ["leak", "size"]
