"""Writer of the table of operators in docs/operators.md: `python -m tilewright.workload.onnx.document`."""

from collections import defaultdict
from pathlib import Path
from sys import modules

from tilewright.base.harmless import markdown
from tilewright.workload.onnx.lowering import registered_operators
from tilewright.workload.onnx.operators import register_operators

_HEADING, _NEXT = "### Operators\n", "## The parsed workload\n"


def operator_table() -> str:
    """Table in Markdown with one row for each family of operators: the description of the family, and its operators.

    An operator that is not in the standard domain is listed with its domain.
    """
    register_operators()
    families: dict[str, list[str]] = defaultdict(list)
    for (domain, operator_type), function in registered_operators().items():
        families[function.__module__].append(f"{domain}::{operator_type}" if domain else operator_type)
    rows = ["| family | operators |", "|---|---|"]
    for module, names in sorted(families.items()):
        told = " ".join((modules[module].__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
        listed = ", ".join(sorted(names, key=lambda name: ("::" in name, name)))
        rows.append(f"| {markdown(told, is_marked=True)} | {markdown(listed)} |")
    return "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """Copy of the text `page` of docs/operators.md, with the table of operators replaced by the result of
    `operator_table`.
    """
    before, rest = page.split(_HEADING, 1)
    _, after = rest.split(_NEXT, 1)
    return f"{before}{_HEADING}\n{operator_table()}\n{_NEXT}{after}"


if __name__ == "__main__":
    path = Path("docs/operators.md")
    path.write_text(with_table(path.read_text("utf-8")), "utf-8")
