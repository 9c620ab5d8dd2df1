"""Keys of hardware and accelerator files in the documentation: each has a place on one of three pages."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tilewright.hardware.attributes import BUILT_IN
from tilewright.hardware.system_schema import multi_core_schema
from tilewright.hardware.topologies import topology_names
from tilewright.hardware.yaml_schema import hardware_schema

from docs.check_docs import DOCS

PAGES = ("formats.md", "model.md", "costs.md")
"""The page of all keys, and the pages to which it sends for in-memory arrays and for the library of costs."""
CODE = re.compile(r"`[^`\n]+`|^```yaml.*?^```", re.MULTILINE | re.DOTALL)


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    """Keys of all tables of a schema."""
    for part in (schema, *schema.get("$defs", {}).values()):
        yield from part.get("properties", {})


def undocumented(keys: set[str], text: str) -> list[str]:
    """Keys that no code of a page names."""
    return sorted(keys - {word for code in CODE.findall(text) for word in re.findall(r"\w+", code)})


@pytest.mark.parametrize("schema", [hardware_schema, multi_core_schema], ids=lambda schema: schema.__name__)
def test_every_key_is_documented(schema: Any) -> None:
    """Names of keys stand as code in a table, a sentence or an example of the page."""
    text = "\n".join((DOCS / page).read_text("utf-8") for page in PAGES)
    assert undocumented(set(keys_of(schema())), text) == []


def test_attributes_and_topologies_are_on_the_page() -> None:
    """Each has its own row, or shares one."""
    rows = [line for line in (DOCS / "formats.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    first = "\n".join(row.split(" | ")[0] for row in rows)
    assert undocumented({one.key for one in BUILT_IN} | set(topology_names()), first) == []


def test_a_key_without_a_place_is_found() -> None:
    """Code alone describes a key: a word of a sentence does not."""
    text = "The clock is `clock_frequency`, the size is not.\n```yaml\nname: x\n```\n```bash\nleak\n```\n"
    assert undocumented({"clock_frequency", "size", "name", "leak"}, text) == ["leak", "size"]
