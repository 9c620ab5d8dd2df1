"""Published keys of chips: the cases that get them, and their effect on the default model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.hardware.source import parse_accelerator
from tilewright_evidence.chips import published_keys as module
from tilewright_evidence.chips.case import CaseFiles, read_case
from tilewright_evidence.chips.comparison import compare_case, comparison_text
from tilewright_evidence.chips.published_keys import KEYS_FILE, hardware_with_keys, published_keys

from tests.unit.evidence.chips.cases import write_case

DIGITAL = Path(__file__).parents[4] / "config/hardware/multi/cores/diana_digital.yaml"


@pytest.fixture
def tiny_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write published keys of the tiny case: each node takes three more cycles."""
    file = tmp_path / "keys.yaml"
    file.write_text(yaml.safe_dump({"tiny": {"core": {"call_cycles": 3, "calls_in_flight": 1}}}))
    monkeypatch.setattr(module, "KEYS_FILE", file)
    module._all_keys.cache_clear()
    yield
    module._all_keys.cache_clear()


def test_every_published_key_is_a_key_of_core_files() -> None:
    """The shipped core of the same part accepts the published keys, and each key has an effect."""
    keys: dict[str, Any] = yaml.safe_load(KEYS_FILE.read_text())
    assert {name for name, of_cores in keys.items() if of_cores} == {"diana"}
    document = yaml.safe_load(DIGITAL.read_text())
    given = keys["diana"]["digital"]
    document["operational_array"] |= given["operational_array"]
    (core,) = parse_accelerator({**given, **document}).cores
    assert core.waits
    assert dict(core.figures) == {"call_cycles": 23, "calls_in_flight": 1}


@pytest.mark.usefixtures("tiny_keys")
def test_a_case_has_a_line_on_its_keys(tmp_path: Path) -> None:
    """A case with published keys has a line in the comparison; three nodes add three cycles each to the computation."""
    compared = compare_case(read_case("tiny", CaseFiles(write_case(tmp_path / "tiny"))))
    assert compared.causal is not None
    assert compared.keyed is not None
    assert compared.causal.latency_cycles == 33
    assert compared.keyed.compute_cycles == compared.causal.compute_cycles + 3 * 3
    assert compared.keyed.latency_cycles > 33
    assert compared.keyed_lower_bound_cycles is not None
    assert compared.keyed_lower_bound_cycles <= compared.keyed.latency_cycles
    line = f"tiny, causal with published keys: {compared.keyed.latency_cycles} cycles, "
    assert line in comparison_text([compared])


@pytest.mark.usefixtures("tiny_keys")
def test_other_cases_have_no_keys(tmp_path: Path) -> None:
    """Keys hold for a case and its variants, not for other names or a case without the core file of the keys."""
    hardware = write_case(tmp_path / "tiny") / "accelerator.yaml"
    assert published_keys("other", hardware) == {}
    assert published_keys("tiny/variant_a", hardware) == published_keys("tiny", hardware) != {}
    hardware.write_text(hardware.read_text().replace("core.yaml", "unit.yaml"))
    (hardware.parent / "cores/core.yaml").rename(hardware.parent / "cores/unit.yaml")
    assert published_keys("tiny", hardware) == {}


@pytest.mark.usefixtures("tiny_keys")
def test_keys_change_nothing_else(tmp_path: Path) -> None:
    """An accelerator without keys, with its cores in its own file, equals the accelerator with core files."""
    hardware = write_case(tmp_path / "tiny") / "accelerator.yaml"
    plain, contained = parse_accelerator(hardware), parse_accelerator(hardware_with_keys(hardware, {}))
    assert plain == contained
