"""Checks the README and the pages in docs/: links lead to existing targets, tables are complete, and marked examples
run.

A fenced block that opens with ```bash run is executed in the project root. The blocks of a page run one after another
in the order of the page. A block below the line `<!-- output -->` shows a part of the output of the executed block
before it. The lines of the block must occur in this output in the same order, one directly below the other. A line
`...` stands for any number of lines. Every other block of text needs a line above it: `<!-- not compared: WHY -->`, or
the mark of the program that makes the block.

Usage: python docs/check_docs.py [--run] [PAGE ...]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>.*)$")
LINK = re.compile(r"(?<!\\)\[[^\]]*\]\((?P<target>[^()\s]+(?:\([^()]*\))?)(?:\s+\"[^\"]*\")?\)")
DELIMITERS = re.compile(r"\|(\s*:?-+:?\s*\|)+")
"""Pattern of the line between the heading and the rows of a table."""
RUN = "bash run"
OUTPUT = "<!-- output -->"
EXCUSED = re.compile(r"<!-- not compared: .+ -->|<!-- .+: made by .+ -->")
"""Line above a block of text that is not the output of an executed block."""
ANYTHING = "..."
MINUTES_A_BLOCK = 10


@dataclass(frozen=True)
class Block:
    """Fenced block of a page."""

    line: int
    """Number of the line with the opening fence, from 1."""
    info: str
    text: str
    is_output: bool = False
    """True if the block shows output of the executed block before it."""
    is_excused: bool = False
    """True if the line above the block says why the block is not compared, or which program makes it."""


def blocks(text: str) -> Iterator[Block]:
    """Fenced blocks of a page. Raises ValueError for a block that is not closed."""
    opened: re.Match[str] | None = None
    start, content, before, above = 0, list[str](), "", ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if opened is None:
            if match:
                opened, start, content, above = match, number, [], before
            before = line.strip() or before
        elif match and match["marks"].startswith(opened["marks"]) and not match["info"].strip():
            text, is_excused = "".join(f"{row}\n" for row in content), bool(EXCUSED.fullmatch(above))
            yield Block(start, opened["info"].strip(), text, above == OUTPUT, is_excused)
            opened = None
        else:
            content.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"the block that opens on line {start} is not closed")


def prose(text: str) -> list[str]:
    """Lines of a page, in which fenced blocks and inline code are replaced by blanks."""
    lines = text.splitlines()
    for block in blocks(text):
        for index in range(block.line - 1, block.line + 1 + block.text.count("\n")):
            lines[index] = ""
    return [re.sub(r"`[^`]*`", "", line) for line in lines]


def slug(title: str) -> str:
    """Anchor of a heading, in the form that GitHub gives it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Anchors of a page's headings. Equal anchors are numbered."""
    found: set[str] = set()
    # Headings keep their inline code, which `prose` blanks.
    for shown, line in zip(prose(text), text.splitlines(), strict=True):
        if shown.startswith("#"):
            name = slug(line.lstrip("#"))
            repeats = (f"{name}-{number}" for number in range(1, len(found) + 2))
            found.add(name if name not in found else next(other for other in repeats if other not in found))
    return found


def shown(page: Path) -> str:
    """Path of a page for messages, from the project root. Pages outside the project have only their names."""
    return page.resolve().relative_to(ROOT).as_posix() if page.resolve().is_relative_to(ROOT) else page.name


def broken_links(page: Path) -> list[str]:
    """Sentences, one for each relative link of a page whose target does not exist."""
    found, text = [], "\n".join(prose(page.read_text("utf-8")))
    for match in LINK.finditer(text):  # the words of a link can be on two lines
        number = text.count("\n", 0, match.start("target")) + 1
        path, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(f"{shown(page)}:{number}: no such file: {path}")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text("utf-8")):
            found.append(f"{shown(page)}:{number}: no such heading: {match['target']}")
    return found


