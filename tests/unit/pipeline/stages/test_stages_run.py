"""Stages while they run: items go down, results come up; layers, store, progress, and stages that only look."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tilewright.base.errors import InputError, MappingError
from tilewright.cost.record import record_row
from tilewright.mapping.constraints import Mapping
from tilewright.pipeline.stages import Change, Control, LayerProblem, NetworkProblem, Rest, Stage
from tilewright.pipeline.stages.base import WrongTypeError, run_stages
from tilewright.pipeline.stages.descriptions import of_core
from tilewright.pipeline.stages.layers import order_total
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import (
    map_layer,
    map_problem,
    map_some_layers,
    map_workload,
    summed_again,
    sums_up_plainly,
)
from tilewright.pipeline.stages.spatial_conversion import SpatialMappingConversion
from tilewright.pipeline.stages.temporal import OPEN_ORDER, CostModel, Loma
from tilewright.pipeline.stages.workload import Workload
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store

from tests.unit.cost.engine_cases import constraints, gemm, network, small_core
from tests.unit.pipeline.stages.stage_cases import (
    CORE,
    LAYERS,
    MAPPING,
    NETWORK,
    ONE,
    OPTIONS,
    SEARCH,
    TWO,
    ordered_mapping,
    problem,
    run,
)


@dataclass(frozen=True)
class Doubled(Change):
    """Passes on twice the number that the stage receives."""

    takes = int
    gives = int

    def change(self, item: int) -> int:
        """Returns twice the number."""
        return 2 * item


@dataclass(frozen=True)
class Seen(Stage):
    """Records the layers whose results pass it."""

    observes = True
    seen: ClassVar[list[str]] = []

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Record the layer of each result, and yield the result."""
        for result in rest(item):
            self.seen.append(result.layer.name)
            yield result


# base -----------------------------------------------------------------------------------------------------------------


def test_a_slice_yields_the_items_of_its_last_stage() -> None:
    """The first stages of a pipeline, run alone, yield the items that they hand on to the next stage."""
    assert list(run_stages([Doubled(), Doubled()], 3)) == [12]
    assert list(run_stages([], 3)) == [3]


def test_items_of_another_type_are_refused() -> None:
    """An item of a type that the stage does not take raises WrongTypeError."""
    with pytest.raises(WrongTypeError, match="Workload takes NetworkProblem, not int"):
        list(run_stages([Workload()], 3))


def test_stages_are_values() -> None:
    """Stages are frozen values: equal parameters make equal stages."""
    assert Loma(3) == Loma(3) != Loma(4)
    with pytest.raises(AttributeError):
        Loma(3).lpf_limit = 4  # type: ignore[misc]


# layers ---------------------------------------------------------------------------------------------------------------


def test_map_layer_is_a_slice_of_map_workload() -> None:
    """`map_layer` gives a layer the record that it has in a network."""
    mapped = map_workload(NETWORK, CORE, MAPPING, OPTIONS)
    record = map_layer(TWO, CORE, MAPPING.entries[0], OPTIONS)
    in_network = mapped.records[1]
    assert in_network == replace(record, layer_names=("two",))
    assert [r.layer_names for r in mapped.records] == [("one", "three"), ("two",)]


def test_given_orders_are_converted() -> None:
    """A complete ordering is the only mapping that Loma or TemporalOrderingConversion evaluates."""
    converted = run([{"replace": "Loma", "stage": "TemporalOrderingConversion"}], mapping=ordered_mapping())
    assert converted == run(mapping=ordered_mapping())
    assert [record.evaluations for record in converted.records] == [1, 1]
    assert converted.records[1].loop_order == (("C", 12), ("D", 5), ("K", 6))


def test_open_orders_are_a_reason() -> None:
    """An incomplete ordering is an error, raised once at the end for all layers."""
    with pytest.raises(MappingError) as caught:
        run([{"replace": "Loma", "stage": "TemporalOrderingConversion"}])
    assert str(caught.value).startswith("no mapping of 3 layers fits core 'small': one, three, two\n  one with D1")
    assert OPEN_ORDER in str(caught.value)


def test_given_spatial_mapping_without_a_generator() -> None:
    """Conversion alone takes the file's unrolling, cut to the array; open sides are not used."""
    mapping = Mapping((constraints((("D1", (("K", 100),)),)),))
    mapped = run([{"drop": "SpatialMappingGenerator"}], mapping=mapping)
    assert [record.spatial_mapping for record in mapped.records] == [{"D1": {"K": 4}, "D2": {}}] * 2
    assert [len(record.candidates) for record in mapped.records] == [1, 1]


