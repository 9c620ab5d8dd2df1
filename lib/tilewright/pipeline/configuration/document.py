"""Tables of keys in config/README.md, generated from the classes that declare the keys as parameters.

`python -m tilewright.pipeline.configuration.document config/README.md` writes each table between two comments of the
page.
"""

import sys
from pathlib import Path

from tilewright.base.artifacts.marked_pages import with_part
from tilewright.base.harmless import markdown
from tilewright.base.parameters import Parameter
from tilewright.base.steps import MULTI, SINGLE
from tilewright.pipeline.configuration.arguments import default_text
from tilewright.pipeline.configuration.keys import KEYS, KEYS_OF, SETTINGS

HEADS = {SINGLE: "key of a run", MULTI: "key of a run with `flow: multi`"}


def table_of_keys(flow: str) -> str:
    """Table of the keys of a flow. The table of SINGLE has the keys of runs on one core. The table of MULTI has only
    the keys that runs on one core do not have.
    """
    own = [KEYS[key] for key in (KEYS_OF[SINGLE] if flow == SINGLE else SETTINGS)]
    rows = [f"| `{one.name}` | {_cell(one.sentence)} | {_default(one)} |" for one in own]
    return "\n".join([f"| {HEADS[flow]} | meaning | default |", "|---|---|---|", *rows])


def _default(parameter: Parameter) -> str:
    texts = {KEYS_OF[flow][parameter.name].default for flow in (SINGLE, MULTI) if parameter.name in KEYS_OF[flow]}
    if len(texts) == 1:
        return f"`{default_text(parameter)}`"
    return f"`{KEYS_OF[SINGLE][parameter.name].default}`; several cores: `{KEYS_OF[MULTI][parameter.name].default}`"


def _cell(text: str) -> str:
    return markdown(text, is_marked=True)


def with_tables(page: str) -> str:
    """Text of a page with current tables of keys. The table of each flow replaces the text between the two comments of
    this flow. Raises ValueError if a comment is missing.
    """
    for flow in (SINGLE, MULTI):
        begin, end = (
            f"<!-- keys of {flow}: made by tilewright.pipeline.configuration.document -->",
            f"<!-- end of keys of {flow} -->",
        )
        page = with_part(page, begin, end, f"\n\n{table_of_keys(flow)}\n\n")
    return page


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_tables(Path(name).read_text()))
