"""The table of steps agrees with the rules, pages and stages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tilewright.base import report_files
from tilewright.base.artifacts.step_code import CODE_OF
from tilewright.base.report_files import names_of
from tilewright.base.steps import MULTI, SINGLE, STEPS, artifacts
from tilewright.cli.main import VERBS
from tilewright.pipeline.stages.catalogue import CATALOGUES

from docs.check_docs import text_of

PROJECT = Path(__file__).resolve().parents[3]
RULES = {
    name: body
    for file in sorted((PROJECT / "workflow" / "rules").glob("*.smk"))
    for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", file.read_text(), re.MULTILINE | re.DOTALL)
}
"""Maps a rule to its text."""
OTHER_NAMES = {"parse_core": "parse_hardware", "summary": "summarize"}
"""Maps a rule to its step if the two have different names."""


def step_of(rule: str) -> str:
    """Return the step that a rule runs."""
    names = (rule, rule.removesuffix("_single"), rule.removesuffix("_multi"), rule.partition("_")[0])
    return next((name for name in names if name in STEPS), OTHER_NAMES.get(rule, ""))


def files(rule: str, section: str) -> set[str]:
    """Return the files of results that the input or output of a rule names, below the folder of its step."""
    text = re.search(rf"^    {section}:\n(.*?)(?=^    \w)", RULES[rule], re.MULTILINE | re.DOTALL)
    folder = STEPS[step_of(rule)].folder + "/"
    found = re.findall(r'"<results>/([^"]+)"', text[1] if text else "")
    found += [
        f"{folder}report/{name}"
        for rows, part in re.findall(r"of_part\((\w+_FILES), (\w+)\)", text[1] if text else "")
        for name in names_of(getattr(report_files, rows), getattr(report_files, part))
    ]
    return {
        path.replace("{{", "{").replace("}}", "}").removeprefix(folder) for path in found if folder in f"./{path}"
    } | {"cost/{core}.jsonl" for _ in re.findall(r"=made\(cost_tables,", text[1] if text else "")}


def test_every_step_has_a_rule_a_verb_and_code() -> None:
    """Each step has a rule, a verb and code, and no table has further steps."""
    assert {step_of(rule) for rule in RULES if step_of(rule)} == set(STEPS)
    assert {step.verb for step in STEPS.values()} <= set(VERBS)
    assert set(STEPS) - {"parse_split"} == set(CODE_OF) - {"export", "explore_systems", "multi_pipeline", "tokens"}


@pytest.mark.parametrize("step", STEPS)
def test_rules_read_and_write_what_the_table_says(step: str) -> None:
    """The rules of a step read and write the files that the table of steps lists."""
    rules = [rule for rule in RULES if step_of(rule) == step]
    written = set().union(*(files(rule, "output") for rule in rules))
    read = set().union(*(files(rule, "input") for rule in rules))
    named = {path for path in written if "{stage}" not in path}
    assert named == set(STEPS[step].writes)
    assert read == set(STEPS[step].reads) or not STEPS[step].folder.startswith((SINGLE, MULTI))


def test_the_page_of_artifacts_names_every_file() -> None:
    """The pages on artifacts name every file of a step."""
    page = text_of("artifacts")
    for step in STEPS.values():
        for path in step.writes:
            place = (
                path.replace("{core}", "<core>")
                .replace("{workload}", "<workload>")
                .replace("{shard}", "<shard>")
                .replace("{part}", "<part>")
            )
            assert place in page or path.startswith("report/"), path


def test_stages_of_steps_are_in_the_catalogue() -> None:
    """The catalogue has each stage of a step under its name."""
    for step in STEPS.values():
        assert set(step.stages) <= set(CATALOGUES[MULTI].names)


def test_artifacts_of_runs() -> None:
    """The artifacts of a run are its targets in the workflow."""
    assert {"layers.jsonl", "summary.json", "checks.json"} <= set(artifacts(SINGLE))
    assert not any("/" in name for name in artifacts(SINGLE))
    assert "allocation.json" in artifacts(MULTI)
    assert "split.onnx" not in artifacts(MULTI)


def test_the_table_imports_nothing_heavy() -> None:
    """The table of steps imports no heavy library, because the Snakefile reads it at every parse."""
    code = (
        "import sys, tilewright.base.steps; print([m for m in sys.modules if m.startswith(('numpy', 'yaml', 'click'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
