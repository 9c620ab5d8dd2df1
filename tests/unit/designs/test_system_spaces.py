"""Spaces of several cores: their files, messages, shards, tables and runs."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas
import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.designs import explore
from tilewright.designs.answer import answer_of
from tilewright.designs.design_cost import TABLES, Sharing
from tilewright.designs.page import page_data
from tilewright.designs.space import USES
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import space_table
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator
from tilewright.search.store import Store

from tests.unit.designs.system_cases import BERT, HARDWARE, SIZE, SMALL, WIDTH, system_space

K16 = HARDWARE / "cores" / "k16_c16.yaml"
OX16 = HARDWARE / "cores" / "ox16_k16.yaml"


def accelerators(**keys: Any) -> list[MultiCoreAccelerator]:
    """Return the accelerators of all designs of a space."""
    space = system_space(**keys)
    found = [parse_accelerator(space.design(index).hardware) for index in range(len(space))]
    assert all(isinstance(one, MultiCoreAccelerator) for one in found)
    return found  # type: ignore[return-value]


def told(**keys: Any) -> list[str]:
    """Return the problems of a space."""
    with pytest.raises(InputError) as raised:
        system_space(**keys)
    return [str(problem) for problem in raised.value.problems]


def test_a_core_is_varied_wherever_it_stands() -> None:
    """An axis over a core file varies all its places, unless a place gets its own core file."""
    axes = {"kib": {"values": [64, 128]}}
    small, large = accelerators(axes=axes, laws={SIZE: "kib * 8192"})
    sizes = [[one.core_of[core].memories[3].size_bits for core in range(4)] for one in (small, large)]
    assert sizes == [[64 * 8192] * 4, [128 * 8192] * 4]
    other = {"kib": {"path": "core_files.own.memories.sram_activation.size", "values": ["64 KiB"]}}
    (one,) = accelerators(axes=other, core_files={"own": str(K16)}, laws={"cores.2": "'own'"})
    assert [one.core_of[core].memories[3].size_bits for core in range(4)] == [n * 65536 * 8 for n in (4, 4, 1, 4)]


def test_cores_links_and_counts_are_axes() -> None:
    """Cores, their counts, link widths and link energies can be axes."""
    axes = {
        "first": {"path": "cores.0", "values": ["k16_c16", "ox"]},
        "count": {"path": "core_counts.0", "values": [1, 3]},
        "width": {"path": [WIDTH, "core_connectivity.0.bandwidth"], "values": [64, 128]},
    }
    found = accelerators(
        accelerator=yaml.safe_load((HARDWARE / "quad_core.yaml").read_text())
        | {
            "core_counts": {0: 1},
            "cores": {**{core: str(K16) for core in range(4)}, **_others()},
            "offchip_core": _file("offchip"),
        },
        core_files={"ox": str(OX16)},
        axes=axes,
        laws={WIDTH.replace("bandwidth", "energy_per_bit"): "0.01 * width"},
    )
    names = [(len(one.cores), one.place_of[0].file_name) for one in found[::2]]
    assert names == [(7, "k16_c16"), (9, "k16_c16"), (7, "ox"), (9, "ox")]
    buses = [next(link for link in one.links if link.kind == "bus") for one in found]
    assert [(bus.bandwidth_bits_per_cycle, bus.energy_pj_per_bit) for bus in buses[:2]] == [(64, 0.64), (128, 1.28)]
    assert [len(bus.core_ids) for bus in buses] == [6, 6, 8, 8] * 2


def _file(name: str) -> str:
    return str(HARDWARE / "cores" / f"{name}.yaml")


def _others() -> dict[int, str]:
    return {4: _file("pooling"), 5: _file("simd")}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"axes": {"x": {"path": "core_files.k16.memories", "values": [1]}}}, "got 'k16' (did you mean 'k16_c16'?)"),
        ({"axes": {"x": {"path": "cores.0", "values": ["other", "k16_c16"]}}}, "core_files has no such core"),
        ({"core_files": {"k16_c16": str(K16)}}, "core_files.k16_c16: the accelerator already has a core of this name"),
        ({"core_files": {"a.b": str(K16)}}, "core_files.a.b: contains a dot"),
        ({"core_files": {"own": "nowhere.yaml"}}, "core_files.own: no such file"),
        (
            {"options": {"exploit_data_locality": True}},
            "options.exploit_data_locality: is only for an accelerator with one core, but the base has several cores",
        ),
        ({"options": {"stack_cutoffs": [3, 1]}}, "options.stack_cutoffs: must rise"),
        ({"options": {"nb_ga_generation": 3}}, "did you mean 'nb_ga_generations'?"),
        (
            {"axes": {"fullest_link_share": {"path": WIDTH, "values": [1]}}},
            "is already the name of a column in tables of designs",
        ),
        (
            {"axes": {"x": {"path": SIZE, "values": ["3 parsecs"]}}},
            "axes.x.path: core_files.k16_c16.memories.sram_activation.size of design",
        ),
        (
            {
                "accelerator": str(K16),
                "core_files": {"own": str(K16)},
                "axes": {"x": {"path": "name", "values": ["x"]}},
                "options": {},
            },
            "core_files.own: is only for an accelerator with several",
        ),
    ],
)
def test_what_is_wrong_with_a_space_is_told(keys: dict[str, Any], said: str) -> None:
    """Each fault is reported at its place in the file of the space."""
    found = told(**keys)
    assert any(said in one for one in found), found


def test_problems_of_core_files_have_their_lines(tmp_path: Path) -> None:
    """A fault of a core file is reported with its line there."""
    for name in ("k16_c16", "pooling", "simd", "offchip"):
        (tmp_path / f"{name}.yaml").write_text((HARDWARE / "cores" / f"{name}.yaml").read_text())
    broken = tmp_path / "simd.yaml"
    broken.write_text(broken.read_text().replace("unit_energy: ", "unit_energy: -"))
    line = next(n for n, text in enumerate(broken.read_text().splitlines(), 1) if "unit_energy: -" in text)
    base = tmp_path / "system.yaml"
    base.write_text((HARDWARE / "quad_core.yaml").read_text().replace("./cores/", "./"))
    assert any(one.startswith(f"{broken}:{line} operational_array.unit_energy") for one in told(accelerator=str(base)))
    broken.unlink()
    assert any(one.startswith(f"{base}:") and "no such core file" in one for one in told(accelerator=str(base)))


def test_cores_that_the_mapping_file_names_must_be_there(tmp_path: Path) -> None:
    """A core that only the mapping file names is refused with the line of the mapping file."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n  core_allocation: [0, 9]\n")
    assert any("mapping.yaml:2" in one and "no core has this id, got 9" in one for one in told(mapping=str(mapping)))