def test_impossible_spatial_mapping_is_a_row() -> None:
    """A spatial mapping that cannot be converted does not end the search; it gets a row with the reason."""
    unlinked = replace(MAPPING.entries[0], memory_operand_links=(("O", "O"), ("W", "I7"), ("I", "I1")))
    item = LayerProblem(TWO, CORE, unlinked)
    (found,) = run_stages([SpatialMappingConversion(), Loma(), CostModel()], item)
    assert found.costs is None
    assert "no memory for operand W (I7)" in found.tally[0].reason


def test_same_data_counts_where_it_is_told_to() -> None:
    """The switch for reads of the same data, a keyword of zigzag-dse, raises the energy where data are used again."""
    mapping = Mapping((constraints((("D1", ()), ("D2", ())), [["K", 6], ["C", 12], ["D", 5]]),))
    energies = []
    for switch in (True, False):
        parameters = {"access_same_data_considered_as_no_access": switch}
        pipeline = Pipeline.build([{"set": "SpatialMappingConversion", "parameters": parameters}], OPTIONS)
        energies.append(map_problem(of_core(network([TWO]), CORE, mapping), pipeline).summary["energy_pj"])
    assert energies[0] < energies[1]


def test_data_locality_spares_the_top_memory() -> None:
    """Both stages keep data between layers below the top memory if they fit; the area is still that of the
    whole core.
    """
    chain = network([gemm("a", C=8, D=4, K=8), gemm("b", C=8, D=4, K=8)])
    nodes = (chain.nodes[0], replace(chain.nodes[1], sources=(("I", 0),)))
    chain = replace(chain, nodes=nodes)
    core = small_core()
    plain = map_workload(chain, core, MAPPING, OPTIONS)
    local = map_workload(chain, core, MAPPING, replace(OPTIONS, exploit_data_locality=True))
    assert local.summary["energy_pj"] < plain.summary["energy_pj"]
    assert local.summary["area_mm2"] == plain.summary["area_mm2"]
    assert local.records[0].search == {}


# store and observers --------------------------------------------------------------------------------------------------


def test_stages_that_look_see_stored_results(tmp_path: Path) -> None:
    """A stage right below Workload that changes nothing receives every layer, also if all results are stored ones."""
    store = Store(tmp_path)
    pipeline = [{"insert": Seen, "after": "Workload"}]
    first = run(pipeline, store=store)
    Seen.seen.clear()
    again: list[dict[str, Any]] = []
    assert run(pipeline, store=store, on_record=again.append) == first
    assert (Seen.seen, again) == (["one", "two"], [])
    assert run(store=store, on_record=again.append) == first
    assert again == [], "and it is no part of what was searched"


def test_stages_that_look_may_stand_below_a_change(tmp_path: Path) -> None:
    """Stages that only read results may stand below the stage that removes memories, as in zigzag-dse."""
    names = ["Sum", "SearchUnusedMemory", "Workload", "RemoveUnusedMemory", "CompleteSave", "MinimalLatency", *SEARCH]
    store = Store(tmp_path / "store")
    first = run(names, store=store, exports=tmp_path / "first")
    again: list[dict[str, Any]] = []
    assert run(names, store=store, exports=tmp_path / "again", on_record=again.append) == first
    assert again == []
    for folder in ("first", "again"):
        assert len(list((tmp_path / folder).glob("*_complete.json"))) == 3
    assert run([name for name in names if name != "CompleteSave"]) == first


def test_stages_without_a_file_are_not_stored(tmp_path: Path) -> None:
    """A stage without a file for its code is not stored, and is searched each time."""
    scope: dict[str, Any] = {"__name__": "nowhere"}
    exec(
        "from dataclasses import dataclass\nfrom tilewright.pipeline.stages import Change, LayerProblem\n\n"
        "@dataclass(frozen=True)\nclass Nothing(Change):\n    how: object = len\n    takes = LayerProblem\n"
        "    gives = LayerProblem\n\n    def change(self, item):\n        return item\n",
        scope,
    )
    mapped = run([{"insert": scope["Nothing"], "after": "Workload"}], store=Store(tmp_path / "store"))
    assert mapped == run()
    assert not (tmp_path / "store").exists()


