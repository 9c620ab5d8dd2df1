"""Random runs whose advice is compared with runs of the changed files."""

import random
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tilewright.base.errors import InputError, MappingError
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.evaluate import evaluate
from tilewright.cli.map import map_workload
from tilewright.cost.record import LayerRecord
from tilewright.designs.advice import Advice, Advices
from tilewright.designs.advice_gaps import NOT_KNOWN
from tilewright.designs.changes import mapping_changes, possible_changes
from tilewright.designs.core_trials import OUTERMOST, ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.trials import advices_of
from tilewright.hardware.core import single_core
from tilewright.hardware.text_edits import changed_text
from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload
from tilewright.results.recorded_mappings import mapping_entries
from tilewright.results.records import layers_in_order
from tilewright.search.options import SearchOptions

from benchmarks.shipped import shipped
from tests.plain.tally import Tally

CONFIG = Path(__file__).resolve().parents[3] / "config"
ACCELERATORS = ("tpu_like", "eyeriss_like", "edge_tpu_like", "cube_3d", "meta_prototype_df")
NETWORKS = ("bert_tiny", "resnet18", "mobilenetv2")
FACTORS = (Fraction(2), Fraction(2), Fraction(3, 2), Fraction(4), Fraction(3))


@cache
def network(name: str, model: str) -> Any:
    """Read a network, once in each process."""
    return parse_workload(CONFIG / "workload" / f"{name}.onnx", model=model)


def random_options(rng: random.Random) -> SearchOptions:
    """Return options of a search that ends soon."""
    return SearchOptions(
        objective=rng.choice(("energy", "latency", "EDP")),
        model=rng.choice(("corrected", "zigzag-3.9.1")),
        lpf_limit=rng.choice((2, 3)),
        exploit_data_locality=rng.random() < 0.3,
        temporal_mapping_type=rng.choice(("uneven", "uneven", "even")),
    )


def try_advices(seed: int, count: int = 20, networks: tuple[str, ...] = NETWORKS) -> Tally:
    """Confirm some random advice of a random run by runs of the changed file."""
    rng, tally = random.Random(seed), Tally()
    base, options = rng.choice(ACCELERATORS), random_options(rng)
    workload = network(rng.choice(networks), options.model)
    hardware, given = shipped("hardware", base), shipped("mapping", base)
    mapping = parse_mapping(rng.choice((given, [{"name": "default"}])))
    try:
        mapped = map_workload(workload, hardware, mapping, options)
    except MappingError:
        tally.counts["runs without a result"] += 1
        return tally
    placed = layers_in_order(mapped.records, mapped.summary)
    document = load_yaml(hardware)
    run = ExplainedRun("run", placed, document.data, workload, mapping, options)
    changes = possible_changes(document, rng.choice(FACTORS))
    chosen = rng.sample(changes, min(count, len(changes)))
    found = advices_of(run, chosen, search=True)
    tally.counts.update({"runs": 1, f"base: {base}": 1})
    if notes := [note for note in found.notes if note != NOT_KNOWN and not note.endswith(OUTERMOST)]:
        tally.wrong.append(f"seed {seed}: {notes}")
    entries = mapping_entries(mapped.records)
    for one in found.found:
        tally.counts.update({"advices": 1, f"kind: {one.change.kind}, {'more' if one.change.more else 'less'}": 1})
        tally.counts["that help"] += (found.gain(one.outcome) or 0) > 0
        tally.counts["that do not fit"] += one.outcome.energy_pj is None
        same, search = confirmed(hardware, one, workload, mapping, options, entries)
        if (same[:2], search[:2]) != (one.same[:2], one.outcome[:2]):
            tally.wrong.append(f"seed {seed}: {one.change.words}: {one} instead of {same}, {search}")
        if one.held is not None:
            check_held(tally, f"seed {seed}", hardware, one, workload, mapping, options)
    check_credit(tally, f"seed {seed}", found)
    return tally


def check_held(
    tally: Tally, where: str, hardware: Path, one: Advice, workload: Any, mapping: Any, options: SearchOptions
) -> None:
    """Compare the cost of held mappings on the unchanged file with `tilewright evaluate`."""
    tally.counts["held"] += 1
    assert one.held is not None
    with tempfile.TemporaryDirectory() as folder:
        file, exported = Path(folder) / "changed.yaml", Path(folder) / "mapping.yaml"
        file.write_text(changed_text(hardware.read_text(), one.change.settings))
        records = map_workload(workload, file, mapping, options).records
        exported.write_text(yaml.safe_dump(_plain(_with_levels(mapping_entries(records), records)), sort_keys=False))
        try:
            held = evaluate(hardware=hardware, workload=workload, mapping=exported, model=options.model)
        except (InputError, MappingError):
            held = ()
    assert isinstance(held, tuple)
    if not held or _orders(held) != _orders(records):
        tally.counts["held that do not fit"] += 1
        found = Outcome()
    else:
        found = Outcome(*(sum(getattr(record, name) for record in held) for name in ("energy_pj", "latency_cycles")))
    if found[:2] != one.held[:2]:
        tally.wrong.append(f"{where}: {one.change.words}: held {one.held} instead of {found}")


