"""The one text form of JSON that tilewright writes: keys in the order that the code gives, shortest exact floats.

Two equal results are equal bytes, on every machine and with any hash seed.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
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


def write_atomically(path: Path | str, content: str | bytes) -> None:
    """Write a file under a temporary name beside it, then rename: a reader sees the old file or the new one."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
