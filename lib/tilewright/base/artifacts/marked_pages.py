"""Pages of which a part is made: what stands between two marks is written, the rest is a person's."""


def with_part(page: str, begin: str, end: str, part: str) -> str:
    """Text of a page with a part between its marks, which stay. Raises ValueError where one is missing."""
    head, begins, below = page.partition(begin)
    _, ends, tail = below.partition(end)
    if not (begins and ends):
        raise ValueError(f"the page has no lines '{begin}' and '{end}'")
    return f"{head}{begin}{part}{end}{tail}"
