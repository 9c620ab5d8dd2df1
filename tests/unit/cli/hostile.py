"""Descriptions with hostile names, and calls of every verb with them, for `test_hostile_names.py`."""

import contextlib
import gzip
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
import yaml
from tilewright.cli.main import main

from tests.unit.evidence.chips.cases import write_case
from tests.unit.multicore.nodes.networks import SAME, conv
from tests.unit.tiles.attention.small_attention import MAPPING as ATTENTION_MAPPING
from tests.unit.tiles.attention.small_attention import described
from tests.unit.tiles.attention.small_attention import hardware as attention_core
from tests.unit.workload.onnx.dependency_checks import build_model

TESTS = Path(__file__).resolve().parents[2]
TINY = TESTS / "workflow"
POINTS = TESTS / "conformance" / "data" / "reference-points.jsonl.gz"
FORGED = "forged line"
"""Beginning of a line that only a hostile name could have started."""
EVIL_WORDS = (
    f"\x1b]0;owned\x07\x1b[31m\r\n{FORGED}\u202e\u2066\x9b7m\x7f|`$x$`,;</script><script>evil()</script>"
    "\"'><img src=x onerror=evil()>]]>--><b onclick=evil()>&amp;[l](javascript:evil())"
)
"""Characters in a name that can reach a terminal, a page, a figure or a Markdown table."""
EVIL_FILE = EVIL_WORDS.replace("/", "\u2044")
"""The hostile characters in the form of a file name."""


def hostile(begin: str, name: str) -> str:
    """Return a hostile name that begins like a formula and contains a distinct word."""
    return f"{begin}cmd|{name}{EVIL_WORDS}"


LAYERS = hostile("=", "a"), hostile("+", "b"), hostile("-", "c" + "x" * 300)
CORES = tuple(f"{name}{EVIL_FILE}" for name in ("left", "right"))
GENETIC = ("--nb-ga-individuals", "4", "--nb-ga-generations", "2", "--exhaustive-nodes", "0")
QUICK = ("--lpf-limit", "3", "--no-store", "--model", "corrected")


