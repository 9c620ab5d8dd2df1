"""The documentation: links lead somewhere, examples run, and what it lists is what the code has."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.profile import SWITCHES
from tilewright.report.access_checks import CORE_CHECKS
from tilewright.report.checks import RECORD_CHECKS
from tilewright.report.tables import layer_table, summary_table
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.stages.run import map_workload
from tilewright.workload.onnx.document import with_table
from tilewright.workload.yaml_reader import read_workload_yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLE = {
    "id": 0,
    "name": "example",
    "operator_type": "Conv",
    "equation": "O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
    "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
    "loop_sizes": [1, 64, 48, 6, 6, 3, 3],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "operand_source": {"W": 0, "I": 0},
    "pr_loop_dims": ["IX", "IY"],
    "padding": [[1, 1], [1, 1]],
}


def load_checker():
    """docs/check_docs.py as a module."""
    spec = importlib.util.spec_from_file_location("check_docs", DOCS / "check_docs.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_docs"] = module
    spec.loader.exec_module(module)
    return module


check_docs = load_checker()
PAGES = check_docs.pages()


def read(name):
    """The text of a page."""
    return (DOCS / name).read_text("utf-8")


@pytest.fixture(scope="module")
def run():
    """The records and the summary of a network of one layer."""
    workload, core = read_workload_yaml([EXAMPLE]), read_accelerator(ROOT / "config/hardware/tpu_like.yaml").cores[0]
    return map_workload(workload, core, read_mapping(ROOT / "config/mapping/tpu_like.yaml"), SearchOptions(lpf_limit=1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    """Every relative link of a page is a file, and its anchor a heading, that exist."""
    assert check_docs.broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_examples_run(page):
    """Every block marked to run ends with exit code 0."""
    assert check_docs.run_blocks(page) == []


def test_every_switch_is_explained_in_order():
    """The switches section has a heading for each switch of the model profile, in documentation order."""
    section = read("model.md").split("\n## Switches\n")[1].split("\n## ")[0]
    assert tuple(re.findall(r"^### (\w+)$", section, re.MULTILINE)) == SWITCHES
    assert section.count("*Effect:*") == len(SWITCHES)


def test_worked_example_has_the_figures_of_the_model():
    """The table of the worked example is what the model computes, for each profile that it lists."""
    core = read_accelerator(ROOT / "config/hardware/tpu_like.yaml").cores[0]
    layer = next(node.layer for node in read_workload_yaml([EXAMPLE]).nodes)
    links = (("O", "O"), ("W", "I2"), ("I", "I1"))
    unrolling = (("D1", (("K", 32),)), ("D2", (("C", 32),)))
    order = (("OX", 6), ("OY", 6), ("FX", 3), ("FY", 3), ("C", 2), ("K", 2))
    rows = re.findall(
        r"^\| `((?:zigzag|corrected)[^`]*)` \| ([0-9.]+) \| ([0-9.]+) \|$", read("model.md"), re.MULTILINE
    )
    assert len(rows) == len(SWITCHES) + 2
    for model, energy_pj, latency_cycles in rows:
        record = evaluate(layer, core, links, unrolling, order, SearchOptions(model=model))
        assert (record["energy_pj"], record["latency_cycles"]) == (float(energy_pj), float(latency_cycles)), model


def documented_fields(heading):
    """The fields in the first column of the table under a heading of artifacts.md."""
    section = read("artifacts.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_field_of_a_record_is_documented(run):
    """docs/artifacts.md lists the fields of a record and of a summary, all of them and no others."""
    assert sorted(documented_fields("layers.jsonl")) == sorted(run.records[0])
    assert sorted(documented_fields("summary.json")) == sorted(run.summary)


def test_every_check_is_documented():
    """docs/artifacts.md lists the checks that there are."""
    names = [name for name, _, _ in (*RECORD_CHECKS, *CORE_CHECKS)] + ["layers_add_up_to_network"]
    assert documented_fields("checks.json") == names


def test_every_column_is_documented(run):
    """docs/artifacts.md lists the columns of both tables in their order."""
    text = read("artifacts.md")
    for start, end, table in (
        ("Columns of `layers.csv`:", "\n## ", layer_table(run.records, run.summary)),
        ("One row per run:", "\n## ", summary_table({"run": run.summary})),
    ):
        names = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", text.split(start)[1].split(end)[0]))
        assert names == list(table)


def test_a_broken_link_is_found(tmp_path):
    """Missing files and headings are named with their line; links in code and to the web are left alone."""
    (tmp_path / "other.md").write_text("# A `code` heading\n## Twice\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-code-heading) [b](other.md#twice-1) [c](https://example.org/x) `[d](none.md)`\n"
        "[e](none.md)\n[f](other.md#none)\n```text\n[g](none.md)\n```\n"
    )
    assert [text.split(": ")[0] for text in check_docs.broken_links(page)] == ["page.md:2", "page.md:3"]


def test_a_failing_example_is_found(tmp_path):
    """A marked block that fails is reported with its line and output, an unmarked one is not run."""
    page = tmp_path / "page.md"
    page.write_text("```bash\nexit 1\n```\n\n```bash run\necho here; false | true\n```\n")
    (failure,) = check_docs.run_blocks(page)
    assert failure.startswith("page.md:5: exit code 1")
    assert failure.endswith("here")


def test_an_unclosed_block_is_refused():
    """What follows would silently not be checked."""
    with pytest.raises(ValueError, match="line 2"):
        list(check_docs.blocks("text\n```bash run\nls\n"))


def test_operators_are_those_of_the_front_end():
    """The table of ONNX operators is the one that `python -m tilewright.workload.onnx.document` writes."""
    page = read("onnx.md")
    assert with_table(page) == page
