"""Unused inputs: each is reported once with file, line and key, in at most ten lines and a count."""

import pickle

import pytest
from tilewright.base.errors import InputError, Problems, Unused
from tilewright.base.unused import notice_lines, refuse_unused, unused_in, unused_option, unused_rows, with_unused
from tilewright.base.yamlfile import parse_yaml

DOCUMENT = parse_yaml("a: 1\nb:\n  c: [1, 2]\n", "folder/file.yaml")


def noted(*paths):
    """Return the notices of a document: an unusual value, and unused keys at the given paths."""
    problems = Problems(DOCUMENT)
    problems.notice(("a",), "is unusual")
    for path in paths:
        problems.unused(path, "has no effect")
    return problems.notices


def test_place_of_what_was_not_used_is_told_and_kept():
    """A notice names file, line and key of an unused input; a summary has the name of the file alone."""
    notices = noted(("b", "c", 1), ("a",))
    assert [str(one) for one in unused_in(notices)] == [
        "folder/file.yaml:1 a: has no effect",
        "folder/file.yaml:3 b.c[1]: has no effect",
    ]
    assert unused_rows(notices)[1] == {"file": "file.yaml", "line": 3, "key": "b.c[1]", "why": "has no effect"}
    assert unused_rows(notices, with_lines=False)[1]["line"] == 0
    assert with_unused({"x": 1}, notices[:1]) == {"x": 1}
    assert len(with_unused({"x": 1}, notices)["unused"]) == 2


def test_options_come_first_and_each_is_told_once():
    """Repeated notices are one line, and notices of unusual values come before unused inputs."""
    option = unused_option("lpf_limit", "has no effect with engine exact", 4)
    lines = notice_lines([*noted(("a",)), option, option])
    assert lines == [
        "folder/file.yaml:1 a: is unusual",
        "lpf_limit: has no effect with engine exact, got 4",
        "folder/file.yaml:1 a: has no effect",
    ]


def test_ten_lines_are_told_and_the_others_counted():
    """Ten unused inputs are reported in the order of lines, and the others are counted."""
    document = parse_yaml("\n".join(f"k{number}: 1" for number in range(13)), "f.yaml")
    problems = Problems(document)
    for number in reversed(range(13)):
        problems.unused((f"k{number}",), "has no effect")
    lines = notice_lines(problems.notices)
    assert len(lines) == 11
    assert lines[0] == "f.yaml:1 k0: has no effect"
    assert lines[-1] == "3 more inputs have no effect"


def test_strict_refuses_all_of_it_and_nothing_else():
    """Strict mode refuses all unused inputs, but accepts unusual values."""
    refuse_unused(noted())
    refuse_unused(noted(("a",)), strict=False)
    with pytest.raises(InputError) as error:
        refuse_unused(noted(("a",), ("b",)))
    assert [str(problem) for problem in error.value.problems] == [
        "folder/file.yaml:1 a: has no effect, which the option strict forbids",
        "folder/file.yaml:2 b: has no effect, which the option strict forbids",
    ]


def test_place_survives_another_process():
    """A notice of a worker process keeps its place."""
    notice = unused_in(noted(("a",)))[0]
    again = pickle.loads(pickle.dumps(notice))
    assert isinstance(again, Unused)
    assert again.problem == notice.problem
    assert again == notice