def broken_tables(page: Path) -> list[str]:
    """Sentences, one for each table of a page with a fault. There are two faults: an empty line cuts the table in two,
    or a row does not have the number of cells of the heading.
    """
    found, start = [], 0
    rows = [line.replace(r"\|", "").strip() for line in [*prose(page.read_text("utf-8")), ""]]
    for number, row in enumerate(rows, 1):
        if row.startswith("|"):
            start = start or number
        elif start:
            found += _table_problems(page, start, rows[start - 1 : number - 1])
            start = 0
    return found


def _table_problems(page: Path, start: int, rows: list[str]) -> list[str]:
    if len(rows) < 2 or not DELIMITERS.fullmatch(rows[1]):
        return [f"{shown(page)}:{start}: rows of a table without a heading; is there an empty line before them?"]
    width = rows[0].count("|")
    wrong = [number for number, row in enumerate(rows, start) if row.count("|") != width]
    return [f"{shown(page)}:{number}: a row has more or fewer cells than the heading of its table" for number in wrong]


def unmarked_blocks(page: Path) -> list[str]:
    """Sentences, one for each block of text that is neither compared nor marked."""
    return [
        f"{shown(page)}:{block.line}: mark this block {OUTPUT}, or <!-- not compared: WHY -->"
        for block in blocks(page.read_text("utf-8"))
        if block.info == "text" and not block.is_output and not block.is_excused
    ]


def run_blocks(page: Path) -> list[str]:
    """Execute the marked blocks of a page. Returns one message for each block that fails."""
    failures, said = list[str](), ""
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        for block in blocks(page.read_text("utf-8")):
            if block.info == RUN:
                found, said = _executed(page, block, environment)
                failures += found
            elif block.is_output and (missing := first_missing(block.text, said)):
                failures.append(
                    f"{shown(page)}:{block.line}: the example does not print, here and in this order: {missing}"
                )
    return failures


def first_missing(example: str, said: str) -> str:
    """First line of an example that the output does not have directly below the line before it; '' if the output has
    all lines.
    """
    rest = iter([line.rstrip() for line in said.splitlines() if line.strip()])
    is_open = True
    for line in (line.rstrip() for line in example.splitlines() if line.strip()):
        if line == ANYTHING:
            is_open = True
        elif line not in rest if is_open else line != next(rest, None):
            return line
        else:
            is_open = False
    return ""


def _executed(page: Path, block: Block, environment: dict[str, str]) -> tuple[list[str], str]:
    """Pair (faults of an example, output of the example)."""
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60 * MINUTES_A_BLOCK
        )
    except subprocess.TimeoutExpired:
        return [f"{shown(page)}:{block.line}: took longer than {MINUTES_A_BLOCK} minutes"], ""
    if done.returncode == 0:
        return [], done.stdout
    output = (done.stdout + done.stderr).strip()
    return [f"{shown(page)}:{block.line}: exit code {done.returncode}\n{block.text}{output}"], done.stdout


def _environment(folder: Path) -> dict[str, str]:
    """Environment in which `tilewright` in the examples is this checkout, run by this interpreter."""
    command = folder / "tilewright"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tilewright "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "lib")}


def pages() -> list[Path]:
    """Paths of the README and of all pages, the pages in order of their names."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def pages_of(topic: str) -> list[Path]:
    """Paths of the pages on a topic: the overview `docs/TOPIC.md`, then the pages in the folder `docs/TOPIC`, in order
    of their names.
    """
    return [DOCS / f"{topic}.md", *sorted((DOCS / topic).glob("*.md"))]


def text_of(topic: str) -> str:
    """Text of all pages on a topic, in the order of `pages_of`."""
    return "\n".join(page.read_text("utf-8") for page in pages_of(topic))


CHECKS = (broken_links, broken_tables, unmarked_blocks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the given pages, or all pages. Returns 1 if there is a fault, else 0."""
    parser = argparse.ArgumentParser(description="Check the documentation.")
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--run", action="store_true", help="also execute the blocks marked ```bash run")
    options = parser.parse_args(arguments)
    chosen = options.pages or pages()
    problems = [problem for page in chosen for check in CHECKS for problem in check(page)]
    if options.run:  # pages do not depend on each other
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            problems += [problem for found in pool.map(run_blocks, chosen) for problem in found]
    print("\n".join(problems) or "documentation: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
