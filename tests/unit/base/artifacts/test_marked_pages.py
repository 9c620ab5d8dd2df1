"""Pages with a generated part."""

import pytest
from tilewright.base.artifacts.marked_pages import with_part

BEGIN, END = "<!-- part -->", "<!-- end of part -->"


@pytest.mark.parametrize("before", ["", "\nold \\1\n", "\n<!-- another -->\n"])
def test_only_what_is_between_the_marks_is_written(before: str) -> None:
    """Text between the marks is replaced, also by text with backslashes; writing it again changes nothing."""
    written = with_part(f"head\n{BEGIN}{before}{END}\ntail {END}\n", BEGIN, END, "\nnew \\g<0>\n")
    assert written == f"head\n{BEGIN}\nnew \\g<0>\n{END}\ntail {END}\n"
    assert with_part(written, BEGIN, END, "\nnew \\g<0>\n") == written


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_marks_that_are_missing_are_an_error(page: str) -> None:
    """Marks that are missing or in the wrong order are an error."""
    with pytest.raises(ValueError, match="needs the line '<!-- part -->' and, below this line, the line"):
        with_part(page, BEGIN, END, "")
