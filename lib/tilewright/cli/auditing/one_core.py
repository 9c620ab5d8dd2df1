"""Audit of a run on one core.

The layers are mapped again, and the totals are summed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import Artifact, read_artifact
from tilewright.base.errors import InputError, MappingError, Problem, TimeBudgetError
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import made_of
from tilewright.base.steps import LAYERS, SUMMARY
from tilewright.base.unused import UNUSED
from tilewright.cli.auditing.inputs import (
    GivenDescriptions,
    changed,
    first_of,
    is_of_this_code,
    named_by_manifest,
    not_found,
    note_of_code,
)
from tilewright.cli.auditing.items import (
    LAYER,
    NOTHING,
    TOTALS,
    AuditDifference,
    AuditItem,
    Findings,
    LeftOut,
    Made,
    NotAudited,
    as_stored,
    compared,
    differences,
)
from tilewright.cli.described_run import (
    HARDWARE,
    MAPPING,
    WORKLOAD,
    DescribedRun,
    hardware_digest,
    mapping_digest,
    network_digest,
)
from tilewright.cli.map import input_digests, pipeline_of, stated_pipeline
from tilewright.cli.runs import records_of
from tilewright.search.front import front_of
from tilewright.search.options import MapOptions, SearchOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord
    from tilewright.pipeline.stages.descriptions import NetworkProblem
    from tilewright.pipeline.stages.pipeline import Pipeline


class OneCoreRun(Findings):
    """Folder that `tilewright map` wrote. Raises InputError if its layers cannot be recomputed."""

    def __init__(self, folder: Path, given: GivenDescriptions) -> None:
        from tilewright.pipeline.stages.run import sums_up_plainly

        super().__init__()
        self.folder, self._given = folder, given
        self._made_by = self._layers.provenance
        self._problem, self._stages = self._read()
        self.notes += note_of_code(folder / LAYERS, self._made_by, "map")
        is_own = is_of_this_code(self._made_by, "map")
        for place, row in enumerate(self._layers.payload):
            item = AuditItem(folder, LAYER, row["layer"]["name"], place)
            if left_out := _left_out(item, row, is_own):
                self.left_out.append(left_out)
            else:
                self.items.append(item)
        self.items += [AuditItem(folder, LAYER, name) for name in self._without_record()]
        if (folder / SUMMARY).is_file() and sums_up_plainly(self._stages):
            self.items.append(AuditItem(folder, TOTALS, ""))
        elif (folder / SUMMARY).is_file():
            self.not_audited.append(NotAudited(str(folder / SUMMARY), "its totals come from a stage that a user wrote"))

    @property
    def _layers(self) -> Artifact:
        """Artifact with the stored rows of the layers. It is read anew for each use, because the rows of all runs
        together can be large.
        """
        return read_artifact(self.folder / LAYERS, "tilewright/layers")

    def again(self, items: Sequence[AuditItem]) -> Iterator[Made]:
        """Comparisons of items with the stored results. Layers are mapped again, and totals are summed again."""
        rows = self._layers.payload
        layers = [item for item in items if item.kind == LAYER]
        for item, found in zip(layers, self._mapped([item.name for item in layers]), strict=True):
            stored = NOTHING if item.place is None else rows[item.place]
            yield _judged(item, stored, found)
        yield from (self._totals(item) for item in items if item.kind == TOTALS)

    def _without_record(self) -> list[str]:
        """Names of layers that are in the network, but have no row in the layer file of the run."""
        known = {name for row in self._layers.payload for name in row.get("layer_names", [row["layer"]["name"]])}
        layers = [node.layer for node in self._problem.workload.layers_in_order]
        return [layer.name for layer in layers if layer is not None and layer.name not in known]

    def _mapped(self, names: Sequence[str]) -> list[JsonObject | MappingError]:
        """Record of each named layer, or an error for a layer without a mapping. All layers are mapped together. If
        this fails, each layer is mapped alone.
        """
        from tilewright.cost.record import record_row
        from tilewright.pipeline.stages.base import Control
        from tilewright.pipeline.stages.run import map_some_layers

        if not names:
            return []
        with TemporaryDirectory() as exports:  # files that stages write are discarded
            try:
                found = map_some_layers(self._problem, self._stages, names, Control(exports=Path(exports)))
            except MappingError as error:
                if len(names) == 1:
                    return [error]
                return [row for name in names for row in self._mapped([name])]
        if self._choice:
            found = tuple(self._at_chosen_point(found))
        row_of = {name: record for record in found for name in record.names}
        none = MappingError("no record of a layer of this name")
        return [as_stored(record_row(row_of[name])) if name in row_of else none for name in names]

    def _chosen_point(self) -> int:
        """Index of the point that the options of the run choose on the Pareto front of the network. The front is read
        from the stored summary.
        """
        from tilewright.pipeline.stages.front_choice import chosen_point

        options = MapOptions(**self._choice)
        return chosen_point(front_of(self._stored_summary["front"]), options, self._problem.core)

    def _at_chosen_point(self, found: "Sequence[LayerRecord]") -> "list[LayerRecord]":
        """Records of the layers at one point of the network's Pareto front. The options of the run choose this point
        from the front in the stored summary. The mappings of the point are taken from the fronts of the layers in
        `found`, the records of the new search.
        """
        from tilewright.pipeline.stages.base import Control
        from tilewright.pipeline.stages.front_choice import records_at

        point = front_of(self._stored_summary["front"]).points[self._chosen_point()]
        return records_at(self._problem, self._stored_summary, point, found, self._options, Control())

    @cached_property
    def _stored_summary(self) -> Mapping[str, Any]:
        """Summary of the run. Raises InputError if there is none."""
        stored: Mapping[str, Any] = read_artifact(self.folder / SUMMARY, "tilewright/single-summary").payload
        return stored

    def _totals(self, item: AuditItem) -> Made:
        """Comparison of the stored summary with a summary that is computed again from the stored records."""
        from tilewright.pipeline.stages.run import summed_again
        from tilewright.results.error_bars.bars import bars_of_records
        from tilewright.results.error_bars.bars_text import ERROR_BARS
        from tilewright.results.error_bars.table import check_class

        stored = read_artifact(self.folder / SUMMARY, "tilewright/single-summary").payload
        records = records_of(self._layers, self.folder / LAYERS)
        try:
            summary = summed_again(self._problem, self._stages, records).summary
            if ERROR_BARS in stored:
                hardware, device_class = self._made_by["inputs"]["hardware"], check_class(stored[ERROR_BARS]["class"])
                summary = {**summary, ERROR_BARS: bars_of_records(records, summary, hardware, device_class)}
            again = as_stored(summary)
        except InputError as error:  # without a record for each layer, no totals
            return Made(item, (AuditDifference("summary", "there", str(error)),))
        # Notices of unused input are not results, so they are not compared.
        found = list(differences({**stored, UNUSED: None}, {**again, UNUSED: None}))
        if self._choice and (point := self._chosen_point()) != stored["front"]["point_of_run"]:
            found.append(AuditDifference("summary.front.point_of_run", stored["front"]["point_of_run"], point))
        return Made(item, tuple(found))

    def _read(self) -> "tuple[NetworkProblem, Pipeline]":
        """Pair (network with its core, stages that map the network). Raises InputError if input files or stages have
        changed.
        """
        from tilewright.pipeline.stages.descriptions import Descriptions

        stated = dict(self._made_by["options"])
        self._choice = stated.pop("choice", {})
        stages_stated = stated.pop("pipeline", None)
        options = self._options = made_of(SearchOptions, stated)
        files = self._files()
        pipeline = None
        if stages_stated is not None:
            pipeline = [{"stage": one["stage"], "parameters": one["parameters"]} for one in stages_stated]
        stages = pipeline_of(pipeline, options, files[WORKLOAD])
        if stages_stated is not None and as_stored(stated_pipeline(stages)) != stages_stated:
            raise InputError("its pipeline has changed since the run: code or parameters of a stage differ")
        described = Descriptions(files[HARDWARE], files[WORKLOAD], files[MAPPING], self._given.network_options)
        problem: NetworkProblem = next(stages.parsers().run(described))
        if wrong := changed(self._made_by["inputs"], input_digests(problem), files):
            raise InputError(map(Problem, wrong))
        return problem, stages

    def _files(self) -> dict[str, Any]:
        """Input files of the run, by kind. If the provenance of the run has the digest of an input, a file with this
        digest is preferred. Raises InputError if a file is not found.
        """
        from tilewright.designs.design_cost import NO_MAPPING
        from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload, single_core

        run, given, named = self._described, self._given.files, named_by_manifest(self.folder, "map")
        found: dict[str, Any] = {WORKLOAD: given.get(WORKLOAD)}
        for kind, digest_of, search in (
            (HARDWARE, hardware_digest, run.hardware),
            (MAPPING, mapping_digest, run.mapping),
        ):
            found[kind] = first_of(given.get(kind), digest_of, run.digests.get(kind), partial(named.get, kind), search)
        if found[MAPPING] is None and content_digest(encode(parse_mapping(NO_MAPPING))) == run.digests.get(MAPPING):
            found[MAPPING] = list(NO_MAPPING)
        if found[HARDWARE] is not None:
            accelerator = parse_accelerator(found[HARDWARE])
            with suppress(InputError):  # hardware with several cores is reported later
                core, options = single_core(accelerator), self._given.network_options

                def digest_of_network(path: Path) -> str:
                    return network_digest(parse_workload(path, run.model, options=options), core)

                others = partial(named.get, WORKLOAD), partial(run.network, core, options)
                found[WORKLOAD] = first_of(found[WORKLOAD], digest_of_network, run.digests.get(WORKLOAD), *others)
        if error := not_found(run, found):
            raise error
        return found

    @cached_property
    def _described(self) -> DescribedRun:
        summary = None
        if (self.folder / SUMMARY).is_file():
            summary = read_artifact(self.folder / SUMMARY, "tilewright/single-summary").payload
        return DescribedRun.of(self.folder, self._made_by, summary)


def _judged(item: AuditItem, stored: Any, found: JsonObject | MappingError) -> Made:
    """Comparison of the stored row of a layer with the recomputed row.

    `stored` is NOTHING if the file has no row of the layer. `found` is the recomputed row, or an error if the layer
    could not be mapped. If a time budget ended the new search, the result says so and has no differences.
    """
    if isinstance(found, TimeBudgetError):
        return Made(item, ended=f"a time budget ended its search in this audit: {found}")
    if isinstance(found, MappingError):
        return Made(item, (AuditDifference("record", "there" if isinstance(stored, dict) else stored, str(found)),))
    if _is_ended(found):
        return Made(item, ended="a time budget ended its search in this audit")
    return Made(item, compared(stored, found, "record"))


def _is_ended(row: dict[str, Any]) -> bool:
    return bool(row.get("search", {}).get("ended_by_time", False))


def _left_out(item: AuditItem, row: dict[str, Any], is_of_this_code: bool) -> LeftOut | None:
    """Layer that the audit leaves out, because a time budget ended its search, or may have ended it. None for other
    layers.
    """
    search = row.get("search", {})
    if _is_ended(row):
        return LeftOut(item, "a time budget ended its search")
    if is_of_this_code or search.get("proven", True):
        return None
    # Another version of the code perhaps did not record that a time budget ended the search.
    return LeftOut(item, "its search ended without a proof", is_sure=False)
