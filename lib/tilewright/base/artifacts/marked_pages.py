"""Pages with a generated part: the text between two marks is written by a program, the rest by a person."""


def with_part(page: str, begin: str, end: str, part: str) -> str:
    """Text of a page in which `part` replaces the text between the two marks. The marks stay. Raises ValueError if a
    mark is missing."""
    head, begins, below = page.partition(begin)
    _, ends, tail = below.partition(end)
    if not (begins and ends):
        raise ValueError(f"the page needs the line '{begin}' and, below this line, the line '{end}'")
    return f"{head}{begin}{part}{end}{tail}"
