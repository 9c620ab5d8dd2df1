"""JSON in one text form: keys in the order that the code gives, shortest exact floats.

Two equal results are equal bytes, on every machine and with any hash seed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

JsonValue = Mapping[str, Any] | Sequence[Any] | str | int | float | bool | None


def canonical_text(value: JsonValue) -> str:
    """`value` on one line without blanks: the text that is digested and the form of a row.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def document_text(value: JsonValue) -> str:
    """`value` indented for people, with a newline at the end: the form of a single-object artifact."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
