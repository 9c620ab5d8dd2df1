"""Texts derived from the classes of parameters: the schema of configurations, tables of keys, the list of options."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from tilewright.base.parameters import parameters_of
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.config import RUN_KEYS, TOP_KEYS
from tilewright.cli.main import main
from tilewright.cli.parameter_options import Given, parameter_options
from tilewright.pipeline.configuration.document import with_tables
from tilewright.pipeline.configuration.keys import FLOWS, GROUPS, KEYS, KEYS_OF
from tilewright.pipeline.configuration.schema import config_schema, parameter_schema
from tilewright.results.schedule_options import ScheduleFigureOptions

from tools.generate import AGAIN

PROJECT = Path(__file__).resolve().parents[4]
RUN = {"workload": "resnet18", "hardware": "tpu_like"}


def errors(config: Any) -> list[str]:
    """The errors that the schema finds in a configuration."""
    return [error.message for error in jsonschema.Draft202012Validator(config_schema()).iter_errors(config)]


def test_the_schema_has_all_keys() -> None:
    """The schema has the keys that the reader knows, at the top, in runs and in sweeps."""
    top = config_schema()["properties"]
    assert set(top) == set(TOP_KEYS)
    for section in ("runs", "sweeps"):
        assert set(top[section]["additionalProperties"]["properties"]) == set(RUN_KEYS)


@pytest.mark.parametrize("name", ["config.yaml", "pareto.yaml"])
def test_the_configurations_of_the_project_satisfy_the_schema(name: str) -> None:
    """The project's configurations, also those with sweeps, satisfy the schema."""
    assert errors(load_yaml(PROJECT / "config" / name).data) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"lpf_limit": 0}, {"objective": "enrgy"}, {"seed": "x"}, {"strict": 1}, {"split_W_percentage": 2},
        {"objektive": "energy"}, {"schedule_model": "casual"}, {"mode": "fussed"}, {"nb_ga_individuals": 1},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_reader_refuses(wrong: dict[str, Any]) -> None:
    """The schema refuses wrong kinds, choices, limits and unknown keys, at the top and in a run."""
    assert errors({**wrong, "runs": {"a": RUN}})
    assert errors({"runs": {"a": {**RUN, **wrong}}})


def test_values_of_sweeps_may_be_lists() -> None:
    """Values in sweeps may be lists, but not in runs."""
    swept = {**RUN, "objective": ["energy", "latency"], "hint_loops": [["OY", "all"]]}
    assert errors({"sweeps": {"s": swept}}) == []
    assert errors({"runs": {"a": swept}})


def test_every_parameter_has_a_sentence_and_a_default() -> None:
    """Every parameter has a sentence, and its default is a value that its class accepts."""
    for group in GROUPS:
        for parameter in parameters_of(group.kind):
            assert parameter.sentence.endswith("."), parameter.name
            assert replace(group.kind(), **{parameter.name: parameter.default}) == group.kind()
            jsonschema.Draft202012Validator.check_schema(parameter_schema(parameter))


def test_the_tables_of_keys_are_up_to_date() -> None:
    """config/README.md has the tables that `python -m tilewright.pipeline.configuration.document config/README.md`
    writes.
    """
    page = (PROJECT / "config" / "README.md").read_text()
    assert with_tables(page) == page, AGAIN
    with pytest.raises(ValueError, match="keys of single"):
        with_tables("")


def test_all_options_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each key of each flow is listed with the class that declares it; keys that only stages have are listed, too."""
    assert main(["options", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for flow in FLOWS:
        assert [row["name"] for row in rows if row["flow"] == flow] == list(KEYS_OF[flow])
    by_name = {(row["flow"], row["name"]): row for row in rows}
    told = by_name["multi", "share_divisor"]
    assert (told["default"], told["verbs"]) == ("4", ["allocate", "schedule"])
    assert told["class"] == "tilewright.multicore.scheduling.options.SchedulerParameters"
    assert by_name["single", "lpf_limit"]["allowed"] == "a whole number or null, from 1"
    assert not {row["name"] for row in rows if not row["flow"]} & set(KEYS)
    assert ("", "plot_hof") in by_name
    assert main(["options"]) == 0
    assert "share_divisor  (multi; allocate, schedule)" in capsys.readouterr().out


def test_what_is_not_given_has_its_default() -> None:
    """Options that are not given have their defaults; `--no-...` turns off a switch whose default is on."""
    seen: list[Any] = []

    @click.command()
    @parameter_options(ScheduleFigureOptions, "figure")
    def command(figure: Given[ScheduleFigureOptions]) -> None:
        seen.append(figure())

    command.main([], standalone_mode=False)
    command.main(["--no-plot-full-schedule"], standalone_mode=False)
    assert seen == [ScheduleFigureOptions(), ScheduleFigureOptions(plot_full_schedule=False)]
