"""The check of notebooks finds changed texts; pictures may differ."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from docs.check_notebooks import LARGEST_BYTES, differences, notebooks, said


def notebook(*outputs: Any) -> Any:
    """A notebook of one cell with these outputs."""
    return new_notebook(cells=[new_code_cell("1", outputs=list(outputs))])


def printed(text: str) -> Any:
    """The output of `print`."""
    return new_output("stream", name="stdout", text=text)


def drawn(picture: str) -> Any:
    """A picture, with a text beside it."""
    return new_output("display_data", data={"image/png": picture, "text/plain": "<Figure>"})


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ([printed("1 cycle\n2 cycles\n")], []),
        ([printed("1 cycle\n"), printed("2 cycles\n")], []),
        ([printed("1 cycle\n3 cycles\n")], ["n.ipynb: cell 1 prints '3 cycles', but the file has '2 cycles'"]),
        ([printed("1 cycle\n")], ["n.ipynb: cell 1 prints 'nothing', but the file has '2 cycles'"]),
        ([printed("1 cycle\n2 cycles\nmore\n")], ["n.ipynb: cell 1 prints 'more', but the file has 'nothing'"]),
    ],
)
def test_another_number_is_told(now: Sequence[Any], told: list[str]) -> None:
    """A changed number is reported with its cell and line, however the text is divided into outputs."""
    kept = notebook(printed("1 cycle\n2 cycles\n"))
    assert list(differences(Path("n.ipynb"), kept, notebook(*now))) == told


def test_another_picture_is_not_told() -> None:
    """A changed picture is not reported, because fonts differ between machines."""
    assert list(differences(Path("n.ipynb"), notebook(drawn("a")), notebook(drawn("b")))) == []


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.name)
def test_kept_notebooks_were_executed(path: Path) -> None:
    """Every cell of a kept notebook was executed in order without errors or warnings, and the file is small."""
    kept = nbformat.read(path, as_version=4)
    cells = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert {output.output_type for cell in cells for output in cell.outputs} <= {
        "stream",
        "execute_result",
        "display_data",
    }
    assert "stderr" not in {name for cell in cells for name, _ in said(cell)}
    assert path.stat().st_size <= LARGEST_BYTES
