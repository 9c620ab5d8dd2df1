"""Generator for the catalogue of stages in the documentation.

`python -m tilewright.pipeline.stages.document docs/stages` makes the two catalogues in this folder from the code of the
stages. The text between two comments of a page is replaced. The command also copies example files of the project into
the blocks of the pages that name these files.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.harmless import markdown
from tilewright.base.parameters import field_docs
from tilewright.base.stage_table import STAGES
from tilewright.base.steps import MULTI, SINGLE
from tilewright.pipeline.stages.base import Same, Stage, Types, type_name
from tilewright.pipeline.stages.catalogue import CATALOGUES, Catalogue
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import (
    CandidateTally,
    Evaluations,
    LayerProblem,
    LayerRecord,
    MappedWorkload,
    SpatialCandidate,
    TemporalProblem,
)
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.result import MultiCoreResult
from tilewright.pipeline.stages.multi.run import MultiCoreProblem
from tilewright.search.batch import CostedBatch, OrderBatch

BEGIN, END = "<!-- catalogue: made by tilewright.pipeline.stages.document -->", "<!-- end of the catalogue -->"
MULTI_BEGIN = "<!-- catalogue of the multi-core flow: made by tilewright.pipeline.stages.document -->"
MULTI_END = "<!-- end of the catalogue of the multi-core flow -->"
SHOWN_FILE = re.compile(r"(<!-- file: (\S+) -->\n```python\n).*?```\n", re.DOTALL)
"""Pattern of a block that shows a file of the project. Group 1 is the text of the block before the content of the file;
group 2 is the path of the file.
"""


def _groups(flow: str, without: str = "") -> dict[str, tuple[str, ...]]:
    """Names of the stages of a flow, by heading. Stages that also belong to the flow `without` are left out."""
    listed = [stage for stage in STAGES if flow in stage.flows and without not in stage.flows]
    headings = dict.fromkeys(stage.heading for stage in listed)
    return {heading: tuple(stage.name for stage in listed if stage.heading == heading) for heading in headings}


GROUPS = _groups(SINGLE)
"""Names of the stages of the single-core flow, by heading on the page."""
MULTI_GROUPS = _groups(MULTI, without=SINGLE)
"""Names of the stages of the multi-core flow, by heading on the page. Stages that both flows have, such as
AcceleratorParser, are left out.
"""


@dataclass(frozen=True)
class PagePart:
    """Part of a page in docs/stages that is generated from the code: the stages of one flow."""

    page: str
    """Name of the page."""
    begin: str
    end: str
    catalogue: Catalogue
    groups: Mapping[str, tuple[str, ...]]
    types: Mapping[str, tuple[type, ...]]
    """Types of the items and results of these stages, by heading on the page."""
    other_tool: str
    """Name of the tool whose stages correspond to the stages of this part, such as zigzag-dse."""

    def text(self) -> str:
        """Markdown text of all stages, then of the types of their items and results."""
        parts = []
        for heading, names in self.groups.items():
            parts.append(f"## {heading}")
            parts += [stage_text(self.catalogue.stage_class(name), self.other_tool) for name in names]
        for heading, kinds in self.types.items():
            parts.append(f"## {heading}")
            parts += [type_text(kind) for kind in kinds]
        return "\n\n".join(parts) + "\n"


PARTS = (
    PagePart(
        "catalogue.md",
        BEGIN,
        END,
        CATALOGUES[SINGLE],
        GROUPS,
        {
            "What flows down": (
                *(Descriptions, NetworkProblem, LayerProblem, SpatialCandidate, TemporalProblem, OrderBatch),
            ),
            "What comes back up": (Evaluations, CostedBatch, CandidateTally, LayerRecord, MappedWorkload),
        },
        "zigzag-dse",
    ),
    PagePart(
        "multi-core-catalogue.md",
        MULTI_BEGIN,
        MULTI_END,
        CATALOGUES[MULTI],
        MULTI_GROUPS,
        {
            "What flows down to the cores": (SystemProblem, CnProblem, CostedCnProblem, MultiCoreProblem),
            "What comes back up from the cores": (MultiCoreResult,),
        },
        "Stream",
    ),
)


def stage_text(kind: type[Stage], other_tool: str) -> str:
    """Markdown section on one stage. `other_tool` is the name of the tool with a corresponding stage."""
    words, _ = docstring_parts(kind)
    rows = [
        f"| takes, gives | {_down(kind)} |",
        f"| collects, returns | {_up(kind)} |",
        f"| in {other_tool} | {kind.stands_for or 'none'} |",
    ]
    text = f"### {kind.name()}\n\n{words}\n\n| | |\n|---|---|\n" + "\n".join(rows)
    parameters = [
        f"| `{field.name}` | {_default(field)} | {meaning} |"
        for field in fields(kind)
        for meaning in [_cell(field_docs(kind).get(field.name, ""))]
    ]
    if parameters:
        text += "\n\n| parameter | default | meaning |\n|---|---|---|\n" + "\n".join(parameters)
    return f"{text}\n\n```yaml\npipeline:\n{example_yaml(kind)}\n```"


def _down(kind: type[Stage]) -> str:
    if kind.gives is None:
        return f"{_code(kind.takes)}, nothing: it ends a pipeline"
    if kind.gives is Same:
        return "anything, the same" if kind.takes is object else f"{_code(kind.takes)}, the same"
    return f"{_code(kind.takes)}, {_code(kind.gives)}"


def _up(kind: type[Stage]) -> str:
    if kind.gives is None:
        return f"nothing, {_code(kind.returns)}"
    if kind.returns is Same:
        return "anything, the same" if kind.collects is object else f"{_code(kind.collects)}, the same"
    return f"{'anything' if kind.collects is object else _code(kind.collects)}, {_code(kind.returns)}"


def _code(types: Types) -> str:
    return " or ".join(f"`{type_name(one)}`" for one in (types if isinstance(types, tuple) else (types,)))


def _default(field: Any) -> str:
    if field.default is not MISSING:
        return f"`{canonical_text(encode(field.default))}`"
    return "required" if field.default_factory is MISSING else ""


def _cell(text: str) -> str:
    return markdown(" ".join(text.split()), is_marked=True)


def type_text(kind: type) -> str:
    """Markdown section on one type, with its docstring and its fields."""
    words = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    documented = field_docs(kind)
    rows = [f"| `{name}` | {_cell(documented.get(name, ''))} |" for name in _field_names(kind)]
    table = "\n\n| field | meaning |\n|---|---|\n" + "\n".join(rows) if rows else ""
    return f"### {kind.__name__}\n\n{words}{table}"


def _field_names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)] if hasattr(kind, "__dataclass_fields__") else []


def docstring_parts(kind: type) -> tuple[str, str]:
    """Pair (text of a stage's docstring without the example, example as YAML). The example is an edit or a list of
    stages.
    """
    words, _, example = inspect.cleandoc(kind.__doc__ or "").partition("\nExample:")
    return words.strip(), " ".join(example.split())


def example_yaml(kind: type[Stage]) -> str:
    """Example of a stage, as YAML text for the key `pipeline`."""
    _, example = docstring_parts(kind)
    if example.startswith("["):
        return "\n".join(textwrap.wrap(example, 100, initial_indent="  ", subsequent_indent="   "))
    return f"  - {example}"


def with_catalogue(page: str, name: str, project: Path = Path()) -> str:
    """Text of the page `name` in docs/stages, in which the catalogue and the shown files are up to date. A catalogue is
    the text between two comments; it is replaced by the text made from the code. A block that shows a file of the
    folder `project` gets the content of this file.

    Raises ValueError if a comment of the catalogue of this page is missing.
    """
    for part in PARTS:
        if part.page == name:
            page = with_part(page, part.begin, part.end, f"\n\n{part.text()}\n")
    return SHOWN_FILE.sub(lambda found: found[1] + (project / found[2]).read_text() + "```\n", page)


if __name__ == "__main__":
    for path in sorted(Path(sys.argv[1]).glob("*.md")):
        path.write_text(with_catalogue(path.read_text(), path.name))
