"""Spaces with a search for fusion: starts from neighbours, dropped designs, gaps, shards and messages."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.fuse import write_fusion
from tilewright.cli.main import main
from tilewright.designs import explore
from tilewright.designs.answer import answer_of
from tilewright.designs.fused_systems import FusedEvaluator
from tilewright.designs.plan_gaps import dropped_sentences
from tilewright.designs.shard import ShardMaker
from tilewright.designs.space import FusedSystemOptions
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import space_table
from tilewright.designs.tables import answer_text
from tilewright.mapping.constraints import TilingEntry
from tilewright.pipeline.sources import parse_accelerator
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.plans.of_designs import DesignPlan
from tilewright.plans.plan import LayerTiles

from tests.members import members
from tests.three_layers import write_network
from tests.unit.designs.system_cases import HARDWARE, SIZE, WIDTH

PORT = [f"core_files.offchip.memories.dram.ports.0.bandwidth_{end}" for end in ("min", "max")]
MAC = "core_files.k16_c16.operational_array.unit_energy"
OPTIONS: dict[str, Any] = {"fusion": "search", "nb_schedules": 25, "lpf_limit": 3, "search_block": 4}
MEASURES = ["energy_pj", "latency_cycles", "edp_pj_cycles"]


def space_data(network: Path, options: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """Return a space of eight designs over quad_core.

    A slow port with expensive operations loses, and a width of 0 is invalid.
    """
    return {
        "name": "fused",
        "accelerator": str(HARDWARE / "quad_core.yaml"),
        "networks": {"net": str(network)},
        "axes": {
            "mac_pj": {"path": MAC, "values": [1, 1000]},
            "width": {"path": PORT, "values": [4, 0, 64, 128]},
        },
        "options": OPTIONS | (options or {}),
        **keys,
    }


def explored(data: dict[str, Any], jobs: int = 1) -> Any:
    """Return the exploration of a space, in memory."""
    return explore.explored(data, read_space(data), jobs, lambda count: None)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a network of three layers."""
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    write_network(path)
    return path


@pytest.fixture(scope="module")
def in_one_block(network: Path) -> Any:
    """Return the exploration of the space in one block."""
    return explored(space_data(network, {"search_block": 8}))


@pytest.fixture(scope="module")
def table(in_one_block: Any) -> pandas.DataFrame:
    """Return the rows of the exploration in one block."""
    found: pandas.DataFrame = in_one_block.table
    return found


@pytest.fixture(scope="module")
def in_memory(network: Path) -> Any:
    """Return the exploration of the space in blocks of four designs."""
    return explored(space_data(network))


def test_outcomes_are_told_in_rows(table: pandas.DataFrame) -> None:
    """Rows of found, dropped and invalid designs have the values of their status."""
    rows = table.set_index("design")
    assert set(rows["status"]) == {"ok", "dropped", "invalid"}
    dropped = rows[rows["status"] == "dropped"]
    for _, row in dropped.iterrows():
        better = rows.loc[row["dropped_by"]]
        assert better["status"] == "ok"
        assert better["energy_pj"] <= row["bound_energy_pj"]
        assert better["latency_cycles"] <= row["bound_latency_cycles"]
        assert row["reason"].startswith(
            f"not searched, because no plan can be better than {row['dropped_by']}: every plan takes at least"
            f" {row.bound_latency_cycles:,.0f}"
        )
        assert f"{row['dropped_by']} takes {better['latency_cycles']:,.0f} cycles" in row["reason"]
    fine = rows[rows["status"] == "ok"]
    assert (fine["bound_latency_cycles"] <= fine["latency_cycles"]).all()
    assert (fine["bound_energy_pj"] <= fine["energy_pj"]).all()
    expected = 1 - fine["bound_latency_cycles"] / fine["latency_cycles"]
    assert fine["gap_latency"].tolist() == pytest.approx(expected.tolist())
    assert (fine["searched_schedules"] >= 1).all()
    assert (fine["start_design"] == "").sum() == 1
    assert (rows[rows["status"] != "ok"]["start_design"] == "").all()


def test_starts_are_the_nearest_designs_searched_before(network: Path, table: pandas.DataFrame) -> None:
    """The start of each search is the nearest design that was searched before, by the order of bounds."""
    space = read_space(space_data(network))
    rows = table[table["status"] != "invalid"].sort_values(["bound_latency_cycles", "index"], kind="stable")
    before: list[tuple[tuple[int, ...], int, str]] = []
    for row in rows.itertuples():
        mine = space.positions(row.index)
        if row.status == "ok":
            key = [
                (
                    sum(a != b for a, b in zip(mine, its, strict=True)),
                    sum(abs(a - b) for a, b in zip(mine, its, strict=True)),
                    at,
                    name,
                )
                for its, at, name in before
            ]
            assert row.start_design == (min(key)[3] if key else "")
            before.append((mine, row.index, row.design))


