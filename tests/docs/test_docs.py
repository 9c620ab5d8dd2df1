"""The documentation: links lead somewhere, examples run, and its lists equal the code."""

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.profile import SWITCHES
from tilewright.cost.record import record_row
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.checks import CORE_CHECKS, RECORD_CHECKS
from tilewright.results.pareto import COLUMNS
from tilewright.results.run_columns import run_row
from tilewright.results.run_tables import multi_text
from tilewright.results.tables import runs_legend, summary_text
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.onnx.document import with_table
from tilewright.workload.yaml_reader import read_workload_yaml

from docs.captions import FOLDER, captions
from docs.columns import PARTS, TABLES, with_parts
from docs.rooms import WITH_ROOMS, with_rooms
from tools.generate import AGAIN

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
LONG_TOPICS = (
    *("README", "first-ten-minutes", "bottlenecks", "artifacts", "accelerators", "mappings", "tutorials"),
    *("multi-core-model", "compare", "migrate", "multi-core", "stages"),
    *("model", "networks", "tiles"),
)


def topic(page):
    """Return the name of a page, or the name of its folder in docs/."""
    return (page.relative_to(DOCS).parts[0] if page.is_relative_to(DOCS) else page.name).removesuffix(".md")


QUICK_PAGES = [page for page in PAGES if topic(page) not in LONG_TOPICS]
"""Pages whose examples run quickly. Pages of long topics take 4 seconds to a minute of CPU time; `make docs` runs
all pages."""


def read(name):
    """The text of a page."""
    return (DOCS / name).read_text("utf-8")


