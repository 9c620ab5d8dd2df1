"""The output of `tokens` for small language models on random cores, checked with `map` and `explain`.

The limit of a step must be the limit that `explain` gives for the step mapped by `map`.
"""

import json
import math
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.workload.yaml_reader import read_workload_yaml

from tests.plain.plain_runs import PlainRun
from tests.plain.printed_limits import Judge, least_cycles
from tests.plain.printed_text import Row, VerbError, is_share, number, said, table
from tests.plain.tally import Tally
from tests.plain.written_problems import MIRROR_LINKS, core_for_matrices, hardware_file, with_equal_ports

LEAST_SHARE = Fraction(1, 10)
"""Least share of the time with which a part counts as a limit."""
KEY_BLOCK = 8
OPTIONS = ("--lpf-limit", "3", "--no-store")
CONTEXTS = (1, 5, 8, 12, 24, 40)


def judge_tokens(seed: int, folder: Path) -> Tally:
    """Check the output of `tokens` for the model of a seed."""
    folder.mkdir()
    rng = random.Random(seed)
    while True:
        try:
            case = Steps(rng, folder)
            break
        except VerbError:
            continue
    for batch in case.batches:
        for context in case.contexts:
            case.judge(batch, context)
    return case.tally


def random_model(rng: random.Random) -> dict[str, Any]:
    """A small language model of any family."""
    heads = rng.choice((1, 2, 4))
    fields: dict[str, Any] = {
        "hidden_size": heads * rng.choice((4, 8)),
        "intermediate_size": rng.choice((8, 12, 32)),
        "num_hidden_layers": rng.choice((1, 2, 3)),
        "num_attention_heads": heads,
        "vocab_size": rng.choice((8, 30, 64)),
    }
    other: dict[str, Any] = {
        "llama": {},
        "gemma2": {"head_dim": 8, "sliding_window": 12},
        "mistral": {"sliding_window": 5},
        "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    }
    name = rng.choice(list(other))
    return {"model_type": name, **fields, **other[name]}


class Steps(Judge):
    """Steps of a random model on a random core, with the output of `tokens`."""

    run: PlainRun

    def __init__(self, rng: random.Random, folder: Path) -> None:
        """Raises VerbError if the model does not fit the core."""
        super().__init__()
        self.folder, self.fields = folder, random_model(rng)
        core = core_for_matrices(rng)
        core = with_equal_ports(core, rng.choice((8, 16))) if rng.random() < 0.4 else core
        self.hardware, self.mapping, network = (folder / f"{one}.yaml" for one in ("core", "mapping", "model"))
        self.hardware.write_text(yaml.safe_dump(hardware_file(core), sort_keys=False), "utf-8")
        self.mapping.write_text(
            yaml.safe_dump([{"name": "default", "memory_operand_links": dict(MIRROR_LINKS)}]), "utf-8"
        )
        self.write(network, 1, 1)
        self.batches = sorted(rng.sample((1, 2, 4, 16), rng.choice((1, 1, 2))))
        self.contexts = sorted(rng.sample(CONTEXTS, 2))
        self.options = (*OPTIONS, "--model", rng.choice(("corrected", "corrected", "zigzag-3.9.1")))
        points = ("--batches", ",".join(map(str, self.batches)), "--contexts", ",".join(map(str, self.contexts)))
        given = ("--hardware", self.hardware, "--mapping", self.mapping, "--workload", network, *points, *self.options)
        out = folder / "tokens"
        self.text = said("tokens", *given, "--no-prompts", "--key-block", KEY_BLOCK)
        said("tokens", *given, "--no-prompts", "--key-block", KEY_BLOCK, "-o", out)
        rows = json.loads((out / "tokens.json").read_text("utf-8"))["payload"]["rows"]
        self.written = {(row["batch"], row["context"]): row for row in rows}
        printed = table(self.text, "model on ") or table(self.text, self.fields["model_type"])
        self.printed = {(int(number(row["batch"])), int(number(row["context"]))): row for row in printed}
        self.core: Core = read_accelerator(self.hardware).cores[0]

    def write(self, file: Path, batch: int, context: int) -> None:
        """Write the workload file of a step in which a new token sees `context` tokens."""
        step = {"phase": "decode", "batch": batch, "context": context - 1, "key_block": KEY_BLOCK}
        file.write_text(yaml.safe_dump({"language_model": self.fields, **step}), "utf-8")

    def judge(self, batch: int, context: int) -> None:
        """Compare a step with its run by `map`."""
        self.tally.counts["steps of tokens"] += 1
        file, out = self.folder / f"step_{batch}_{context}.yaml", self.folder / f"run_{batch}_{context}"
        self.write(file, batch, context)
        given = ("--hardware", self.hardware, "--workload", file, "--mapping", self.mapping)
        said("map", "--preset", "zigzag", *given, *self.options, "-o", out)
        nodes = read_workload_yaml(file).nodes
        layers = {node.layer.name: node.layer for node in nodes if node.layer is not None}
        self.run = PlainRun.read(out, self.core, layers)
        row, written = self.printed.get((batch, context)), self.written[batch, context]
        if not self.expect(row is not None, "tokens has no row of", batch, context, self.printed) or row is None:
            return
        self.judge_figures(row, written, batch)
        self.judge_bound(row, written)
        explained = json.loads(said("explain", out, *given, "--json"))
        self.judge_limit("explain of a step", explained["network_limit"]["limited_by"], None)

    def judge_figures(self, row: Row, written: dict[str, Any], batch: int) -> None:
        """Check time, energy, the share of the time in which the array works, and the best port."""
        latency = self.run.latency
        self.expect(math.isclose(written["time_per_token_cycles"], latency, rel_tol=1e-9), "tokens:", written, latency)
        self.expect(abs(number(row["a token [10⁶ cycles]"]) - latency / 1e6) <= 0.000501, "tokens:", row, latency)
        energy = self.run.energy / batch
        self.expect(math.isclose(written["energy_per_token_pj"], energy, rel_tol=1e-9), "tokens:", written, energy)
        self.expect(abs(number(row["energy a token [mJ]"]) - energy / 1e9) <= 0.000501, "tokens:", row, energy)
        busy, best = self.run.kinds()["array"] / latency, max(0.0, *self.run.singles().values()) / latency
        self.expect(is_share(row["array busy"], busy), "tokens:", row, "array busy", busy)
        told = number(row["one port twice as wide"].removesuffix("%")) / 100
        self.expect(abs(-told - best) <= 0.000501, "tokens:", row, "a port saves", best)

    def judge_bound(self, row: Row, written: dict[str, Any]) -> None:
        """Check the limit of the step."""
        text, latency = row["bound by"], self.run.latency
        singles, least = self.run.singles(), least_cycles(latency, LEAST_SHARE)
        best = max(singles.values())
        found = re.fullmatch(r"(?P<names>.+?)(?P<together> together)? (?P<sign>-?)(?P<share>[\d.]+%)", text)
        if not self.expect(found is not None, "tokens:", text) or found is None:
            return
        names = found["names"].split(" and ")
        if best >= least:
            self.tally.counts["steps bound by a port"] += 1
            memories = {port.split()[0] for port, gain in singles.items() if math.isclose(gain, best, rel_tol=1e-9)}
            good = found["sign"] == "-" and len(names) == 1 and names[0] in memories
            self.expect(good and is_share(found["share"], best / latency), "tokens:", text, singles)
            return
        smallest = self.run.smallest(least)
        parts = [tuple(one.split()) for one in written["bound_by_parts"].split(" and ") if one]
        if parts:
            self.tally.counts["steps bound by several ports"] += 1
            saved = self.run.saved(frozenset(parts))  # type: ignore[arg-type]
            good = saved >= least * (1 - 1e-9) and is_share(found["share"], saved / latency)
            self.expect(good and set(names) == {one[0] for one in parts}, "tokens:", text, parts, saved / latency)
            if smallest is not None or len(parts) <= self.run.looked_at:
                is_best = smallest is not None and (len(parts), True) == (
                    smallest[0],
                    saved >= smallest[1] * (1 - 1e-9),
                )
                self.expect(is_best, "tokens:", text, parts, "smallest", smallest)
            return
        self.tally.counts["steps bound by a kind of cycles"] += 1
        self.expect(smallest is None and not found["sign"], "tokens:", text, "ports save", smallest)
        kinds = {{"array": "compute"}.get(name, name): cycles for name, cycles in self.run.kinds().items()}
        most = max(kinds.values())
        good = all(is_share(found["share"], kinds.get(name, math.nan) / latency) for name in names)
        self.expect(good and is_share(found["share"], most / latency), "tokens:", text, kinds)