@pytest.mark.slow
def test_results_do_not_depend_on_how_they_are_made(tmp_path: Path) -> None:
    """The table is equal for any number of processes and size of shards, and with a store."""

    def table(data: dict[str, Any], jobs: int, sharing: Sharing | None = None) -> str:
        found = explore.explored(data, read_space(data), jobs, lambda count: None, sharing)
        return space_table(answer_of(found)).to_csv(index=False)

    expected = table(SMALL, 1)
    sharing = Sharing(Store(tmp_path))
    assert table(SMALL | {"shard_designs": 100}, 1, sharing) == expected
    assert sharing.made[TABLES] < sharing.asked[TABLES]
    assert table(SMALL, 2, Sharing(Store(tmp_path))) == expected
    (tmp_path / "space.csv").write_text(expected)
    rows = pandas.read_csv(tmp_path / "space.csv")
    assert set(rows["status"]) == {"ok", "invalid"}
    assert rows[rows["status"] == "invalid"]["reason"].str.contains("bandwidth").all()
    fine = rows[rows["status"] == "ok"]
    assert {*USES, "energy_on_core_pj", "energy_core_to_core_link_pj", "latency_waiting_cycles"} <= set(rows.columns)
    assert fine["largest_latency_part"].isin(["computing", "stalls", "waiting"]).all()
    parts = [key for key in rows if key.startswith("energy_") and key.endswith("_pj") and key != "energy_pj"]
    assert fine[parts].sum(axis=1).tolist() == pytest.approx(fine["energy_pj"].tolist())