@pytest.fixture(scope="module")
def run():
    """Records and summary of a network of one layer on a core without a clock, which would add further fields."""
    core = replace(read_accelerator(ROOT / "config/hardware/zigzag/tpu_like.yaml").cores[0], clock_frequency_mhz=0.0)
    return map_workload(
        read_workload_yaml([EXAMPLE]),
        core,
        read_mapping(ROOT / "config/mapping/zigzag/tpu_like.yaml"),
        SearchOptions(lpf_limit=1),
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Every relative link of a page leads to an existing file and heading."""
    assert check_docs.broken_links(page) == []


@pytest.mark.parametrize("page", QUICK_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page):
    """Every block that is marked to run ends with exit code 0."""
    assert check_docs.run_blocks(page) == []


def test_shares_in_the_prose_stand_in_an_output():
    """Each percentage with a decimal in the text of the first page is in a quoted output of this page."""
    page = read("first-ten-minutes.md")
    outputs = "".join(re.findall(r"<!-- output -->\n```text\n(.*?)```", page, re.DOTALL))
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    told = re.findall(r"(\d+\.\d+) %", prose)
    assert told
    assert [one for one in told if f"{one}%" not in outputs] == []


def test_every_switch_is_explained_in_order():
    """The pages on switches have a heading for each switch of the model profile, in documentation order."""
    pages = "\n".join(read(f"model/{name}.md") for name in ("switches", "switches-ports", "switches-memories"))
    assert tuple(re.findall(r"^## (\w+)$", pages, re.MULTILINE)) == SWITCHES
    assert pages.count("*Effect:*") == len(SWITCHES)


def test_worked_example_has_the_figures_of_the_model():
    """The worked example has the figures that the model computes, for each listed profile."""
    core = read_accelerator(ROOT / "config/hardware/zigzag/tpu_like.yaml").cores[0]
    layer = next(node.layer for node in read_workload_yaml([EXAMPLE]).nodes)
    links = (("O", "O"), ("W", "I2"), ("I", "I1"))
    unrolling = (("D1", (("K", 32),)), ("D2", (("C", 32),)))
    order = (("OX", 6), ("OY", 6), ("FX", 3), ("FY", 3), ("C", 2), ("K", 2))
    rows = re.findall(
        r"^\| `((?:zigzag|corrected)[^`]*)` \| ([0-9.]+) \| ([0-9.]+) \|$", read("model/guarantees.md"), re.MULTILINE
    )
    assert len(rows) == len(SWITCHES) + 2
    for model, energy_pj, latency_cycles in rows:
        record = evaluate(layer, core, links, unrolling, order, SearchOptions(model=model))
        assert (record.energy_pj, record.latency_cycles) == (float(energy_pj), float(latency_cycles)), model


def documented_fields(heading):
    """The fields in the first column of the table under a heading of the pages on artifacts."""
    section = re.split(r"\n##? ", check_docs.text_of("artifacts").split(f"\n## {heading}\n")[1])[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_field_of_a_record_is_documented(run):
    """docs/artifacts/records.md lists the fields of a record and of a summary, all of them and no others."""
    assert sorted(documented_fields("layers.jsonl")) == sorted(record_row(run.records[0]))
    assert sorted(documented_fields("summary.json")) == sorted(run.summary)


def test_every_check_is_documented():
    """docs/artifacts/records.md lists all checks."""
    names = [name for name, _, _ in (*RECORD_CHECKS, *CORE_CHECKS)] + ["layers_add_up_to_network"]
    assert documented_fields("checks.json") == names


def test_a_broken_link_is_found(tmp_path):
    """Missing files and headings are named with their line; links in code and to the web are not checked."""
    (tmp_path / "other.md").write_text("# A `code` heading\n## Twice\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-code-heading) [b](other.md#twice-1) [c](https://example.org/x) `[d](none.md)`\n"
        "[e](none.md)\n[f](other.md#none)\n```text\n[g](none.md)\n```\n"
    )
    assert [text.split(": ")[0] for text in check_docs.broken_links(page)] == ["page.md:2", "page.md:3"]


def test_short_pages_are_listed_by_their_overview():
    """The overview of a topic links to each page of the topic."""
    for overview in DOCS.glob("*.md"):
        text = overview.read_text("utf-8")
        parts = sorted((DOCS / overview.stem).glob("*.md"))
        assert [str(path) for path in parts if f"]({overview.stem}/{path.name})" not in text] == []


def test_mentions_of_pages_lead_somewhere():
    """Code, messages and files that name a page, or a heading of a page, name one that exists."""
    named = re.compile(r"(?<![\w/.])docs/((?:[\w-]+/)?[\w-]+\.md)(?:#([\w-]+))?")
    places = [
        path for name in ("lib", "config", "benchmarks", "tools", "workflow") for path in (ROOT / name).rglob("*")
    ]
    texts = {path: path.read_text("utf-8") for path in places if path.suffix in (".py", ".md", ".yaml", ".yml", ".smk")}
    found = {(path, *pair) for path, text in texts.items() for pair in named.findall(text)}
    anchors = {page: check_docs.anchors(read(page)) | {""} for _, page, _ in found if (DOCS / page).is_file()}
    assert [one for one in sorted(found) if one[2] not in anchors.get(one[1], ())] == []


def test_a_failing_example_is_found(tmp_path):
    """A marked block that fails is reported with its line and output; an unmarked one is not run."""
    page = tmp_path / "page.md"
    page.write_text("```bash\nexit 1\n```\n\n```bash run\necho here; false | true\n```\n")
    (failure,) = check_docs.run_blocks(page)
    assert failure.startswith("page.md:5: exit code 1")
    assert failure.endswith("here")


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("one\ntwo", ""),
        ("two\n...\n four", ""),
        ("one\n four", " four"),
        ("two\none", "one"),
        ("two\n...\none", "one"),
        ("One", "One"),
    ],
)
def test_what_an_example_says_is_what_is_shown(tmp_path, shown, missing):
    """The output must contain the lines shown on the page, in their order; dots stand for any other lines."""
    page = tmp_path / "page.md"
    page.write_text(
        "```bash run\nprintf 'one\\ntwo  \\n\\nthree\\n four\\n'\n```\n\n```text\nnot checked\n```\n\n"
        f"<!-- output -->\n```text\n{shown}\n```\n"
    )
    told = f"page.md:10: the example does not print, here and in this order: {missing}"
    assert check_docs.run_blocks(page) == ([told] if missing else [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_results_are_compared_or_marked(page):
    """A block of text is the output of an executed block, is made by a program, or says why it is not compared."""
    assert check_docs.unmarked_blocks(page) == []


def test_an_unmarked_block_is_found(tmp_path):
    """An unmarked block is found with its line; code, marked blocks and outputs are not."""
    page = tmp_path / "page.md"
    excused = ["<!-- output -->", "<!-- not compared: a sketch -->", "<!-- sample x: made by y -->", "<!-- other -->"]
    page.write_text("```yaml\na: 1\n```\n" + "".join(f"\n{mark}\n```text\n1\n```\n" for mark in excused))
    assert [text.split(": ")[0] for text in check_docs.unmarked_blocks(page)] == ["page.md:21"]


def test_an_unclosed_block_is_refused():
    """An unclosed block is refused, because the text after it would not be checked."""
    with pytest.raises(ValueError, match="line 2"):
        list(check_docs.blocks("text\n```bash run\nls\n"))


def test_operators_are_those_of_the_front_end():
    """The table of ONNX operators is the one that `python -m tilewright.workload.onnx.document` writes."""
    page = read("operators.md")
    assert with_table(page) == page, AGAIN


def headings(text):
    """The words in the heading of a printed table: the text between an empty line and the ruled line below it."""
    above = text.split("───")[0].rsplit("\n\n", 1)[-1]
    return sorted(above.split())


@pytest.mark.parametrize("name", ["index.md", "many-runs.md", "multi-core/run.md", "../README.md"])
def test_sample_tables_have_the_columns_that_there_are(name, run):
    """A sample of the output of `make run` has the headings of a printed table, and the lines below it are its
    legend.
    """
    clocks = {f"{mhz} MHz": run.summary | {"clock_frequency_mhz": mhz, "latency_s": 1 / mhz} for mhz in (200, 700)}
    single, multi = summary_text(clocks), multi_text({})
    legend = runs_legend([run_row("r", run.summary)], [])
    samples = [block.text for block in check_docs.blocks(read(name)) if " run " in block.text and "───" in block.text]
    assert [text for text in samples if headings(text) not in (headings(single), headings(multi))] == []
    assert len(samples) == (2 if name == "many-runs.md" else 0)
    told = {line for text in samples for line in text.splitlines() if re.match(r"  [a-zA-Z ,]+: ", line)}
    named = {line.split(":")[0] for line in legend.splitlines() if line[2] != " "}
    assert {line.split(":")[0] for line in told} == (named if told else set())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "config" / "README.md"], ids=lambda page: page.name)
def test_tables_are_whole(page):
    """No table is divided by an empty line, and all its rows have the width of the heading."""
    assert check_docs.broken_tables(page) == []


def test_a_broken_table_is_found(tmp_path):
    """An empty line in a table and a row with an additional cell are found; `|` in code and in blocks is text."""
    page = tmp_path / "page.md"
    whole = "| a | b |\n|---|---|\n| 1 | `x|y` |\n"
    page.write_text(whole + "\n```text\n| 1 |\n```\n")
    assert check_docs.broken_tables(page) == []
    page.write_text(whole + "\n| 2 | 3 |\n| 4 | 5 | 6 |\n")
    assert check_docs.broken_tables(page) == [
        "page.md:5: rows of a table without a heading; is there an empty line before them?"
    ]
    page.write_text(whole + "| 4 | 5 | 6 |\n")
    assert check_docs.broken_tables(page) == ["page.md:4: a row has more or fewer cells than the heading of its table"]


@pytest.mark.parametrize("page", PARTS)
def test_tables_of_the_code_are_on_their_pages(page):
    """Pages have the tables of columns, files and topologies that `python -m docs.columns` writes."""
    text = read(page)
    assert all(f"<!-- columns of {rows} -->" in text for rows in TABLES.get(page, ()))
    assert text == with_parts(text, page), AGAIN


def test_captions_of_files_are_those_of_their_rows():
    """The folder has the captions that `python -m docs.captions` writes, and no other file."""
    assert {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()} == captions(), AGAIN
    assert captions()["multi_baselines_svg.rst"].startswith(
        "Latency, energy and EDP beside the baselines and the lower"
    )
    assert "](" not in "".join(captions().values())


def test_columns_of_the_comparison_are_documented():
    """docs/artifacts/tables.md lists the columns of pareto.csv, all of them and no others."""
    assert sorted(documented_fields("pareto.csv")) == sorted(COLUMNS)


@pytest.mark.parametrize("page", WITH_ROOMS, ids=lambda page: page.name)
def test_rooms_of_the_package_are_those_of_the_code(page: Path) -> None:
    """The lists of rooms equal those from the order of imports and the docstrings (`python -m docs.rooms`)."""
    assert "<!-- rooms -->" in page.read_text()
    assert page.read_text() == with_rooms(page.read_text()), AGAIN


def test_the_architecture_names_files_that_exist() -> None:
    """Every file and folder in the text exists, in the package or the project."""
    named = re.findall(r"`([\w./]+(?:\.py|\.smk|/))`", (DOCS / "architecture.md").read_text())
    places = [(ROOT / "lib" / "tilewright" / name, ROOT / name) for name in named if name not in ("cost/", "results/")]
    assert [str(place) for place, other in places if not (place.exists() or other.exists())] == []


def test_the_changelog_is_short():
    """The changelog has at most 60 lines a version, and each file of a change has at most 6 lines."""
    versions = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert max(len(version.splitlines()) for version in versions) <= 60
    assert all(len(path.read_text("utf-8").splitlines()) <= 6 for path in (ROOT / "changelog.d").glob("*.md"))


def test_no_file_has_marks_of_a_merge():
    """No file has the marks of an unfinished merge."""
    marks = re.compile(rb"^(<{7} |>{7} |={7}$)", re.MULTILINE)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    paths = [ROOT / name.decode() for name in files if name]
    assert len(paths) > 1000
    assert [path for path in paths if path.is_file() and marks.search(path.read_bytes())] == []
