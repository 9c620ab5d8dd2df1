"""`tilewright tokens` on several cores: sums of multi-core schedules, exact at every context."""

import json
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import document_of
from tilewright.cli.main import main
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.pipeline.sources import parse_accelerator, parse_mapping
from tilewright.pipeline.stages.base import Control
from tilewright.search.options import CnSearchOptions
from tilewright.tokens.layer_networks import cut_layers, layer_network
from tilewright.tokens.layer_schedules import LayerSchedules
from tilewright.tokens.steps import ENERGY, LATENCY, MACS
from tilewright.tokens.strategies import DATA, PIPELINE, STRATEGIES, TENSOR
from tilewright.tokens.system_figures import SystemFigures, shared_ways
from tilewright.tokens.table import TokenCurves
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.reader import describe_language_model
from tilewright.workload.source import parse_workload

from tests.unit.test_tokens import MODELS, step_of

HARDWARE, MAPPING = Path("config/hardware/multi/quad_core.yaml"), Path("config/mapping/multi/open.yaml")
OPTIONS = CnSearchOptions(lpf_limit=2)


@cache
def system() -> MultiCoreAccelerator:
    """The system with four equal cores."""
    found = parse_accelerator(HARDWARE)
    assert isinstance(found, MultiCoreAccelerator)
    return found


@cache
def schedules() -> LayerSchedules:
    """Schedules of layers; all models share them, because the costs of a layer do not depend on other layers."""
    return LayerSchedules(system(), OPTIONS, Control())


@cache
def curves_of(name: str, strategies: tuple[str, ...] = STRATEGIES) -> TokenCurves:
    """The curves of a model, with blocks of 8 keys and chunks of 8 tokens."""
    described = describe_language_model(document_of(step_of(MODELS[name])), "tiny")
    figures = SystemFigures(schedules(), parse_mapping(MAPPING), described.model, strategies, with_limits=False)
    return TokenCurves(described, figures, 8, 8)


def written_out(name: str, **requests: Any) -> Workload:
    """A step with every block written out."""
    model = {"language_model": MODELS[name], "key_block": 8, "written_out": True, **requests}
    return parse_workload(model, "corrected")


def alone(workload: Workload, node: WorkloadNode) -> Workload:
    """One layer of a network as a network, with unchanged tensors."""
    own = tuple(workload.tensor_of[name] for name in (*node.inputs, *node.outputs))
    inputs = tuple(tensor.name for tensor in own[: len(node.inputs)] if not tensor.is_constant)
    return Workload("alone", (replace(node, sources=(), is_network_output=True),), own, inputs, node.outputs)


