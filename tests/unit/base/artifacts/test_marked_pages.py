"""Pages with a part that is made."""

import pytest
from tilewright.base.artifacts.marked_pages import with_part

BEGIN, END = "<!-- part -->", "<!-- end of part -->"


@pytest.mark.parametrize("before", ["", "\nold \\1\n", "\n<!-- another -->\n"])
def test_only_what_is_between_the_marks_is_written(before: str) -> None:
    """Backslashes and groups of patterns are text; a second time changes nothing."""
    written = with_part(f"head\n{BEGIN}{before}{END}\ntail {END}\n", BEGIN, END, "\nnew \\g<0>\n")
    assert written == f"head\n{BEGIN}\nnew \\g<0>\n{END}\ntail {END}\n"
    assert with_part(written, BEGIN, END, "\nnew \\g<0>\n") == written


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_marks_that_are_missing_are_an_error(page: str) -> None:
    """Also where they stand the wrong way round."""
    with pytest.raises(ValueError, match="needs the line '<!-- part -->' and, below this line, the line"):
        with_part(page, BEGIN, END, "")
