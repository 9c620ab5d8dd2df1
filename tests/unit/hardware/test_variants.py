"""Hardware variants: every combination of named changes is a valid file."""

from pathlib import Path

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.hardware.core import Core
from tilewright.hardware.system import core_area
from tilewright.hardware.variants import read_variants
from tilewright.pipeline.sources import parse_accelerator

SYSTOLIC = Path(__file__).parents[3] / "config" / "hardware" / "systolic"
BASE = (SYSTOLIC / "systolic.yaml").read_text()


def variants_file(folder: Path, text: str) -> Path:
    """Write a file of variants beside its base."""
    (folder / "base.yaml").write_text(BASE)
    path = folder / "variants.yml"
    path.write_text(text)
    return path


def core_of(path: Path) -> Core:
    """Read the core of a hardware file."""
    return parse_accelerator(path).cores[0]


def test_our_own_variants_are_up_to_date(tmp_path: Path) -> None:
    """The committed variants equal those that `vary` makes, and each has an area."""
    assert main(["vary", str(SYSTOLIC / "variants.yml"), "-o", str(tmp_path)]) == 0
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in SYSTOLIC.glob("systolic-*.yaml")}
    assert len(made) == 6
    assert all(core_area(core_of(path)).mm2 for path in SYSTOLIC.glob("*.yaml"))


def test_every_combination_with_its_values(tmp_path: Path) -> None:
    """Each combination has the changed values, in lists, with units and at new keys; other values stay."""
    path = variants_file(
        tmp_path,
        """
        base: base.yaml
        vary:
          array:
            small: { operational_array.sizes: [4, 8] }
            tall: { operational_array.sizes: [64, 2] }
          sram:
            narrow: { memories.sram.ports.r_port_1.bandwidth_max: 128 }
            doubled: { memories.sram.force_double_buffering: true, memories.sram.size: 1 MiB }
        """,
    )
    base, variants = read_variants(path)
    assert base == "base.yaml"
    assert [variant.name for variant in variants] == [
        *("base-small-narrow", "base-small-doubled", "base-tall-narrow", "base-tall-doubled")
    ]
    assert main(["vary", str(path), "-o", str(tmp_path / "out")]) == 0
    cores = {variant.name: core_of(tmp_path / "out" / f"{variant.name}.yaml") for variant in variants}
    assert all(core.name == name for name, core in cores.items())
    assert cores["base-tall-narrow"].operational_array.dimensions == (("D1", 64), ("D2", 2))
    sram = cores["base-small-doubled"].memories[2]
    assert (sram.size_bits, sram.force_double_buffering) == (2**23, True)
    assert cores["base-small-narrow"].memories[2].ports[0].bandwidth_max_bits == 128
    assert cores["base-small-narrow"].memories[0] == core_of(tmp_path / "base.yaml").memories[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must be a table"),
        ("base: base.yaml\nvary: {}", "vary"),
        ("base: 3\nvary: {a: {b: {name: c}}}", "base"),
        ("base: none.yaml\nvary: {a: {b: {name: c}}}", "none.yaml"),
        ("base: base.yaml\nvary: {a: [1]}", "vary.a"),
        ("base: base.yaml\nvary: {a: {b: 1}}", "vary.a.b"),
        ("base: base.yaml\nvary: {a: {b/c: {name: x}}}", "not a name"),
        ("base: base.yaml\nvary: {a: {b: {name: x}}}\nvari: 1", "did you mean 'vary'"),
        ("base: base.yaml\nvary: {a: {b: {memories.srm.size: 8}}}", "did you mean 'sram'"),
        ("base: base.yaml\nvary: {a: {b: {memories.sram.ports.r_port.type: read}}}", "did you mean 'r_port_1'"),
        ("base: base.yaml\nvary: {a: {b: {memories.sram.sice: 8}}}", "did you mean 'size'"),
        ("base: base.yaml\nvary: {a: {b: {memories.sram.size: -8}}}", "variant base-b"),
        ("base: base.yaml\nvary: {a: {b: {memories.sram.size.bits: 8}}}", "not a table"),
    ],
)
def test_what_is_wrong_is_told(text: str, said: str, tmp_path: Path) -> None:
    """Wrong shapes, unknown keys and variants that are not valid hardware are refused."""
    with pytest.raises(InputError) as raised:
        read_variants(variants_file(tmp_path, text))
    assert said in str(raised.value)


def test_no_file_is_written_if_one_variant_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One wrong variant prevents all files from being written."""
    text = yaml.safe_dump({"base": "base.yaml", "vary": {"a": {"ok": {"name": "x"}, "no": {"memories.sram.size": 0}}}})
    assert main(["vary", str(variants_file(tmp_path, text)), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert "base-no" in capsys.readouterr().err