def fixed_entry(network: Workload, loops: tuple[TilingEntry, ...], cores: list[int]) -> dict[str, Any]:
    """The mapping entry that cuts a layer and gives its parts to these cores in turn."""
    sizes = network.nodes[0].layer.size_of  # type: ignore[union-attr]
    parts = prod(-(-sizes[loop.dimension] // -(-sizes[loop.dimension] // int(loop.tiles))) for loop in loops)
    return {
        "name": "default",
        "core_allocation": [cores[part % len(cores)] for part in range(parts)],
        "core_allocation_is_fixed": True,
        "inter_core_tiling": [f"{loop.dimension}, {loop.tiles}" for loop in loops],
    }


def direct_run(network: Workload, loops: tuple[TilingEntry, ...], cores: list[int]) -> tuple[int, float]:
    """Cycles and energy of a separate run of a layer, cut and placed by a mapping file."""
    ahead = sorted(network.nodes[0].layer.input_operands)  # type: ignore[union-attr]
    fixed = [fixed_entry(network, loops, cores)]
    run = tilewright.run_multi_core(network, system(), fixed, OPTIONS, mode="lbl", operands_to_prefetch=ahead)
    return run.latency_cycles, run.energy_pj


def test_layers_cost_what_the_flow_says() -> None:
    """Each layer of a written-out step costs as much as the best of separate runs, one for each way to cut it."""
    workload, looked_at = written_out("llama", phase="decode", batch=3, context=20), 0
    for node in workload.nodes:
        if node.layer is None or not node.name.startswith("layers.0"):
            continue
        network, entry = layer_network(workload, node), parse_mapping(MAPPING).constraints_for(node.layer)
        cores = [system().core_ids[core] for core in schedules().cores_for(node, entry)]
        cuts = [cut for cut in cut_layers(network, entry, TENSOR, len(cores)) if not cut.products]
        runs = [direct_run(alone(workload, node), cut.mapping.entries[0].inter_core_tiling, cores) for cut in cuts]
        found = schedules().cost(network, entry, TENSOR, -1, ())
        if found.by_inputs:
            assert found.latency_cycles <= min(runs)[0], node.name
        else:
            assert (found.latency_cycles, found.energy_pj) == pytest.approx(min(runs), rel=1e-12), node.name
            looked_at += 1
    assert looked_at > 20


@pytest.mark.parametrize("name", ["latent", "mamba"])
def test_a_token_is_the_sum_of_its_layers(name: str) -> None:
    """A token is the sum of all blocks, experts and blocks of keys, each counted once, as in the written-out step."""
    curves = curves_of(name, (DATA, PIPELINE))
    for batch, context in ((3, 40),):
        found = curves.next_token(batch, context)
        direct = curves.figures.of(written_out(name, phase="decode", batch=batch, context=context - 1))
        total, expected = found.sum(axis=1), direct.sum(axis=1)
        assert total[:, LATENCY].tolist() == expected[:, LATENCY].tolist()
        assert total[:, ENERGY] == pytest.approx(expected[:, ENERGY], rel=1e-12)
        assert total[:, MACS].tolist() == expected[:, MACS].tolist()


@pytest.mark.parametrize("name", ["mixed"])
def test_a_prompt_is_the_sum_of_its_chunks(name: str) -> None:
    """Every figure of a prompt is the sum over its chunks.

    This holds also for chunks to which the polynomial was not fitted.
    """
    curves = curves_of(name, (TENSOR,))
    whole, rest = divmod(37, 8)
    chunks = [curves.figures.of(curves._prompt_step(8, 8 * place)) for place in range(whole)]
    chunks += [curves.figures.of(curves._prompt_step(rest, 8 * whole))]
    assert curves.prompt(37).ravel() == pytest.approx(sum(chunks).ravel(), rel=1e-12)
    assert curves.prompt(37)[..., LATENCY].tolist() == sum(chunks)[..., LATENCY].tolist()


def test_many_contexts_need_no_more_schedules_than_few() -> None:
    """Many contexts need no more schedules than few, because their layers differ only in their repeats."""
    described = describe_language_model(document_of(step_of(MODELS["llama"])), "tiny")
    fresh = replace(schedules(), _found={})
    curves = TokenCurves(
        described, SystemFigures(fresh, parse_mapping(MAPPING), described.model, (TENSOR,), False), 8, 8
    )
    curves.search([64], [1], [64])
    few = len(fresh._found)
    curves.search(range(16, 128, 16), [1], range(16, 128, 16))
    assert len(fresh._found) <= few + 2


def test_schedules_keep_their_rules() -> None:
    """Every way to cut each layer of a block, also along its inputs, passes the check without the scheduler."""
    curves, checked = curves_of("llama"), 0
    workload = curves.decode_step(3, 20)
    for node in workload.nodes:
        if node.layer is None or "proj" not in node.name:
            continue
        entry = parse_mapping(MAPPING).constraints_for(node.layer)
        for cut in cut_layers(layer_network(workload, node), entry, TENSOR, 4):
            problem = schedules().problem(cut)
            genome = problem.space.genome([choices[-1] for choices in problem.space.choices])
            made = simulate(problem.assembled.problem, problem.space.allocation(genome), problem.options)
            assert check_schedule(problem.assembled.problem, made) == []
            checked += 1
    assert checked > 10


def test_pipelines_have_every_block_once() -> None:
    """Every block of a pipeline counts once: a request takes the sum over stages, and the slowest core sets the
    interval.
    """
    curves = curves_of("llama")
    found = curves.next_token(3, 40)
    ways = {way.strategy: way for way in shared_ways(curves.figures, found, 3)}
    assert set(ways) == {TENSOR, DATA, PIPELINE}
    assert sum(ways[PIPELINE].stages) == 2
    alone = found[[place for place, way in enumerate(curves.figures.ways) if way.strategy == PIPELINE]]
    assert ways[PIPELINE].figures[MACS] == alone[0].sum(axis=0)[MACS]
    assert ways[PIPELINE].latency_cycles == alone[0].sum(axis=0)[LATENCY]  # on equal cores whichever has a block
    assert 0 < ways[PIPELINE].interval_cycles <= ways[PIPELINE].latency_cycles
    assert [way.strategy for way in shared_ways(curves.figures, found, 1)] == [TENSOR, PIPELINE]


@pytest.mark.slow
def test_the_table_has_the_best_way_and_the_others(tmp_path: Path) -> None:
    """The table has the fastest way to share the work, the times of all ways, and gains, by batch and context.

    Gains are those of doubling the width or the size of a part. The limiting part is named if it gains a tenth.
    """
    given = step_of(MODELS["mamba"]), HARDWARE, MAPPING, [8], [1, 4]
    found = tilewright.tokens(*given, lpf_limit=2, key_block=8, chunk=8, store=tmp_path / "store", output=tmp_path)
    table = found.table
    assert list(zip(table["batch"], table["context"], strict=True)) == [(1, 8), (4, 8)]
    for row in found.rows:
        times = {name: row.get(f"{name}_time_per_token_cycles") for name in STRATEGIES}
        assert (times[DATA] is None) == (row["batch"] == 1)
        assert row["time_per_token_cycles"] == times[row["parallel"]] == min(filter(None, times.values()))
        assert row["time_between_steps_cycles"] <= row["time_per_token_cycles"]
        saved = {name: row[name] for name in table.columns if name.startswith("saved_by")}
        assert len(saved) == 2 + 2 * 5  # the off-chip memory, links, four memories of a core and one of the vector unit
        assert row["gain_of_twice_the_width"] == max(one for name, one in saved.items() if "_width_" in name)
        assert row["gain_of_twice_the_size"] == max(one for name, one in saved.items() if "_size_" in name)
        is_bound = row["gain_of_twice_the_width"] >= 0.1
        assert row["bound_by_share"] >= row["gain_of_twice_the_width"] or not is_bound
        assert (row["bound_by"] == row["widest_gain_port"]) == is_bound
        assert (row["bound_by"] == "compute") == (not row["bound_by_parts"])
        if not is_bound and row["bound_by_parts"]:
            assert row["bound_by_share"] >= 0.1
        assert row["prompt_parallel"] in STRATEGIES
    assert found.memory == "dram"
    assert found.memory_bits == 8 * 2**30
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {
        "tokens.csv",
        "tokens.json",
        "tokens.svg",
        "tokens.png",
    }
    assert json.loads((tmp_path / "tokens.json").read_text())["payload"]["rows"][1]["batch"] == 4
    one = tilewright.tokens(
        *given[:4], [4], lpf_limit=2, key_block=8, chunk=8, prompts=False, parallel=PIPELINE, store=tmp_path / "store"
    )
    assert set(one.table["parallel"]) == {PIPELINE}
    assert list(one.table["time_per_token_cycles"]) == list(table["pipeline_time_per_token_cycles"])[1:]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--parallel", "data"], "one request"),
        (["--exploit-data-locality"], "--exploit-data-locality"),
        (["--parallel", "tenser"], "tensor"),
    ],
)
def test_what_is_wrong_is_told(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong options are reported with what is allowed."""
    model = ["--workload", "config/workload/llama_3.1_8b_decode.yaml"]
    given = ["--hardware", str(HARDWARE), "--mapping", str(MAPPING), *model]
    assert main(["tokens", *given, "--no-store", *options]) == 2
    assert told in capsys.readouterr().err


def test_one_core_is_shared_in_no_way() -> None:
    """The name of a way to share is refused on one core."""
    core = "config/hardware/zigzag/tpu_like_vector.yaml", "config/mapping/zigzag/tpu_like_vector.yaml"
    with pytest.raises(InputError, match="needs several cores"):
        tilewright.tokens(step_of(MODELS["llama"]), *core, [8], parallel=TENSOR)


def one_core_system() -> dict[str, Any]:
    """The TPU-like core as a system of one core, with its DRAM off-chip."""
    core = yaml.safe_load(Path("config/hardware/zigzag/tpu_like_vector.yaml").read_text())
    dram = core["memories"].pop("dram") | {"served_dimensions": ["D1"]}
    array = {"dimensions": ["D1"], "sizes": [1], "unit_energy": 0, "unit_area": 0}
    return {
        "name": "one",
        "core_files": {"core": core, "off": {"name": "off", "operational_array": array, "memories": {"dram": dram}}},
        "cores": {0: "core"},
        "offchip_core": "off",
        "core_connectivity": [],
        "bandwidth": 64,
        "unit_energy_cost": 0,
    }


@pytest.mark.slow
def test_a_system_of_one_core_is_near_that_core() -> None:
    """A system of one core is within 3 % of the core itself, if weights come from the DRAM.

    The system loads whole tiles; the core has loops over all memories.
    """
    model = MODELS["llama"] | {"hidden_size": 256, "intermediate_size": 1024, "vocab_size": 1024}
    given = {"workload": step_of(model), "mapping": "config/mapping/zigzag/tpu_like_vector.yaml", "contexts": [128]}
    given |= {"batches": [1, 8], "prompts": False, "key_block": 64, "chunk": 64, "model": "corrected", "lpf_limit": 3}
    alone = tilewright.tokens(hardware="config/hardware/zigzag/tpu_like_vector.yaml", **given)
    system = tilewright.tokens(hardware=one_core_system(), parallel=TENSOR, **given)
    for name in ("time_per_token_cycles", "energy_per_token_pj"):
        assert list(system.table[name]) == pytest.approx(list(alone.table[name]), rel=0.03)
    assert list(system.table["mac_count"]) == list(alone.table["mac_count"])
    assert set(system.table["bound_by"]) == {"dram"}


def test_sums_are_above_a_run_of_the_whole_step() -> None:
    """The sum of layers is no less than a run of the whole step with the same cuts and cores, with and without
    barriers.

    The run saves data that stay on chip between layers, and weights that come before their layer begins.
    """
    workload, total, entries = written_out("llama", phase="decode", batch=3, context=20), 0, []
    for node in workload.nodes:
        if node.layer is None:
            continue
        network, entry = layer_network(workload, node), parse_mapping(MAPPING).constraints_for(node.layer)
        cores = [system().core_ids[core] for core in schedules().cores_for(node, entry)]
        plain = next(cut_layers(network, entry, TENSOR, len(cores)))
        (found, *_) = schedules()._schedules(plain, TENSOR, -1)
        total += found.schedule.latency_cycles
        fixed = fixed_entry(network, plain.mapping.entries[0].inter_core_tiling, cores)
        entries.append(fixed | {"name": node.name})
    given = {"operands_to_prefetch": ["I", "W"], "mode": "lbl"}
    mapping = [*entries, {"name": "default"}]
    barriers = tilewright.run_multi_core(workload, system(), mapping, OPTIONS, stack_order="barrier", **given)
    free = tilewright.run_multi_core(workload, system(), mapping, OPTIONS, **given)
    assert free.latency_cycles <= barriers.latency_cycles <= total