@pytest.mark.slow
def test_killed_and_begun_again_gives_the_same_bytes(tmp_path: Path) -> None:
    """An exploration that is killed and started again keeps finished shards and makes the same bytes."""
    file = tmp_path / "it.yaml"
    widths = {"path": WIDTH, "values": list(range(8, 24))}
    file.write_text(json.dumps(SMALL | {"shard_designs": 3, "axes": SMALL["axes"] | {"width": widths}}))
    space, out = read_space(file), tmp_path / "out"
    command = [sys.executable, "-m", "tilewright", "explore", str(file), "-o", str(out), "--jobs", "2"]
    command += ["--store", str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 90
        while not list((out / "shards").glob("*.parquet")):
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    kept = {path.name: path.stat().st_mtime_ns for path in (out / "shards").glob("*.parquet")}
    assert len(kept) < 16
    explore.complete(file, space, out, 1, lambda count: None)
    explore.complete(file, space, tmp_path / "whole", 1, lambda count: None)
    found = {path.name: path for path in (out / "shards").glob("*.parquet")}  # a killed write may leave a part
    whole = {path.name: path.read_bytes() for path in (tmp_path / "whole" / "shards").iterdir()}
    assert {name: path.read_bytes() for name, path in found.items()} == whole
    assert {name: found[name].stat().st_mtime_ns for name in kept} == kept


@pytest.mark.slow
def test_the_command_and_the_run_of_one_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the number of designs and writes all files; the full run of a design has the numbers of the
    table."""
    file, out = tmp_path / "it.yaml", tmp_path / "out"
    file.write_text(json.dumps(SMALL))
    assert main(["validate", str(file)]) == 0
    assert "9 designs, on 1 network" in capsys.readouterr().err
    assert main(["explore", str(file), "-o", str(out), "--no-store"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("cores: 9 designs on bert; 3 of 3 shards to evaluate\n")
    assert "cost tables made" in said.err
    assert "genetic algorithm" in said.out
    row = pandas.read_csv(out / "space.csv").set_index("design").loc["cores-7"]
    assert main(["explore", str(file), "-o", str(out), "--show", "cores-7"]) == 0
    run = out / "designs" / "cores-7" / "bert"
    summary = json.loads((run / "summary.json").read_text())["payload"]
    assert (summary["energy_pj"], summary["latency_cycles"]) == (row["energy_pj"], row["latency_cycles"])
    assert (run / "checks.json").is_file()
    assert (run / "report" / "schedule.svg").is_file()
    assert main(["validate", str(out / "designs" / "cores-7" / "hardware.yaml")]) == 0


def test_peaks_over_all_networks_are_the_largest() -> None:
    """Peaks over all networks are the largest of the networks, and waiting times are added up."""
    data = SMALL | {
        "networks": {"one": str(BERT), "two": str(BERT)},
        "axes": {"width": {"path": WIDTH, "values": [64]}},
    }
    answer = answer_of(explore.explored(data, read_space(data), 1, lambda count: None))
    (overall,) = answer.overall.rows.to_dict("records")
    single = answer.fronts[0].rows.to_dict("records")[0]
    assert all(overall[key] == single[key] for key in USES)
    assert overall["latency_waiting_cycles"] == 2 * single["latency_waiting_cycles"]


def test_the_page_has_what_is_used_of_memories_and_links() -> None:
    """The page has the use of memories and links in readable units."""
    data = SMALL | {"axes": {"width": {"path": WIDTH, "values": [64]}}}
    answer = answer_of(explore.explored(data, read_space(data), 1, lambda count: None))
    page = page_data(answer)
    columns = {column["key"]: column for column in page["columns"] if column["kind"] == "use"}
    assert tuple(columns) == USES
    row = answer.overall.rows.iloc[0]
    assert page["views"][0]["columns"]["fullest_link_share"] == [pytest.approx(100 * row["fullest_link_share"])]
    assert page["views"][0]["columns"]["peak_memory_bits"] == [pytest.approx(row["peak_memory_bits"] / 8192)]


def test_whole_tables_are_choices_and_laws_fill_a_mesh() -> None:
    """Choices can set whole tables of cores and links, and laws can fill a mesh with copies of a core."""
    names = ("k16_c16", "simd", "offchip")
    base: dict[str, Any] = {"name": "mesh", "cores": [_file(name) for name in names], "core_counts": {0: 1}}
    graph = {"type": "2d_mesh", "nb_rows": 1, "nb_cols": 1, "bandwidth": 64, "simd_core_id": 1, "offchip_core_id": 2}
    axes = {name: {"path": f"graph.nb_{name}", "values": [1, 2]} for name in ("rows", "cols")}
    found = accelerators(accelerator=base | {"graph": graph}, axes=axes, laws={"core_counts.0": "rows * cols"})
    assert [len(one.cores) for one in found] == [3, 4, 4, 6]
    choices = {
        "two": {"cores": {0: "k16_c16", 1: "simd"}, "core_connectivity": ["0, 1"], "core_roles": {1: "simd"}},
        "three": {
            "cores": {0: "k16_c16", 1: "k16_c16", 2: "simd"},
            "core_connectivity": [{"type": "bus", "cores": [0, 1, 2], "bandwidth": 32}],
            "core_roles": {2: "simd"},
        },
    }
    choices = {name: said | {"bandwidth": 64, "core_coordinates": {}} for name, said in choices.items()}
    found = accelerators(axes={"layout": {"choices": choices}})
    assert [len(one.cores) for one in found] == [3, 4]


def test_problems_of_cores_in_the_space_have_their_lines(tmp_path: Path) -> None:
    """A fault of a core inside the space has its line in the file of the space."""
    own = yaml.safe_load(K16.read_text())
    own["operational_array"]["unit_energy"] = -1
    dram = yaml.safe_load(Path(_file("offchip")).read_text())
    base = {"name": "x", "cores": ["own", "dram"], "core_files": {"dram": dram}}
    base["graph"] = {"type": "bus", "bandwidth": 8, "offchip_core_id": 1}
    space = {"accelerator": base, "core_files": {"own": own}, "networks": [str(BERT)]}
    file = tmp_path / "it.yaml"
    file.write_text(yaml.safe_dump(space | {"axes": {"x": {"path": "name", "values": ["y"]}}}))
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "unit_energy: -1" in text)
    with pytest.raises(InputError) as raised:
        read_space(file)
    found = [str(problem) for problem in raised.value.problems]
    assert any(one.startswith(f"{file}:{line} core_files.own.operational_array.unit_energy:") for one in found), found