def test_results_are_no_worse_than_the_plan_of_the_neighbour(network: Path, tmp_path: Path) -> None:
    """Each result is at least as good as the plan of its start design, costed by `tilewright fuse`."""
    data = space_data(network, {"objective": "EDP", "search_block": 8})
    space, rows = read_space(data), explored(data).table.set_index("design")
    maker = ShardMaker(space)
    few = {"nb_schedules": 1, "jobs": 1, "lpf_limit": 3, "objective": "EDP"}
    started = rows[rows["start_design"] != ""]
    assert len(started) >= 2
    for _, row in list(started.iterrows())[:2]:
        before = rows.loc[row["start_design"]]
        plan = maker.blocks.plan(int(before["index"]), "net")
        earlier = tmp_path / row["start_design"]
        if not earlier.exists():
            file = tmp_path / f"{row['start_design']}.yaml"
            file.write_text(yaml.safe_dump(space.design(int(before["index"])).hardware))
            earlier.mkdir()
            write_fusion(earlier, Descriptions(file, network, [{"name": "default"}]), plan.details, run=False)
        again: Any = tilewright.fuse(network, space.design(int(row["index"])).hardware, start=earlier, **few)
        assert row["edp_pj_cycles"] <= again.document["start"]["edp"]


def test_plans_travel_to_later_designs_and_back(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans start the searches of later designs, and then of earlier ones.
    The second search of a design never makes its objective worse.
    """
    starts: list[tuple[int, float]] = []
    values: list[int] = []
    plain = DesignPlan.found

    def found(call: DesignPlan, given: Any = (), share: float = 1.0, enough: float = math.inf) -> Any:
        made = plain(call, given, share, enough)
        starts.append((len(given), share))
        values.append(made.artifact.schedule.latency_cycles)
        return made

    monkeypatch.setattr(DesignPlan, "found", found)
    data = space_data(network, {"objective": "latency"}, axes={"width": {"path": PORT, "values": [16, 32, 64]}})
    rows = explored(data).table
    assert (rows["status"] == "ok").all()
    assert [share for _, share in starts] == [0.75] * 3 + [0.25] * 3
    counts = [count for count, _ in starts]
    assert counts == [0, 2, 3, 4, 3, 2]  # with a layer-by-layer plan, and in second searches with the own plan
    assert all(again <= first for first, again in zip(values[:3], values[3:], strict=True))
    assert sorted(rows["latency_cycles"]) == sorted(values[3:])


def test_first_plans_are_made_where_start_plans_are_not_good_enough(network: Path) -> None:
    """A search makes first plans if it has no start plan, or only a bad one. Start plans are always tried."""
    space = read_space(space_data(network))
    (evaluator,) = ShardMaker(space).evaluators.values()
    assert isinstance(evaluator, FusedEvaluator)
    calls = [evaluator.call(parse_accelerator(space.design(index).hardware)) for index in (2, 3)]
    alone = calls[0].found((), 20.0)
    assert alone.layer_by_layer is not None
    starts = [alone.as_start, alone.layer_by_layer]
    near, far = calls[1].found(starts, 20.0), calls[1].found(starts, 20.0, 0.0)
    origins = [{one.origin for one in made.details.found.tried} for made in (alone, near, far)]
    assert {"layer by layer", "uniform"} <= origins[0]
    assert "neighbour" not in origins[0]
    assert not {"layer by layer", "uniform", "composition"} & origins[1]
    assert {"neighbour", "uniform"} <= origins[2]
    assert "neighbour" in origins[1]
    assert "layer by layer" not in origins[2]
    assert near.details.found.layer_by_layer is not None


def test_a_plan_with_steps_is_no_start_where_bounds_do_not_cover_them(network: Path) -> None:
    """A plan that cuts a reduction into steps is no start for another design, unless it has one step."""
    data = space_data(network)
    (evaluator,) = ShardMaker(read_space(data)).evaluators.values()
    assert isinstance(evaluator, FusedEvaluator)
    call = evaluator.call(parse_accelerator(read_space(data).design(3).hardware))
    found = call.found((), 0.1).as_start
    assert call.takes(found)
    for count, is_taken in ((1, True), (2, False)):
        loops = LayerTiles(found.plan.tiles[0].between, (TilingEntry("C", count),))
        plan = replace(found.plan, tiles=(loops, *found.plan.tiles[1:]))
        assert call.takes(replace(found, plan=plan)) == is_taken


def random_space(seed: int, network: Path) -> dict[str, Any]:
    """Return a space with random links, energies and memories, in which some designs lose clearly."""
    draw = random.Random(seed)
    axes = {
        "width": {"path": PORT, "values": draw.sample([1, 2, 64, 256], 2)},
        "mac_pj": {"path": MAC, "values": draw.sample([0.5, 300, 20000], 2)},
        "size": {"path": SIZE, "values": draw.sample(["128 B", "4 KiB", "64 KiB"], draw.choice((1, 2)))},
    }
    options = {"objective": ("latency", "energy", "EDP")[seed % 3], "search_block": draw.choice((3, 8))}
    objectives = draw.choice((["energy_pj", "latency_cycles"], ["edp_pj_cycles"], ["latency_cycles", "area_mm2"]))
    return space_data(network, options, axes=axes, objectives=objectives)


@pytest.mark.parametrize("seed", range(members(12, 3)))
def test_dropped_designs_never_enter_a_front(seed: int, network: Path) -> None:
    """A dropped design that is searched anyway stays worse than the design that drops it."""
    data = random_space(seed, network)
    space, rows = read_space(data), explored(data).table.set_index("design")
    dropped = rows[rows["status"] == "dropped"]
    (evaluator,) = ShardMaker(space).evaluators.values()
    assert isinstance(evaluator, FusedEvaluator)
    for _, row in list(dropped.iterrows())[:2]:
        better = rows.loc[row["dropped_by"]]
        accelerator = parse_accelerator(space.design(int(row["index"])).hardware)
        for objective in ("latency", "energy"):
            more = {"nb_schedules": 100, "objective": objective}
            options = FusedSystemOptions(**{**space.options.as_dict(), **more})
            cost = FusedEvaluator(evaluator.network, None, options).cost(accelerator)
            assert cost.energy_pj >= better["energy_pj"]
            assert cost.latency_cycles >= better["latency_cycles"]
            assert (cost.energy_pj, cost.latency_cycles) != (better["energy_pj"], better["latency_cycles"])


def test_some_random_designs_are_dropped(network: Path) -> None:
    """A random space has dropped designs, so that `test_dropped_designs_never_enter_a_front` compares some."""
    assert (explored(random_space(1, network)).table["status"] == "dropped").any()


def test_designs_that_meet_no_constraint_drop_no_design(network: Path) -> None:
    """A design that violates the constraint drops no other design."""
    free = space_data(network, {"search_block": 8})
    unmet = free | {"constraints": ["latency_cycles >= 10 ** 9"]}
    assert not (explored(unmet).table["status"] == "dropped").any()


@pytest.mark.slow
def test_results_do_not_depend_on_shards_and_processes(network: Path, tmp_path: Path, in_memory: Any) -> None:
    """The table is equal in memory, in shards of any size, and with two processes."""

    def text(jobs: int, size: int, folder: Path | None = None) -> str:
        data = space_data(network, shard_designs=size)
        if folder is None:
            return space_table(answer_of(explored(data, jobs))).to_csv(index=False)
        space = read_space(data)
        explore.complete(data, space, folder, jobs, lambda count: None)
        return space_table(answer_of(explore.gathered(space, folder)[0])).to_csv(index=False)

    expected = space_table(answer_of(in_memory)).to_csv(index=False)
    assert text(2, 1) == expected
    assert text(1, 5, tmp_path / "five") == expected
    assert sorted(path.name for path in (tmp_path / "five" / "shards").iterdir()) == ["00000.parquet"]
    assert text(1, 3, tmp_path / "three") == expected
    assert len(list((tmp_path / "three" / "shards").iterdir())) == 2


def test_blocks_are_independent(network: Path, in_memory: Any) -> None:
    """A design computed alone has the values of the whole space, because starts come from its own block."""
    space, rows = read_space(space_data(network)), in_memory.table
    ((alone, _),) = ShardMaker(space).rows([7])
    whole = rows[rows["index"] == 7].iloc[0]
    assert {key: alone[0][key] for key in MEASURES} == {key: whole[key] for key in MEASURES}
    for row in rows.itertuples():
        for other in filter(None, (row.start_design, row.dropped_by)):
            assert rows.set_index("design").loc[other, "index"] // 4 == row.index // 4


def test_sums_over_networks_have_summed_bounds(network: Path, tmp_path: Path) -> None:
    """Bounds, schedules and gaps of networks are added up, and a design is dropped on all networks or on none."""
    other = tmp_path / "other.onnx"
    other.write_bytes(network.read_bytes())
    data = space_data(network, {"search_block": 8}, networks={"one": str(network), "two": str(other)})
    answer = answer_of(explored(data))
    rows, sums = answer.exploration.table, answer.overall.rows.set_index("design")
    assert set(rows.groupby("index")["status"].nunique()) == {1}
    assert len(sums) >= 2
    for name, group in rows[rows["status"] == "ok"].groupby("design"):
        total = sums.loc[name]
        for gap, bound, value in zip(
            ("gap_energy", "gap_latency", "gap_edp"),
            ("energy_pj", "latency_cycles", "edp_pj_cycles"),
            MEASURES,
            strict=True,
        ):
            least = group[f"bound_{bound}"].sum()
            assert total[f"bound_{bound}"] == pytest.approx(least)
            assert total[gap] == pytest.approx(1 - least / group[value].sum())
        assert total["searched_schedules"] == group["searched_schedules"].sum()
        assert total["start_design"] == ""


def test_the_answer_says_what_is_searched(in_one_block: Any) -> None:
    """The answer tells the number of dropped designs and the largest gap; without dropped designs, no sentence does."""
    exploration = in_one_block
    answer = answer_of(exploration)
    count = exploration.dropped
    assert count >= 1
    text = answer_text(answer)
    assert f"{count} dropped by their bounds" in text.splitlines()[0]
    assert f"{count} design{'s are' if count > 1 else ' is'} of 8" not in text
    assert any(one.startswith(f"{count} design") and "not searched" in one for one in answer.assumptions)
    largest = answer.overall.members["gap_latency"].max()
    assert f"{largest:.1%} (largest)" in answer.mapping_notes[0]
    assert list(dropped_sentences(exploration.table[exploration.table["status"] == "ok"])) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"options": {"fusion": "serch"}}, "options.fusion: unknown value, got 'serch'"),
        ({"options": {"fusion": "search", "nb_schedules": 0}}, "options.nb_schedules: not a count"),
        ({"options": {"fusion": "search", "search_block": 0}}, "options.search_block: not a count"),
        (
            {"options": {"fusion": "search", "nb_ga_generations": 3}},
            "is not searched: remove this key, or the key `fusion`",
        ),
        ({"options": {"fusion": "search", "nb_schedule": 3}}, "did you mean 'nb_schedules'?"),
        ({"options": {"fusion": "search", "fusion_time_budget_s": 3}}, "options.fusion_time_budget_s: no such setting"),
        ({"options": {"nb_schedules": 3}}, "fusion is searched: add `fusion: search`"),
        ({"options": {"fusion": "search", "exploit_data_locality": True}}, "is only for an accelerator with one core"),
        (
            {
                "accelerator": str(HARDWARE / "cores" / "k16_c16.yaml"),
                "axes": {"x": {"path": "name", "values": ["x"]}},
                "options": {"fusion": "search", "nb_schedules": 5},
            },
            "options.fusion: is only for an accelerator with several cores",
        ),
        ({"axes": {"dropped_by": {"path": WIDTH, "values": [1]}}}, "already the name of a column"),
    ],
)
def test_what_is_wrong_with_a_space_is_told(network: Path, keys: dict[str, Any], said: str) -> None:
    """Messages name the place in the file of the space."""
    with pytest.raises(InputError) as raised:
        read_space({**space_data(network), **keys})
    found = [str(problem) for problem in raised.value.problems]
    assert any(said in one for one in found), found


@pytest.mark.slow
def test_the_command_the_run_of_a_design_and_a_decision(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The full run of a design has the numbers of the table; a dropped design has no run.
    The decision names the dropped designs.
    """
    file, out = tmp_path / "it.yaml", tmp_path / "out"
    file.write_text(json.dumps(space_data(network, {"search_block": 8})))
    assert main(["explore", str(file), "-o", str(out), "--no-store"]) == 0
    assert "not searched, because no plan can be better" in capsys.readouterr().out
    rows = pandas.read_csv(out / "space.csv").set_index("design")
    name = rows[rows["pareto"] == True].index[0]  # noqa: E712
    assert main(["explore", str(file), "-o", str(out), "--show", name]) == 0
    run = out / "designs" / name / "net"
    summary = json.loads((run / "summary.json").read_text())["payload"]
    assert summary["energy_pj"] == rows.loc[name, "energy_pj"]
    assert summary["latency_cycles"] == rows.loc[name, "latency_cycles"]
    assert (run / "fusion.json").is_file()
    assert (run / "checks.json").is_file()
    capsys.readouterr()
    dropped = rows[rows["status"] == "dropped"].index[0]
    assert main(["explore", str(file), "-o", str(out), "--show", dropped]) == 2
    assert "not searched, because no plan can be better" in capsys.readouterr().err
    assert main(["decide", str(out), "--objective", "latency", "--no-advice"]) == 0
    assert "not searched" in capsys.readouterr().out
