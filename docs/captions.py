"""Write the captions of the files of runs in the report of the workflow: `python -m docs.captions`.

The caption of a file is the `content` of its row in `base/report_files.py`. Captions of other files are written by
hand, in `workflow/report`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tilewright.base.report_files import ONE_CORE_FILES, SEVERAL_CORES_FILES, ReportFile, caption_name
from tilewright.base.steps import MULTI, SINGLE

FOLDER = Path(__file__).resolve().parents[1] / "workflow" / "report" / "files"
RUN = "Run: {{ snakemake.wildcards.run }}."
"""Line of a caption in which Snakemake writes the name of the run."""


def captions() -> Mapping[str, str]:
    """Text of each caption, by the name of its file."""
    rows = [(SINGLE, file) for file in ONE_CORE_FILES] + [(MULTI, file) for file in SEVERAL_CORES_FILES]
    return {caption_name(flow, file): _caption(file) for flow, file in rows if file.shows}


def _caption(file: ReportFile) -> str:
    """Caption of a file in reStructuredText: its content without links to pages, then the name of the run."""
    text = re.sub(r" \(\[[^]]*\]\([^)]*\)\)", "", file.content)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "``")
    return f"{text[0].upper()}{text[1:]}.\n\n{RUN}\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.rst"):
        path.unlink()
    for name, text in captions().items():
        (FOLDER / name).write_text(text, "utf-8")
