"""Zeros in runs: shares without effect, flows that refuse the keys, and search engines that agree."""

from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
MAPPING = str(EXAMPLES / "mapping.yaml")
GATING = {"operands": ["I1"], "reads_of": ["I2"]}
CODE = {"operands": ["I1", "O"], "run_bits": 5, "pairs": 4, "word": 64}
ZEROS = {"I": 0.6, "O_final": 0.5}


def hardware(*, with_keys: bool = True) -> dict[str, Any]:
    """Return the accelerator of the examples, with or without keys for zeros."""
    data: dict[str, Any] = yaml.safe_load((EXAMPLES / "accelerator.yaml").read_text())
    if with_keys:
        data["operational_array"]["zero_gating"] = GATING
        data["memories"]["dram"]["run_length"] = CODE
    return data


def workload(zeros: dict[str, float] | None = None) -> list[dict[str, Any]]:
    """Return the network of the examples, with shares of zeros."""
    layers: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / "workload.yaml").read_text())
    return [layer | ({} if zeros is None else {"zeros": zeros}) for layer in layers]


def summary(zeros: dict[str, float] | None, **options: Any) -> Any:
    """Run the network through the top memory and return the run."""
    chosen = {"workload_data_always_from_top_mem": True, "objective": "energy"} | options
    with_keys = chosen.pop("with_keys", True)
    return tilewright.map(workload(zeros), hardware(with_keys=with_keys), MAPPING, **chosen)


def test_zeros_save_energy_and_traffic() -> None:
    """Gated MACs and coded words of the DRAM lower the energy; without shares the keys have no effect."""
    bare, found = summary(None), summary(ZEROS)
    assert found.summary["energy_pj"] < bare.summary["energy_pj"]
    assert found.summary["mac_energy_pj"] == pytest.approx(0.4 * bare.summary["mac_energy_pj"])
    assert summary(None, with_keys=False).summary["energy_pj"] == bare.summary["energy_pj"]


def test_few_zeros_make_data_grow() -> None:
    """Compressed data cost more energy than uncompressed data if there are no zeros."""
    assert summary({"I": 0.0, "O_final": 0.0}).summary["energy_pj"] > summary(None).summary["energy_pj"]


@pytest.mark.parametrize("objective", ["energy", "latency", "EDP"])
def test_engines_agree(objective: str) -> None:
    """The proven optimum of `exact` is not above the result of `loma`."""
    found = {
        engine: summary(ZEROS, temporal_mapping_search_engine=engine, objective=objective)
        for engine in ("loma", "exact")
    }
    best, tried = (
        found[engine].summary[f"{'edp' if objective == 'EDP' else objective}_{unit}"]
        for engine, unit in (
            ("exact", {"energy": "pj", "latency": "cycles", "EDP": "pj_cycles"}[objective]),
            ("loma", {"energy": "pj", "latency": "cycles", "EDP": "pj_cycles"}[objective]),
        )
    )
    assert best <= tried * (1 + 1e-9)
    assert not found["exact"].summary.get("without_proof")


def test_inputs_without_effect_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Notices list shares that no key reads and keys without shares; --strict refuses both."""
    for name, content in (("hw", hardware()), ("w", workload({"W": 0.1, "I": 0.5}))):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    files = ["--hardware", str(tmp_path / "hw.yaml"), "--workload", str(tmp_path / "w.yaml"), "--mapping", MAPPING]
    main(["map", *files, "-o", str(tmp_path / "run"), "--no-store"])
    said = "".join(capsys.readouterr())
    assert "w.yaml zeros: has no effect: no key of the hardware file uses the zeros of W" in said
    assert "hw.yaml memories.dram.run_length: has no effect on O: no layer gives the share of its zeros" in said
    assert "of I" not in said.replace("of I1", "")
    assert main(["map", *files, "-o", str(tmp_path / "strict"), "--no-store", "--strict"]) == 2


def test_flows_without_zeros_refuse_the_keys() -> None:
    """A depth-first schedule refuses the keys for zeros by name."""
    with pytest.raises(InputError, match="run_length: a chain of layers in tiles does not model zeros"):
        tilewright.depth_first(workload(ZEROS)[:1], hardware(), MAPPING, tile_x=7, tile_y=7)