def renamed(core: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a core with a hostile name and hostile names of its memories and ports."""
    begins = iter("=+@-=+@-")
    memories = {hostile(next(begins), old): memory for old, memory in core["memories"].items()}
    for memory in memories.values():
        memory["ports"] = [port | {"name": hostile("@", port["name"])} for port in memory["ports"]]
    return core | {"name": name, "memories": memories}


def load(path: str) -> Any:
    """Load a tiny description."""
    return yaml.safe_load((TINY / path).read_text())


class Said(NamedTuple):
    """Output of a call of a verb."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str


@dataclass
class World:
    """A folder with hostile descriptions, and all files that verbs made of them."""

    folder: Path
    said: list[Said] = field(default_factory=list)
    single: tuple[str, ...] = ()
    """Arguments for a run on one core; `wide` is another core, `multi` several cores, `tokens` a language model."""
    wide: tuple[str, ...] = ()
    multi: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        core, network = self._core, self._network()
        self.single, self.wide = (*core("narrow"), *network), (*core("wide"), *network)
        self.multi = self._multi()
        self.tokens = self._tokens()

    def out(self, name: str) -> str:
        """Return a place for results below a folder with a hostile name."""
        return str(self.folder / f"=out{EVIL_FILE}" / name)

    def write(self, name: str, data: Any) -> str:
        """Write a YAML file and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return str(path)

    def run(self, *words: str, code: int = 0) -> None:
        """Run a verb and check its exit code."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            found = main(list(words))
        self.said.append(Said(words, found, out.getvalue(), err.getvalue()))
        assert found == code, f"{words[0]}: exit code {found}\n{out.getvalue()}\n{err.getvalue()}"

    def _core(self, name: str) -> tuple[str, ...]:
        core = renamed(load(f"tiny/hardware/{name}.yaml"), hostile("=", name))
        return "--hardware", self.write(f"={name}{EVIL_FILE}.yaml", core)

    def _network(self) -> tuple[str, ...]:
        layers = zip(load("tiny/workload/two_layers.yaml"), LAYERS, strict=False)
        network = self.write(f"=net{EVIL_FILE}.yaml", [layer | {"name": name} for layer, name in layers])
        mapping = [*load("tiny/mapping/free.yaml"), {"name": LAYERS[1], "spatial_mapping": {"D1": ["K, 2"]}}]
        return "--workload", network, "--mapping", self.write(f"=map{EVIL_FILE}.yaml", mapping)

    def _multi(self) -> tuple[str, ...]:
        for name, file in (*zip(("left", "right"), CORES, strict=True), ("offchip", "offchip")):
            core = renamed(load(f"tiny_multi/hardware/cores/{name}.yaml"), hostile("@", name))
            self.write(f"cores/{file}.yaml", core)
        cores = {number: f"./cores/{file}.yaml" for number, file in enumerate(CORES)}
        system = load("tiny_multi/hardware/duo.yaml") | {"name": hostile("=", "duo"), "cores": cores}
        mapping = [*load("tiny_multi/mapping/duo.yaml"), {"name": LAYERS[0], "core_allocation": [0]}]
        path = self.folder / f"=three{EVIL_FILE}.onnx"
        onnx.save(_convolutions(), str(path))
        hardware = self.write(f"=duo{EVIL_FILE}.yaml", system)
        return "--hardware", hardware, "--workload", str(path), "--mapping", self.write("duo.yaml", mapping)

    def _tokens(self) -> tuple[str, ...]:
        core = renamed(attention_core(), hostile("=", "small")) | {"clock_frequency": "700 MHz"}
        files = {"hardware": core, "workload": described("decode", 1, 3), "mapping": ATTENTION_MAPPING}
        return tuple(
            word
            for name, data in files.items()
            for word in (f"--{name}", self.write(f"=tokens {name}{EVIL_FILE}.yaml", data))
        )


def _convolutions() -> onnx.ModelProto:
    """Return three convolutions in a row with hostile names."""
    tensors = [hostile("=", f"tensor {number}") for number in range(len(LAYERS) + 1)]
    weights = [hostile("+", f"weight {number}") for number in range(len(LAYERS))]
    nodes = [conv(tensors[place], weights[place], tensors[place + 1], **SAME) for place in range(len(LAYERS))]
    for node, name in zip(nodes, LAYERS, strict=True):
        node.name, node.doc_string = name, EVIL_WORDS
    values = {name: np.ones((4, 4, 3, 3), np.float32) for name in weights}
    model = build_model(nodes, {tensors[0]: (1, 4, 8, 8)}, values)
    model.graph.name = model.producer_name = EVIL_WORDS
    return model


def validate(world: World) -> None:
    """Validate correct files, and wrong ones whose messages contain hostile text."""
    single, multi = world.single[1::2], world.multi[1::2]
    world.run("validate", *single, *multi)
    wrong = {
        "hardware": renamed(load("tiny/hardware/narrow.yaml"), EVIL_WORDS) | {hostile("=", "key"): EVIL_WORDS},
        "workload": [{"id": 0, "name": EVIL_WORDS, "operator_type": EVIL_WORDS, hostile("=", "key"): 1}],
        "mapping": [{"name": EVIL_WORDS, "spatial_mapping": {EVIL_WORDS: [EVIL_WORDS]}, EVIL_WORDS: EVIL_WORDS}],
        "space": {"accelerator": EVIL_WORDS, "axes": {EVIL_WORDS: {"values": [1]}}, EVIL_WORDS: 1},
        "config": {"runs": {EVIL_WORDS: {EVIL_WORDS: EVIL_WORDS}}, "sweeps": {EVIL_WORDS: 1}, EVIL_WORDS: 1},
    }
    for kind, data in wrong.items():
        world.run("validate", "--kind", kind, world.write(f"wrong/={kind}{EVIL_FILE}.yaml", data), code=2)
    broken = world.folder / f"wrong/=broken{EVIL_FILE}.onnx"
    broken.write_text(EVIL_WORDS)
    world.run("validate", str(broken), "-v", code=2)
    world.run("validate", str(world.folder / EVIL_FILE), code=2)
    world.run("validate", "--kind", EVIL_WORDS, single[0], code=2)
    world.run("validate", f"--{EVIL_FILE}", code=2)


def parse(world: World) -> None:
    """Parse hardware, mapping and networks, and write JSON, tables and drawings."""
    world.run("parse", "hardware", world.single[1], "-v", "-o", world.out("accelerator.json"))
    world.run("parse", "hardware", world.multi[1], "-v")
    world.run("parse", "mapping", world.single[5])
    world.run("parse", "workload", world.single[3])
    files = ("--graph", world.out("graph.svg"), "--table", world.out("table.csv"), "-o", world.out("workload.json"))
    world.run("parse", "workload", world.multi[3], "-v", "--coverage", world.out("coverage.json"), *files)
    world.run("parse", "workload", world.multi[3], "--json")


def map_(world: World) -> None:
    """Map a network on two cores, and on a core that no layer fits."""
    world.run("map", *world.single, *QUICK, "-v", "-o", world.out("single/=narrow"))
    world.run("map", *world.wide, *QUICK, "-o", world.out("single/=wide"))
    world.run("map", *world.single, *QUICK, "--json")
    small = renamed(load("tiny/hardware/narrow.yaml"), hostile("=", "small"))
    for memory in small["memories"].values():
        memory["size"] = 16
    world.run("map", "--hardware", world.write("small.yaml", small), *world.single[2:], *QUICK, code=2)


def translate(world: World) -> None:
    """Translate a script with hostile files, keywords and stages, and one that fails with hostile text."""
    _, hardware, _, workload, _, mapping = world.single[:6]
    names = "WorkloadParser AcceleratorParser Workload SpatialMappingGenerator Loma CostModel"
    stages = f"[{', '.join(f'{name}Stage' for name in names.split())}]".replace("Spatial", "own, Spatial")
    own = f"own = type({EVIL_WORDS!r}, (Stage,), {{'run': lambda self: iter(())}})"
    given = f"accelerator={hardware!r}, workload={workload!r}, mapping={mapping!r}"
    for more, code in (("", 0), (f", **{{{EVIL_WORDS!r}: 1}}", 2)):
        script = world.folder / f"=script{code}{EVIL_FILE}.py"
        script.write_text(f"from tilewright.main_stage import *\n{own}\nMainStage({stages}, {given}{more}).run()\n")
        world.run("translate", str(script), code=code)
        world.run("translate", str(script), "--json", code=code)
    failing = world.folder / f"=failing{EVIL_FILE}.py"
    failing.write_text(f"raise ValueError({EVIL_WORDS!r})\n")
    world.run("translate", str(failing), code=2)


def export(world: World) -> None:
    """Export all formats to the terminal and to files."""
    run = world.out("single/=narrow")
    for form in ("mapping", "loop-nest", "loop-ordering", "simple-json"):
        world.run("export", run, "--format", form)
    world.run("export", run, "--hardware", world.single[1], "-o", world.out("found.yaml"))
    world.run("export", run, "--format", "loop-nest", "-o", world.out("nests.txt"))
    world.run("export", run, "--format", "loop-ordering", "-o", world.out("ordering.txt"))
    world.run("export", run, "--format", "simple-json", "-o", world.out("simple"))
    world.run("export", run, "--format", "complete-json", *world.single[:4], "-o", world.out("complete"))
    world.run("export", run, "--format", "pickle", *world.single[:4], "-o", world.out("results.pickle"))


def evaluate(world: World) -> None:
    """Evaluate the exported mappings and an unknown layer."""
    found = (*world.single[:4], "--mapping", world.out("found.yaml"))
    world.run("evaluate", *found, "-v")
    world.run("evaluate", *found, "--json", "--layer", LAYERS[0])
    world.run("evaluate", *found, "--layer", EVIL_WORDS, code=2)


def report(world: World) -> None:
    """Report runs on one core and on several: tables, figures, pages and traces."""
    world.run("report", world.out("single/=narrow"), "-o", world.out("report"), "--loop-nest", LAYERS[0], "-v")
    world.run("report", world.out("multi"), "-o", world.out("report_multi"))
    world.run("report", world.out("single/=narrow"), "--loop-nest", EVIL_WORDS, code=2)


def of_runs(*words: str) -> Callable[[World], None]:
    """Return a case that calls a verb with all runs and further words; a word with @ is a file to write."""

    def case(world: World) -> None:
        runs = world.out("single/=narrow"), world.out("single/=wide"), world.out("multi")
        given = [world.out(word[1:]) if word.startswith("@") else word for word in words]
        world.run(given[0], *runs, *given[1:])
        world.run(given[0], world.out("none"), code=2)

    return case


def check(world: World) -> None:
    """Check all kinds of runs, and damaged ones."""
    world.run("check", world.out("single/=narrow"), *world.single[:2], "-v", "-o", world.out("checks.json"))
    world.run("check", world.out("multi"), *world.multi, "-v")
    world.run("check", world.out("none"), code=2)
    damaged = Path(world.out("damaged"))
    damaged.mkdir()
    for file in Path(world.out("single/=narrow")).glob("*.json*"):
        (damaged / file.name).write_text(file.read_text().replace("energy_pj", EVIL_FILE))
    world.run("check", str(damaged), code=2)


def audit(world: World) -> None:
    """Audit all results of a run, as text and as JSON, and a damaged folder."""
    run = world.out("single/=narrow")
    world.run("audit", run, *world.single, "--share", "100%", "-v")
    world.run("audit", run, *world.single, "--share", "100%", "--json")
    world.run("audit", world.out("damaged"), *world.single, code=2)
    world.run("audit", world.out("none"), code=2)


def explain(world: World) -> None:
    """Explain one layer and all layers, on one core and on several."""
    world.run("explain", world.out("single/=narrow"), *world.single, "-o", world.out("explain"))
    world.run("explain", world.out("single/=narrow"), *world.single, "--layer", LAYERS[1])
    world.run("explain", world.out("multi"), "-o", world.out("explain_multi"))
    world.run("explain", world.out("multi"), "--layer", LAYERS[2])
    world.run("explain", world.out("multi"), "--layer", EVIL_WORDS, code=2)


def advise(world: World) -> None:
    """Advise on changes as text, as a table and as a written hardware file."""
    written = world.out("wider.yaml")
    world.run("advise", world.out("single/=narrow"), *world.single, "-o", world.out("advise"), "--write", "1", written)
    world.run("validate", written)
    world.run("advise", world.out("multi"), *world.multi, "--no-search", "-o", world.out("advise_multi"))


def compare(world: World) -> None:
    """Compare two runs on one core, also with new searches, and two on several cores."""
    one_core = ("compare", world.out("single/=narrow"), world.out("single/=wide"))
    world.run(*one_core, "-o", world.out("compare"))
    world.run(*one_core, "--search-again", "-o", world.out("compare_again"))
    world.run(*one_core, "--batches", f"2,{EVIL_WORDS}", code=2)
    world.run(*one_core, "--batches", "2", code=2)
    network = Path(world.single[world.single.index("--workload") + 1])
    beside = Path(world.out("single")) / network.name
    shutil.copy(network, beside)
    world.run(*one_core, "--batches", "2", "-o", world.out("compare_batches"))
    beside.unlink()
    world.run("compare", world.out("multi"), world.out("fuse"), "-o", world.out("compare_multi"))
    world.run("compare", world.out("multi"), world.out("single/=wide"), code=2)


def new(world: World) -> None:
    """Create a folder with a hostile name, with hostile networks and wrong choices."""
    world.run("new", world.out("new"), "--network", EVIL_WORDS, code=2)
    world.run("new", world.out("new"), "--network", world.single[5])
    world.run("validate", *(world.out(f"new/{kind}.yaml") for kind in ("hardware", "mapping")))
    world.run("new", world.out("new"), code=2)
    world.run(
        "new", world.out("other"), "--array", EVIL_WORDS, "--sram", EVIL_WORDS, "--dram-bandwidth", EVIL_WORDS, code=2
    )


def draw(world: World) -> None:
    """Draw a core and a system."""
    world.run("draw", world.single[1], "-o", world.out("core.svg"))
    world.run("draw", world.multi[1], "-o", world.out("system.svg"))


def costs(world: World) -> None:
    """Print the costs of the memories in a hardware file, and those of an unknown name."""
    world.run("cost-library", "--hardware", world.single[1])
    world.run("cost-library", EVIL_WORDS, code=2)


def split(world: World) -> None:
    """Split weights that do not fit."""
    world.run("split", *world.multi, "--split-w-percentage", "0.02", "-v", "-o", world.out("split.onnx"))


def cns(world: World) -> None:
    """Make the graph of a run on several cores."""
    world.run("cns", *world.multi, "-v", "-o", world.out("multi"))


def cost(world: World) -> None:
    """Cost each core, and an unknown core."""
    for core in CORES:
        table = ("--model", "corrected", "--no-store", "-v", "-o", world.out(f"multi/cost/{core}.jsonl"))
        world.run("cost", *world.multi, "--core", core, "--cns", world.out("multi"), *table)
    world.run("cost", *world.multi, "--core", EVIL_FILE, "--cns", world.out("multi"), code=2)


def _made(world: World) -> tuple[str, ...]:
    return "--cns", world.out("multi"), "--costs", world.out("multi/cost")


def allocate(world: World) -> None:
    """Allocate computation nodes to cores."""
    world.run("allocate", *world.multi, *_made(world), *GENETIC, "-v", "-o", world.out("multi"))


def schedule(world: World) -> None:
    """Schedule the computation nodes."""
    allocation = ("--core-allocation", world.out("multi/allocation.json"))
    world.run("schedule", *world.multi, *_made(world), *allocation, "-v", "-o", world.out("multi"))


def fuse(world: World) -> None:
    """Fuse the network, with a page, a table and a mapping file that validates."""
    quick = ("--nb-plans", "4", "--fusion-time-budget-s", "none", "--jobs", "1", "--lpf-limit", "2")
    world.run("fuse", *world.multi, *quick, "-v", "-o", world.out("fuse"))
    world.run("validate", world.out("fuse/mapping.yaml"))


def depth_first(world: World) -> None:
    """Run a chain of layers in tiles on a core with hostile names."""
    network = [layer | {"name": name} for layer, name in zip(_chain(), LAYERS, strict=False)]
    given = (*world.tokens[:2], "--workload", world.write(f"=chain{EVIL_FILE}.yaml", network), *world.tokens[4:])
    tiles = ("--tile-x", "3", "--tile-y", "3", "--lpf-limit", "2", "-o", world.out("depth_first"))
    world.run("depth-first", *given, *tiles)
    world.run("depth-first", *given, *tiles[:4], "--cut", EVIL_WORDS, "--overlap-mode", EVIL_WORDS, code=2)


def _chain() -> list[dict[str, Any]]:
    layers = load("tiny/workload/two_layers.yaml")[:1]
    second = {**layers[0], "id": 1, "operand_source": {"W": 1, "I": 0}}
    second["loop_sizes"] = [1, 4, 8, 4, 4, 3, 3]
    return [*layers, second]


def attention(world: World) -> None:
    """Run attention in tiles, and with an unknown memory."""
    quick = ("--tile-keys", "8", "--lpf-limit", "2", "--contexts", "4")
    world.run("attention", *world.tokens, *quick, "-v", "-o", world.out("attention"))
    world.run("attention", *world.tokens, *quick[:4], "-v")
    world.run("attention", *world.tokens, "--memory-sizes", f"{EVIL_WORDS}=1 KiB", code=2)


def tokens(world: World) -> None:
    """Compute times of tokens, with table and figure."""
    quick = ("--contexts", "8", "--no-prompts", "--lpf-limit", "1", "--key-block", "8", "--no-store")
    world.run("tokens", *world.tokens, *quick, "-v", "-o", world.out("tokens"))


def serving(world: World) -> None:
    """Write a serving profile; names that are no folders are refused."""
    given = (*world.tokens, "--format", "llmservingsim-1.1", "--lpf-limit", "1", "--no-store")
    world.run("serving", *given, "-o", world.out("serving"), code=2)


def _space(world: World, **changes: Any) -> dict[str, Any]:
    """Return a space of four designs over a core with hostile names."""
    memory = list(renamed(load("tiny/hardware/wide.yaml"), "")["memories"])[-1]
    axes = {"lanes": {"path": "operational_array.sizes.0", "values": [2, 4]}, "kib": {"values": [0.0625, 16]}}
    space = {
        "accelerator": f"=wide{EVIL_FILE}.yaml",
        "mapping": f"=map{EVIL_FILE}.yaml",
        "networks": {"net": f"=net{EVIL_FILE}.yaml"},
        "axes": axes,
        "laws": {f"memories.{memory}.size": "kib * 8192"},
        "options": {"objective": "energy", "lpf_limit": 3},
    }
    return space | changes


def explore(world: World) -> None:
    """Explore all designs: tables, page, figures, wrong names, and an unknown design."""
    space = world.write("space.yaml", _space(world))
    world.run("explore", space, "--no-store", "-o", world.out("explore"))
    world.run("explore", space, "-o", world.out("explore"), "--show", EVIL_FILE, code=2)
    wrong = _space(world, networks={EVIL_WORDS: EVIL_FILE}, axes={EVIL_WORDS: {"values": [EVIL_WORDS, "=1"]}})
    world.run("explore", world.write(f"=space{EVIL_FILE}.yaml", wrong), code=2)


def decide(world: World) -> None:
    """Decide on the explored designs, on a missing folder, and with an unknown objective."""
    world.run("decide", world.out("explore"))
    world.run("decide", world.out("explore"), "--no-advice", "--json")
    world.run("decide", world.out("none"), code=2)
    world.run("decide", world.out("explore"), "--space", EVIL_FILE, code=2)
    world.run("decide", world.out("explore"), "--objective", EVIL_WORDS, code=2)


def conformance(world: World) -> None:
    """Check recorded points that have hostile names and one wrong energy."""
    with gzip.open(POINTS, "rt") as stream:
        points = [json.loads(next(stream)) for _ in range(2)]
    points[1]["result"]["energy_total"] = 1.0
    file = world.folder / f"=points{EVIL_FILE}.jsonl"
    file.write_text("".join(json.dumps(point | {"id": hostile("=", "point")}) + "\n" for point in points))
    hardware = str(POINTS.parent / "hardware")
    world.run("conformance", str(file), "--hardware-directory", hardware, "-v", code=1)


def validation(world: World) -> None:
    """Compare a published case with a hostile name."""
    write_case(world.folder / "cases" / f"=case{EVIL_FILE}")
    world.run("compare-chips", str(world.folder / "cases"), "--steps", "-v")


def court(world: World) -> None:
    """Judge a missing folder and an unknown set."""
    world.run("accuracy", "--data", world.out("none"), code=2)
    world.run("accuracy", EVIL_WORDS, code=2)


def front(world: World) -> None:
    """Compute the complete front with its tables and page; then compute a front from a space with a wrong law."""
    space = _space(world)
    world.run("front", world.write("front.yaml", space), "-o", world.out("front"))
    world.run("front", world.write("wrong.yaml", space | {"laws": {EVIL_WORDS: EVIL_WORDS}}), "-o", "x", code=2)


def certify(world: World) -> None:
    """Check the certificate of the front, and a folder without one."""
    world.run("check-front", world.out("front"), "--sample", "1")
    world.run("check-front", world.out("none"), code=2)


def vary(world: World) -> None:
    """Make hardware variants whose choices have hostile names."""
    choices = {f"choice {place}{EVIL_FILE}": {"operational_array.sizes": [size]} for place, size in enumerate((2, 4))}
    given = {"base": Path(world.single[1]).name, "vary": {f"what{EVIL_FILE}": choices}}
    world.run("vary", world.write("variants.yaml", given), "-o", world.out("vary"), code=2)
    plain = {"base": Path(world.single[1]).name, "vary": {"lanes": {"two": {"operational_array.sizes": [2]}}}}
    world.run("vary", world.write("plain_variants.yaml", plain), "-o", world.out("vary"))
    for file in Path(world.out("vary")).glob("*.yaml"):
        world.run("validate", str(file))


def store(world: World) -> None:
    """Verify damaged artifacts, a folder that is no store, and locks."""
    folder = world.out("single")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tilewright.cli.store.CACHES", world.folder / "caches")
        world.run("store", "verify", folder, "-v")
        world.run("store", "verify", world.out("damaged"), code=2)
    world.run("store", "gc", folder, code=2)
    world.run("store", "lock", folder)
    world.run("store", "unlock", folder, code=2)


def results(world: World) -> None:
    """Make the results of a configuration with a hostile folder name, and of a configuration that is missing."""
    config = {"results": f"results{EVIL_FILE}", "runs": {}}
    world.run("results", world.write(f"=config{EVIL_FILE}.yaml", config), code=2)
    world.run("results", world.out("none"), code=2)


def words_alone(*words: str) -> Callable[[World], None]:
    """Return a case for a verb that reads no names, with a hostile word."""

    def case(world: World) -> None:
        world.run(*words)
        world.run(words[0], EVIL_WORDS, "--no-such", code=2)

    return case


CASES: dict[str, Callable[[World], None]] = {
    "validate": validate,
    "parse": parse,
    "map": map_,
    "translate": translate,
    "export": export,
    "evaluate": evaluate,
    "split": split,
    "cns": cns,
    "cost": cost,
    "allocate": allocate,
    "schedule": schedule,
    "fuse": fuse,
    "report": report,
    "check": check,
    "audit": audit,
    "summarize": of_runs(
        "summarize", "--csv", "@summary.csv", "--parquet", "@summary.parquet", "-v", "--paper", "column"
    ),
    "explain": explain,
    "advise": advise,
    "compare": compare,
    "page": of_runs("page", "-o", "@page.html"),
    "pareto": of_runs("pareto", "--csv", "@pareto.csv", "--figures", "@pareto", "--paper", "page"),
    "draw": draw,
    "new": new,
    "cost-library": costs,
    "depth-first": depth_first,
    "attention": attention,
    "tokens": tokens,
    "serving": serving,
    "explore": explore,
    "decide": decide,
    "front": front,
    "check-front": certify,
    "vary": vary,
    "store": store,
    "results": results,
    "conformance": conformance,
    "compare-chips": validation,
    "accuracy": court,
    "options": words_alone("options"),
    "completion": words_alone("completion", "bash"),
    "warm-up": words_alone("warm-up"),
}
"""Maps a verb to its case, in the order in which each case uses the files of earlier ones."""
