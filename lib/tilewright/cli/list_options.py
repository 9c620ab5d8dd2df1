"""`tilewright options`: list of all parameters with their defaults, limits, meanings and declaring classes."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any

from tilewright.base.parameters import Parameter, allowed_text, parameters_of
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo
from tilewright.cli.verb import verb
from tilewright.pipeline.configuration.arguments import default_text, flag_of
from tilewright.pipeline.configuration.keys import FLOWS, KEYS, KEYS_OF, groups_of


def _show(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        place = f"{row['flow']}; {', '.join(row['verbs']) or 'workflow only'}" if row["flow"] else "only in pipelines"
        echo(f"{row['name']}  ({place})")
        echo(f"    {row['sentence']}")
        default = "required" if row["default"] is None else f"default {row['default']}"
        echo(f"    {default}; allowed: {row['allowed']}; declared by {row['class']}")


@verb(
    """List all options of configurations, verbs and stages.

    Example: tilewright options --json
    """,
    show=_show,
)
def options() -> list[dict[str, Any]]:
    """Parameters of configurations, verbs and stages, as rows: first the keys of each flow, then the parameters that
    only pipeline stages have.
    """
    return [*(_of_runs(flow, parameter) for flow in FLOWS for parameter in KEYS_OF[flow].values()), *_of_stages()]


def _of_runs(flow: str, parameter: Parameter) -> dict[str, Any]:
    """Row in the list of options for a parameter that runs of the flow `flow` can set."""
    verbs = [verb for group in groups_of(flow) if parameter.name in group.names for verb in group.verbs]
    return _row(parameter, flow, list(dict.fromkeys(verbs))) | {"option": flag_of(parameter)}


def _of_stages() -> list[dict[str, Any]]:
    """Rows for parameters that only stages have. A user sets them in a pipeline."""
    from tilewright.pipeline.stages.catalogue import CATALOGUES

    kinds = {catalogue.stage_class(name) for catalogue in CATALOGUES.values() for name in catalogue.names}
    own = [one for kind in kinds for one in parameters_of(kind) if one.name not in KEYS]
    found = {(one.owner.__name__, one.name): one for one in own}
    return [_row(found[place], "", []) for place in sorted(found)]


def _row(parameter: Parameter, flow: str, verbs: list[str]) -> dict[str, Any]:
    owner = parameter.owner
    return {
        "name": parameter.name,
        "flow": flow,
        "verbs": verbs,
        "default": None if parameter.default is MISSING else default_text(parameter),
        "allowed": allowed_text(parameter),
        "sentence": parameter.sentence,
        "class": f"{owner.__module__}.{owner.__qualname__}",
    }