def test_the_store_tells_pipelines_apart(tmp_path: Path) -> None:
    """Another reduction, mapper or parameter below Workload makes other entries in the store; stages above it
    do not.
    """
    store = Store(tmp_path)
    run(store=store)
    entries = len(store.entries())
    run([{"drop": "Sum"}], store=store)
    run([{"set": "ONNXModelParser", "parameters": {"model": "corrected"}}], store=store)
    assert len(store.entries()) == entries
    for number, edit in enumerate(
        (
            {"replace": "MinimalLatency", "stage": "MinimalEDP"},
            {"set": "Loma", "parameters": {"lpf_limit": 3}},
            {"replace": "Loma", "stage": "Salsa", "parameters": {"salsa_iteration_number": 20}},
        ),
        2,
    ):
        run([edit], store=store)
        assert len(store.entries()) == number * entries


def test_several_records_of_a_layer_are_stored(tmp_path: Path) -> None:
    """The store gives a stage that looks at records all records of a layer; without such a stage, the chosen record."""
    search = [stage for stage in SEARCH if stage != "MinimalLatency"]
    store, options = Store(tmp_path / "store"), SearchOptions(lpf_limit=2)
    first = run(["Workload", *search], options, store=store)
    for name in ("once", "again"):
        saved = run(["Workload", "SimpleSave", *search], options, store=store, exports=tmp_path / name)
        assert saved == first
    again: list[dict[str, Any]] = []
    assert run(["Workload", *search], options, store=store, on_record=again.append) == first
    assert again == []
    texts = [(tmp_path / name / "two_simple.json").read_text() for name in ("once", "again")]
    assert len(json.loads(texts[0])) == first.records[1].alternatives + 1 > 2
    assert texts[0] == texts[1]


def test_saving_inside_a_search_needs_the_search(tmp_path: Path) -> None:
    """A stage that writes during the search is run, even with a store."""
    pipeline = ["Sum", "Workload", "MinimalLatency", "SimpleSave", *SEARCH]
    for name in ("first", "second"):
        run(pipeline, store=Store(tmp_path / "store"), exports=tmp_path / name)
        assert (tmp_path / name / "one_simple.json").is_file()
    assert not (tmp_path / "store").exists()


# progress -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["loma", "salsa"])
def test_progress_knows_its_total(engine: str) -> None:
    """The total announced before the search equals the progress reported during it."""
    options = SearchOptions(temporal_mapping_search_engine=engine, lpf_limit=4, salsa_iteration_number=30)
    stages = Pipeline.build(None, options).stages
    below = stages[[stage.name() for stage in stages].index("Workload") + 1 :]
    told: list[int] = []
    search = Rest(below, Control(advance=told.append))
    item = LayerProblem(ONE, CORE, MAPPING.entries[0])
    total = order_total(search, item)
    assert told == []
    list(search(item))
    assert sum(told) == total > 0


def test_nobody_knows_how_long_an_exact_search_takes() -> None:
    """The exact search cannot count its orders, so its total is None."""
    stages = Pipeline.build(None, SearchOptions(temporal_mapping_search_engine="exact")).stages
    assert order_total(Rest(stages[5:]), LayerProblem(ONE, CORE, MAPPING.entries[0])) is None


def test_progress_of_an_impossible_layer() -> None:
    """A layer that cannot be mapped announces a total of 0 and raises no error."""
    stages = Pipeline.build(None, OPTIONS).stages
    impossible = replace(MAPPING.entries[0], spatial_mapping=(("D9", ()),))
    assert order_total(Rest(stages[5:]), LayerProblem(ONE, CORE, impossible)) == 0


# saving ---------------------------------------------------------------------------------------------------------------


def test_what_is_saved(tmp_path: Path) -> None:
    """Each form of export has the values of the records.

    Save stages below Sum write a file for each layer; save stages above Sum write the values of the network.
    """
    pipeline = [
        {"insert": "SimpleSave", "before": "Sum"},
        {"insert": "PickleSave", "before": "Sum"},
        {"insert": "Dump", "before": "Sum"},
        {"insert": "CompleteSave", "after": "Workload"},
        {"insert": "SimpleSave", "after": "Workload"},
    ]
    mapped = run(pipeline, exports=tmp_path)
    assert mapped == run()
    overall = json.loads((tmp_path / "overall_simple.json").read_text())
    assert overall == {"energy": mapped.summary["energy_pj"], "latency": mapped.summary["latency_cycles"]}
    for layer, index in mapped.summary["layer_index"]:
        record = mapped.records[index]
        simple = json.loads((tmp_path / f"{layer}_simple.json").read_text())
        assert simple == {"energy": record.energy_pj, "latency": record.latency_cycles}
        complete = json.loads((tmp_path / f"{layer}_complete.json").read_text())
        assert complete["outputs"]["energy"]["energy_total"] == record.energy_pj
        assert complete["inputs"]["layer"]["name"] == layer
    pickled = pickle.loads((tmp_path / "list_of_cmes.pickle").read_bytes())
    assert [entry["inputs"]["layer"]["name"] for entry in pickled] == ["one", "two", "three"]
    (dumped,) = pickle.loads((tmp_path / "dump.pickle").read_bytes())
    assert dumped == {"summary": mapped.summary, "records": [record_row(record) for record in mapped.records]}


