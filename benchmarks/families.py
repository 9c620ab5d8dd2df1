"""Comparison of designs that are costed in families with designs that are costed alone: every number must be equal to
the last bit.

    .venv/bin/python benchmarks/families.py [--spaces 500] [--jobs 2] [--seconds 3600]

A family is a set of designs that differ only in numbers such as energies and port widths. Each seed is a random space
of one of five accelerators on one of two networks, with random options. A space has a few axes: memory sizes (some are
too small for any mapping), port widths, unit energies, laws between them, and sides of the array. Half of the spaces
have keys for zeros and for rules of the control, in the base or as choices. All designs are costed in families, as for
complete fronts, and some are also costed alone. The comparison covers status, reason, energy, latency and area. Prints
counts and every difference; `--seed N` repeats one space. The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from typing import Any

from seeded import PROJECT, run
from shipped import shipped

from tests.plain.hardware_keys import random_shares, with_random_keys
from tests.plain.tally import Tally

AT_ONCE = 4
ALONE = 10
"""Number of designs of a space that are costed alone."""
MOST_DESIGNS = 400
BASES = ("tpu_like", "eyeriss_like", "edge_tpu_like", "cube_3d", "systolic/systolic")
BERT = "config/workload/bert_tiny.onnx"
NETWORKS = (BERT, "tests/workflow/tiny/workload/two_layers.yaml")
MODELS = (
    "corrected",
    "corrected",
    "zigzag-3.9.1",
    "zigzag-3.9.1+every_transfer_takes_port_time",
    "corrected-whole_tiles",
)


@cache
def memories_of(name: str) -> dict[str, Any]:
    """Memories of a hardware file, by name."""
    from tilewright.pipeline.sources import parse_accelerator

    core = parse_accelerator(shipped("hardware", name)).cores[0]
    return {memory.name: memory for memory in core.memories}


def random_axes(rng: random.Random, memories: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Pair (random axes, random laws)."""
    axes: dict[str, Any] = {}
    laws: dict[str, str] = {}
    for number, name in enumerate(rng.sample(list(memories), min(len(memories), rng.choice((1, 2, 2, 3))))):
        size = memories[name].size_bits
        factors = rng.sample((0.03, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 8), rng.choice((2, 3, 4)))
        axes[f"size_{number}"] = {"values": list(dict.fromkeys(max(1, int(size * factor)) for factor in factors))}
        laws[f"memories.{name}.size"] = f"size_{number}"
        if rng.random() < 0.5:
            laws[f"memories.{name}.r_cost"] = f"size_{number} ** 0.5 / 100"
    name = rng.choice(list(memories))
    ports = memories[name].ports
    least = max(port.bandwidth_min_bits for port in ports)
    paths = [f"memories.{name}.ports.{port.name}.bandwidth_max" for port in ports]
    axes["bits"] = {
        "path": paths,
        "values": [least * factor for factor in rng.sample((1, 2, 3, 8), rng.choice((1, 2, 3)))],
    }
    name = rng.choice(list(memories))
    if f"memories.{name}.r_cost" not in laws:
        axes["pj"] = {"path": f"memories.{name}.r_cost", "values": rng.sample((0, 0.5, 7, 300), 2)}
    axes["mac"] = {"path": "operational_array.unit_energy", "values": rng.sample((0, 0.04, 0.5), rng.choice((1, 2)))}
    if rng.random() < 0.4:
        axes["side"] = {"path": "operational_array.sizes.0", "values": rng.sample((2, 3, 8, 16), 2)}
    return dict(sorted(axes.items(), key=lambda _: rng.random())), laws


@cache
def content_of(name: str) -> dict[str, Any]:
    """Content of a hardware file."""
    from tilewright.base.yamlfile import load_yaml

    data: dict[str, Any] = load_yaml(shipped("hardware", name)).data
    return data


def key_axis(hardware: dict[str, Any], keyed: dict[str, Any]) -> dict[str, Any]:
    """Axis for keys that only the hardware file `keyed` has. Its choices set all, some, or none of these keys."""
    parts = [("operational_array", hardware["operational_array"], keyed["operational_array"])]
    parts += [(f"memories.{name}", memory, keyed["memories"][name]) for name, memory in hardware["memories"].items()]
    new = {f"{path}.{key}": value for path, own, other in parts for key, value in other.items() if key not in own}
    half = dict(list(new.items())[::2])
    return {"choices": {"with": new, "some": half, "without": {}} if len(new) > 1 else {"with": new, "without": {}}}


def random_space(rng: random.Random) -> dict[str, Any]:
    """Random space with a few hundred designs at most."""
    base = rng.choice(BASES)
    axes, laws = random_axes(rng, memories_of(base))
    network = rng.choice(NETWORKS)
    space = _space(rng, base, network, axes, laws)
    if rng.random() < 0.5:
        keyed = with_random_keys(rng, content_of(base))
        if rng.random() < 0.5:
            space["accelerator"] = keyed
        else:
            axes["keys"] = key_axis(content_of(base), keyed)
        zeros = random_shares(rng)
        space |= {"zeros": zeros} if network == BERT and zeros else {}
    return space


def _space(rng: random.Random, base: str, network: str, axes: dict[str, Any], laws: dict[str, str]) -> dict[str, Any]:
    return {
        "accelerator": str(shipped("hardware", base)),
        "networks": {"one": str(PROJECT / network)},
        "axes": axes,
        "laws": laws,
        "options": {
            "objective": rng.choice(("energy", "latency", "EDP")),
            "model": rng.choice(MODELS),
            "lpf_limit": rng.choice((2, 3, 4, 5)),
            "exploit_data_locality": rng.random() < 0.7,
            "nb_spatial_mappings_generated": rng.choice((1, 3)),
            "temporal_mapping_type": rng.choice(("uneven", "uneven", "uneven", "even")),
        },
    }


def try_space(seed: int) -> Tally:
    """Cost the designs of one space in both ways, and compare the results."""
    from tilewright.designs.families import Families
    from tilewright.designs.family_costs import make_costs
    from tilewright.designs.shard import make_rows
    from tilewright.designs.space_reader import read_space

    rng = random.Random(seed)
    space = read_space(random_space(rng))
    while len(space) > MOST_DESIGNS:
        space = read_space(random_space(rng))
    families = Families(space)
    table = make_costs(space)(range(len(families))).table.set_index("index")
    tally = Tally()
    tally.counts.update({"spaces": 1, "families": len(families), "designs": len(space)})
    chosen = rng.sample(range(len(space)), min(ALONE, len(space)))
    for rows, _ in make_rows(space)(chosen):
        for row in rows:
            own = table.loc[row["index"]]
            ours = own["status_0"], own["reason_0"], own["energy_0_pj"], own["latency_0_cycles"], own["area_mm2"]
            expected = tuple(row[key] for key in ("status", "reason", "energy_pj", "latency_cycles", "area_mm2"))
            if row["status"] != "ok":
                ours, expected = ours[:2], expected[:2]
            tally.counts.update({"designs alone": 1, f"status: {row['status']}": 1})
            tally.counts[f"with zeros: {row['status']}"] += any(network.options.zeros for network in space.networks)
            if repr(tuple(map(str, ours))) != repr(tuple(map(str, expected))):
                tally.wrong.append(f"seed {seed}: design {row['index']}: {ours} instead of {expected}")
    return tally


if __name__ == "__main__":
    sys.exit(run(__doc__, "space", 500, try_space, AT_ONCE))
