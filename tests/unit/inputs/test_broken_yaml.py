"""Files that are no YAML or dangerous YAML: each is an InputError with a place."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import LARGEST_FILE_BYTES, document_of, load_yaml, parse_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(f"m{i}: &m{i} {{<<: [*{p}, *{p}], k{i}: 1}}\n" for i, p in
                                        enumerate(["a", *(f"m{i}" for i in range(30))]))  # fmt: skip

CASES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 1, "empty"),
    "only a comment": (b"# nothing\n", 1, "empty"),
    "binary": (b"\x7fELF\x00\x01", 0, "binary"),
    "not UTF-8": (b"a: 1\nname: caf\xe9\n", 2, "not UTF-8"),
    "UTF-16": ("name: x".encode("utf-16"), 0, "binary"),
    "tab": (b"a:\n\tb: 1\n", 2, "not valid YAML"),
    "open bracket": (b"a: [1, 2\nb: 3\n", 2, "not valid YAML"),
    "bare star": (b"- [OX, *]\n", 1, 'write "*" in quotes'),
    "undefined alias": (b"a: *b\n", 1, "not valid YAML"),
    "control character": (b"a: \x07\n", 0, "not valid YAML"),
    "two documents": (b"a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
    "python object": (b"a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "tag python/object/apply:os.system"),
    "custom tag": (b"a: !secret x\n", 1, "tag !secret is not allowed"),
    "binary tag": (b"a: !!binary aGk=\n", 1, "tag binary is not allowed"),
    "false integer": (b"a: !!int twelve\n", 1, "not a valid int"),
    "huge integer": (b"a: " + b"9" * 5000 + b"\n", 1, "not a valid int"),
    "list as key": (b"? [a, b]\n: 1\n", 1, "a key must be text"),
    "billion laughs": (BOMB.encode(), 0, "aliases expand to too much data"),
    "merge bomb": (MERGE_BOMB.encode(), 0, "aliases expand to too much data"),
    "recursive alias": (b"a: &a\n  b: *a\n", 0, "aliases expand to too much data"),
    "recursive merge": (b"a: &a\n  <<: [*a, *a]\n", 0, "aliases expand to too much data"),
    "bad merge": (b"a: {<<: 3}\n", 1, "merge key"),
    "deep nesting": (b"[" * 100_000, 1, "levels deep"),
    "deep blocks": (b"".join(b" " * i + b"a:\n" for i in range(100)), 0, "levels deep"),
    "many repeated keys": (b"a: [1]\n" * 500, 0, "given twice"),
}


@pytest.mark.parametrize("case", CASES)
def test_broken_yaml_is_an_input_error_with_a_place(case: str, tmp_path: Path) -> None:
    """Broken bytes give an error with file, reason and, if known, line."""
    content, line, message = CASES[case]
    file = tmp_path / "broken.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=None) as caught:
        load_yaml(file)
    problem = caught.value.problems[0]
    assert problem.file == str(file)
    assert message in problem.message
    if line:
        assert problem.line == line


def test_missing_files_and_directories_are_input_errors(tmp_path: Path) -> None:
    """A path without a readable file is an InputError."""
    for path, message in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "directory")):
        with pytest.raises(InputError, match=message):
            load_yaml(path)
    with pytest.raises(InputError):
        load_yaml("nul\0name.yaml")


def test_very_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A very large file is refused by its size before it is read."""
    file = tmp_path / "large.yaml"
    with file.open("wb") as stream:
        stream.truncate(LARGEST_FILE_BYTES + 1)
    with pytest.raises(InputError, match="too large"):
        load_yaml(file)


def test_of_a_repeated_key_the_last_counts_with_a_notice() -> None:
    """The last of two equal keys counts, with a notice; the reported lines are those of its value."""
    notices: list[str] = []
    document = parse_yaml("a:\n  - x: 1\n  - y: 2\nb: 0\na:\n  - z: 3\n", "f.yaml", notices)
    assert document.data == {"a": [{"z": 3}], "b": 0}
    assert document.line_of(("a",)) == 5
    assert document.line_of(("a", 0, "z")) == 6
    assert document.line_of(("a", 1)) == 5
    assert notices == ["f.yaml:5 a: the key is given twice; only the last value counts (the first is on line 1)"]


def test_every_key_and_item_knows_its_line() -> None:
    """Lines count from 1 and belong to the key or the list item."""
    document = parse_yaml("# c\na:\n  b:\n    - 1\n    - name: n\n      v: 2\n")
    assert [document.line_of(p) for p in (("a",), ("a", "b"), ("a", "b", 0), ("a", "b", 1), ("a", "b", 1, "v"))] == [
        2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert document.dotted(("a", "b", 1, "v")) == "a.b.n.v"
    assert document.dotted(("a", "b", 0)) == "a.b[0]"


def test_merge_keys_and_aliases_are_resolved_and_own_keys_win() -> None:
    """`<<` adds only keys that the table lacks, without a notice; if two sources have a key, the first one counts."""
    notices: list[str] = []
    text = "p: &p {x: 1, y: 1}\nq: &q {x: 2, z: 2}\nr:\n  <<: [*p, *q]\n  y: 3\n"
    assert parse_yaml(text, "", notices).data["r"] == {"x": 1, "z": 2, "y": 3}
    assert not notices


def test_scalars_are_those_of_the_reference_reader() -> None:
    """Scalars are read as by PyYAML's safe loader (YAML 1.1), but a date stays text."""
    data = parse_yaml("[1, 1_000, 0x10, 1.5, 1e3, yes, off, ~, null, 2020-01-01, '1', .inf]").data
    assert data == [1, 1000, 16, 1.5, "1e3", True, False, None, None, "2020-01-01", "1", float("inf")]


def test_python_data_that_is_no_plain_data_is_refused() -> None:
    """Python objects other than tables, lists, numbers and text are refused in a document."""
    with pytest.raises(InputError, match="type object"):
        document_of([object()])
    endless: list = []
    endless.append(endless)
    with pytest.raises(InputError, match="levels deep"):
        document_of(endless)