def test_every_evaluation_can_be_saved(tmp_path: Path) -> None:
    """Stages without a reduction below them save all points, in one file for each spatial mapping."""
    pipeline = ["Sum", "Workload", "MinimalLatency", *SEARCH[:2], "SimpleSave", "Dump", "Loma", "CostModel"]
    mapped = run(pipeline, exports=tmp_path)
    assert mapped == run()
    record = mapped.records[1]
    for number, row in enumerate(record.candidates):
        name = f"two-{number}" if number else "two"
        points = json.loads((tmp_path / f"{name}_simple.json").read_text())
        assert len(points) == row.feasible
        assert min(point["latency"] for point in points) == row.latency_cycles
        (dumped,) = pickle.loads((tmp_path / f"{name}_dump.pickle").read_bytes())
        assert len(dumped["loop_orders"]) == row.feasible


def test_figures_are_drawn(tmp_path: Path) -> None:
    """Every layer gets a figure of its loop nest, and the network gets its bars; slashes in names are replaced."""
    slashed = network([replace(LAYERS[0], name="a/b"), TWO])
    pipeline = Pipeline.build([{"insert": "PlotTemporalMappings", "before": "Workload"}], OPTIONS)
    list(pipeline.search().run(of_core(slashed, CORE, MAPPING), Control(exports=tmp_path)))
    stems = ("a_b_loop_nest", "two_loop_nest", "breakdown")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{s}.{e}" for s in stems for e in ("svg", "png"))
    assert "<svg" in (tmp_path / "a_b_loop_nest.svg").read_text()


def test_layers_of_one_file_are_refused() -> None:
    """Two layers with equal file names are reported before anything is searched."""
    names = network([replace(ONE, name="a/b"), replace(TWO, name="a_b")])
    pipeline = Pipeline.build([{"insert": "SimpleSave", "after": "Workload"}], OPTIONS)
    with pytest.raises(InputError, match="the files of another layer would have the same names"):
        list(pipeline.search().run(of_core(names, CORE, MAPPING)))


class Ranked(Stage):
    """Gives a number to each record that passes the stage."""

    takes = NetworkProblem

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[Any]:
        """Yields each record with its position among all."""
        for place, record in enumerate(rest(item)):
            yield replace(record, alternatives=place)


@pytest.mark.parametrize(
    "pipeline",
    [
        None,
        [{"drop": "Sum"}],
        [{"insert": "PlotTemporalMappings", "before": "Workload"}],
        [{"insert": Ranked, "before": "Workload"}],
    ],
    ids=["default", "without Sum", "drawn", "ranked"],
)
@pytest.mark.parametrize("options", [OPTIONS, replace(OPTIONS, exploit_data_locality=True)], ids=["top", "locality"])
def test_some_layers_are_as_among_all(pipeline: Any, options: SearchOptions, tmp_path: Path) -> None:
    """`map_some_layers` gives the records that the wanted layers have in a run of all layers.

    A layer is wanted by any of its names. The totals can be computed again from the records of all layers.
    """
    built = Pipeline.build(pipeline, options)
    searched: list[Any] = []
    control = Control(exports=tmp_path / "some", on_record=searched.append)
    mapped = map_problem(problem(), built, Control(exports=tmp_path / "all"))
    for names in (["two"], ["three"], ["two", "one"]):
        wanted = tuple(record for record in mapped.records if not set(names).isdisjoint(record.names))
        assert map_some_layers(problem(), built, names, control) == wanted
    assert bool(searched)
    assert not (tmp_path / "some").exists()
    assert sums_up_plainly(built)
    assert summed_again(problem(), built, mapped.records) == mapped


def test_only_the_layers_that_are_asked_for_are_searched() -> None:
    """Layers that are not wanted are not searched."""
    searched: list[Any] = []
    map_some_layers(problem(), Pipeline.build(None, OPTIONS), ["two"], Control(on_record=searched.append))
    assert [record.layer.name for record in searched] == ["two"]


def test_network_problem_has_one_core() -> None:
    """A network problem for an accelerator with two cores has no single core, and asking for it is an error."""
    several = replace(problem(), accelerator=replace(problem().accelerator, cores=(CORE, CORE)))
    assert isinstance(several, NetworkProblem)
    with pytest.raises(InputError, match="has 2 cores"):
        _ = several.core