def _with_levels(entries: list[dict[str, Any]], records: Sequence[LayerRecord]) -> list[dict[str, Any]]:
    """Return entries of a mapping file that also fix the memory in which each loop ends."""
    levels = {name: record.temporal_mapping for record in records for name in record.names}
    found = []
    for entry in entries:
        bounds: dict[str, list[int]] = {}
        for operand, own in levels.get(entry["name"], {}).items():
            bounds[operand] = []
            for level in own:
                bounds[operand].append(sum(size != 1 for _, size in level) + (bounds[operand] or [0])[-1])
        found.append({**entry, "level_boundaries": bounds} if entry.get("temporal_ordering") else entry)
    return found


def _orders(records: Sequence[LayerRecord]) -> dict[str, Any]:
    """Return layer -> unrolling and order of its loops."""
    return {name: (record.spatial_mapping, record.loop_order) for record in records for name in record.names}


def check_credit(tally: Tally, where: str, found: Advices) -> None:
    """Check that no change is credited with a gain of the search, and that spare ones cost no more."""
    known = found.known or found.now
    costs = [one.held for one in found.found if one.held is not None and one.held.energy_pj is not None]
    values = [one.value(found.objective) for one in (known, found.now, *costs)]
    if min(value for value in values if value is not None) < (values[0] or 0) * (1 - 1e-12):
        tally.wrong.append(f"{where}: of the hardware as it is {min(map(float, filter(None, values)))} is known")
    for _, one in found.spare:
        tally.counts["for nothing"] += 1
        by_search = found.free_outcome(one) is not one.same
        tally.counts["for nothing after a search"] += by_search
        base, cost = (known, one.search) if by_search else (found.now, one.same)
        if cost is None or not cost.is_no_more_than(base):
            tally.wrong.append(f"{where}: {one.change.words} is not for nothing: {cost} instead of {base}")
    for _, one in found.helpful:
        gains = [found.gain(one.same) or 0.0]
        if one.search is not None and one.search.energy_pj is not None:
            now, before, after = (each.value(found.objective) or 0.0 for each in (found.now, known, one.search))
            gains.append((before - after) / now)
        tally.counts["credited"] += 1
        if abs(max(gains) - (found.hardware_gain(one) or 0.0)) > 1e-12:
            tally.wrong.append(f"{where}: {one.change.words} is credited with {found.hardware_gain(one)}, not {gains}")
    lucky = [
        one
        for one in found.found
        if not one.change.more
        and one.search is not None
        and one.search.is_no_more_than(found.now)
        and found.free_outcome(one) is None
    ]
    tally.counts["of a luckier search alone"] += len(lucky)


def try_mapping_changes(seed: int, count: int = 5, networks: tuple[str, ...] = NETWORKS) -> Tally:
    """Confirm some random changes of a mapping file by runs of the changed file."""
    rng, tally = random.Random(seed), Tally()
    base, options = rng.choice(ACCELERATORS), random_options(rng)
    workload = network(rng.choice(networks), options.model)
    hardware, given = shipped("hardware", base), shipped("mapping", base)
    mapping, document = parse_mapping(given), load_yaml(given)
    try:
        mapped = map_workload(workload, hardware, mapping, options)
    except MappingError:
        tally.counts["runs without a result"] += 1
        return tally
    core = single_core(parse_accelerator(hardware))
    changes = mapping_changes(mapping, core, workload, document)
    chosen = tuple(rng.sample(changes, min(count, len(changes))))
    placed = layers_in_order(mapped.records, mapped.summary)
    run = ExplainedRun("run", placed, load_yaml(hardware).data, workload, mapping, options, chosen)
    for one in advices_of(run, (), search=False).found:
        tally.counts["advices"] += 1
        tally.counts["that do not fit"] += one.outcome.latency_cycles is None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mapping.yaml"
            file.write_text(changed_text(given.read_text(), one.change.settings))
            try:
                summary = map_workload(workload, hardware, file, options).summary
                found = Outcome(summary["energy_pj"], summary["latency_cycles"])
            except (InputError, MappingError):
                found = Outcome()
        if found[:2] != one.outcome[:2]:
            tally.wrong.append(f"seed {seed}: {one.change.words}: {one.outcome} instead of {found}")
    return tally


def confirmed(
    hardware: Path, advice: Advice, workload: Any, mapping: Any, options: SearchOptions, entries: list[dict[str, Any]]
) -> tuple[Outcome, Outcome]:
    """Return the outcome of a changed file for the exported mappings and for a new search."""
    with tempfile.TemporaryDirectory() as folder:
        file, exported = Path(folder) / "changed.yaml", Path(folder) / "mapping.yaml"
        file.write_text(changed_text(hardware.read_text(), advice.change.settings))
        exported.write_text(yaml.safe_dump(_plain(entries), sort_keys=False))
        try:
            records = evaluate(hardware=file, workload=workload, mapping=exported, model=options.model)
            assert isinstance(records, tuple)
            energy = latency = 0.0
            for record in records:
                energy, latency = energy + record.energy_pj, latency + record.latency_cycles
            same = Outcome(energy, latency)
        except (InputError, MappingError):
            same = Outcome()
        try:
            summary = map_workload(workload, file, mapping, options).summary
            search = Outcome(summary["energy_pj"], summary["latency_cycles"])
        except (InputError, MappingError):
            search = Outcome()
    return same, search


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value
