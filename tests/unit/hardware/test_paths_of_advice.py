"""Keys that `advise` prints are paths that spaces read, for any names in a file."""

from fractions import Fraction
from pathlib import Path

import pytest
from tilewright.base.yamlfile import YamlDocument, load_yaml, parse_yaml
from tilewright.designs.changes import possible_changes
from tilewright.hardware.dotted_paths import key_path, path_text
from tilewright.hardware.text_edits import changed_text, with_values

CONFIG = Path(__file__).resolve().parents[3] / "config" / "hardware"
FILES = sorted(path for path in CONFIG.rglob("*.y*ml") if "memories" in (load_yaml(path).data or {}))
ODD = {
    "memories": {
        "reg.O[0]": {"size": 32, "ports": [{"name": "rw.1", "bandwidth_max": 16}]},
        "reg": {"O": {"size": 1}, "size": 2},
        "2 MB/SRAM": {
            "size": 64,
            "ports": [{"bandwidth_max": 8}, {"name": "w", "bandwidth_max": 8}, {"name": "w", "bandwidth_max": 9}],
        },
    },
    "operational_array": {"sizes": [8, 4]},
}


def leaves(data: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values."""
    if isinstance(data, dict):
        return [one for key, value in data.items() for one in leaves(value, (*path, key))]
    if isinstance(data, list):
        return [one for index, value in enumerate(data) for one in leaves(value, (*path, index))]
    return [path]


def test_there_are_files() -> None:
    """More than five shipped files of one core are tested."""
    assert len(FILES) > 5


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_every_key_of_advice_is_read_back(file: Path) -> None:
    """Each key of advice leads back to the value that it names."""
    document = load_yaml(file)
    for change in possible_changes(document, Fraction(2)):
        assert key_path(document.data, change.key) == change.path
    for path in leaves(document.data):
        assert key_path(document.data, path_text(document.data, path)) == path


def test_keys_with_dots_and_brackets_are_read_back() -> None:
    """Keys with dots and brackets lead back to their value, for example `memories.reg.O[0].size`."""
    for path in leaves(ODD):
        assert key_path(ODD, path_text(ODD, path)) == path
    assert key_path(ODD, "memories.reg.O[0].size") == ("memories", "reg.O[0]", "size")
    assert key_path(ODD, "memories.reg.O.size") == ("memories", "reg", "O", "size")
    assert key_path(ODD, "memories.reg.O[0].ports.rw.1.bandwidth_max")[-2:] == (0, "bandwidth_max")  # type: ignore[index]
    assert key_path(ODD, "operational_array.sizes[1]") == ("operational_array", "sizes", 1)
    assert key_path(ODD, "memories.reg.O[0].r_cost") == ("memories", "reg.O[0]", "r_cost")
    assert "no such key" in str(key_path(ODD, "memories.nothing.size"))
    changes = possible_changes(YamlDocument("odd.yaml", ODD, {}), Fraction(2))
    assert [key_path(ODD, change.key) for change in changes] == [change.path for change in changes]
    assert with_values(ODD, [(key_path(ODD, "memories.2 MB/SRAM.size"), 7)])["memories"]["2 MB/SRAM"]["size"] == 7  # type: ignore[list-item]


ANCHORED = """\
name: anchored  # a comment
memories:
  one: {size: &cap 64, r_cost: &e 5, w_cost: *e}
  two:
    size: *cap  # another comment
    r_cost: *e
    ports:
      - {name: r, bandwidth_min: &w 8, bandwidth_max: *w}
      - {name: w, bandwidth_min: *w, bandwidth_max: *w}
  three: {size: *cap}
"""


@pytest.mark.parametrize("path", leaves(parse_yaml(ANCHORED).data), ids=str)
def test_a_number_beside_aliases_is_changed_alone(path: tuple[str | int, ...]) -> None:
    """A changed number with an anchor or an alias leaves the other places and the comments as they were."""
    changed = changed_text(ANCHORED, [(path, 7)])
    assert parse_yaml(changed).data == with_values(parse_yaml(ANCHORED).data, [(path, 7)])
    assert changed.count("comment") == 2
    assert len(changed.splitlines()) == len(ANCHORED.splitlines())
