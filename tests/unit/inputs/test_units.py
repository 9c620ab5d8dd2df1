"""Numbers with units."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.units import (
    ENERGY_UNITS,
    LARGEST_ENERGY_PJ,
    SIZE_UNITS,
    FieldError,
    count_text,
    parse_area_mm2,
    parse_bandwidth_bits,
    parse_bits_per_second,
    parse_energy_pj,
    parse_frequency_mhz,
    parse_size_bits,
)

PARSERS = (parse_size_bits, parse_bandwidth_bits, parse_energy_pj, parse_area_mm2)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        (1024, 1024),
        (1024.0, 1024),
        ("1e3", 1000),
        ("1_024", 1024),
        ("2 KiB", 16384),
        ("64 kB", 512_000),
        ("3 kb", 3000),
        ("1 MiB", 8 * 2**20),
        ("1GiB", 8 * 2**30),
        ("128 b", 128),
        ("128 bit", 128),
        ("128bits", 128),
        ("16 B", 128),
        ("0.5 KiB", 4096),
        ("3 bytes", 24),
        ("2 Mbit", 2_000_000),
        (" 4 Kib ", 4096),
    ],
)
def test_sizes_in_bits(text: object, bits: int) -> None:
    """Sizes convert exactly: b is a bit, B a byte, k is 1000, Ki is 1024."""
    assert parse_size_bits(text) == bits


@pytest.mark.parametrize(
    ("text", "bits"), [(64, 64), ("64 B/cycle", 512), ("512 b/cycle", 512), ("1 KiB/clk", 8192), ("8", 8)]
)
def test_bandwidths_in_bits_per_cycle(text: object, bits: int) -> None:
    """Bandwidths are per cycle; a plain number is bits per cycle."""
    assert parse_bandwidth_bits(text) == bits


@pytest.mark.parametrize(
    ("text", "energy_pj"),
    [(0, 0.0), (3, 3.0), (0.095, 0.095), ("0.095 pJ", 0.095), ("1 nJ", 1000.0), ("40 fJ", 0.04), ("2 uJ", 2e6)],
)
def test_energies_in_pj(text: object, energy_pj: float) -> None:
    """Energies convert to the nearest double."""
    assert parse_energy_pj(text) == energy_pj


def test_areas_in_mm2() -> None:
    """Areas are converted to mm2."""
    assert [parse_area_mm2(value) for value in (0, "0.25 mm2", "1200 um2")] == [0.0, 0.25, 0.0012]


@pytest.mark.parametrize(
    ("parse", "value"),
    [
        (parse_size_bits, 0),
        (parse_size_bits, -1),
        (parse_size_bits, 1.5),
        (parse_size_bits, "1 KB"),
        (parse_size_bits, "1 pJ"),
        (parse_size_bits, "many"),
        (parse_size_bits, ""),
        (parse_size_bits, True),
        (parse_size_bits, None),
        (parse_size_bits, float("nan")),
        (parse_size_bits, 2**60 + 1),
        (parse_bandwidth_bits, 2**53 + 1),
        (parse_size_bits, "1e999"),
        (parse_size_bits, "1e99999999"),
        (parse_bandwidth_bits, "64 B"),
        (parse_bandwidth_bits, "64 GB/s"),
        (parse_energy_pj, -0.1),
        (parse_energy_pj, "1 W"),
        (parse_energy_pj, float("inf")),
        (parse_energy_pj, "9e999 J"),
        (parse_energy_pj, 10**400),
        (parse_area_mm2, "1 m2"),
    ],
)
def test_what_cannot_be_meant_is_refused(parse: object, value: object) -> None:
    """Wrong units, signs, types and magnitudes raise FieldError."""
    with pytest.raises(FieldError):
        parse(value)  # type: ignore[operator]


def test_kilobytes_with_a_capital_suggest_the_binary_unit() -> None:
    """`KB` is refused as ambiguous, with `kB` for 1000 and `KiB` for 1024."""
    with pytest.raises(FieldError) as caught:
        parse_size_bits("64 KB")
    assert caught.value.nearest == "KiB"
    assert caught.value.message == "unknown unit 'KB': write `kB` for 1000 or `KiB` for 1024"
    assert "64 kB" in caught.value.allowed


@given(st.integers(1, 10**6), st.sampled_from(sorted(SIZE_UNITS)), st.sampled_from(["", " "]))
def test_every_size_unit_scales_exactly(count: int, unit: str, gap: str) -> None:
    """A whole number of any unit scales exactly.
    Sizes above 2^60 and bandwidths above 2^53 are refused.
    """
    expected = count * SIZE_UNITS[unit]
    for parse, text, largest in (
        (parse_size_bits, f"{count}{gap}{unit}", 2**60),
        (parse_bandwidth_bits, f"{count}{gap}{unit}/cycle", 2**53),
    ):
        if expected <= largest:
            assert parse(text) == expected
        else:
            with pytest.raises(FieldError):
                parse(text)


@given(st.decimals(0, 10**6, places=4), st.sampled_from(sorted(ENERGY_UNITS)))
def test_energies_are_rounded_once(count: object, unit: str) -> None:
    """An energy is the double nearest to the written decimal; more than a joule is refused."""
    exact = Fraction(str(count)) * Fraction(ENERGY_UNITS[unit])
    if exact <= LARGEST_ENERGY_PJ:
        assert parse_energy_pj(f"{count} {unit}") == float(exact)
    else:
        with pytest.raises(FieldError, match=r"not be greater than 10\^12 pJ"):
            parse_energy_pj(f"{count} {unit}")


@given(st.floats(0, 1e12))
def test_plain_energies_are_kept_to_the_bit(value: float) -> None:
    """A plain energy passes unchanged, as a number and as text."""
    assert parse_energy_pj(value) == value
    assert parse_energy_pj(repr(value)) == value


@given(st.one_of(st.text(max_size=20), st.floats(), st.integers(), st.booleans(), st.none(), st.lists(st.integers())))
def test_any_value_is_parsed_or_refused(value: object) -> None:
    """Any input is parsed or raises FieldError."""
    for parse in PARSERS:
        try:
            number = parse(value)
        except FieldError:
            continue
        assert number >= 0


@pytest.mark.parametrize("count", [0, 7, 272, 12_345, 4**200])
def test_counts_are_written_as_floating_point_numbers_are(count: int) -> None:
    """A count within the range of doubles is written like a floating-point number."""
    assert count_text(count) == f"{float(count):.4g}"


def test_counts_beyond_floating_point_have_a_text_too() -> None:
    """A count beyond the range of doubles is written as text, such as the count for 600 parts on four cores."""
    assert count_text(4**600) == "1.722e+361"
    assert count_text(10**400, 3) == "1.00e+400"


@pytest.mark.parametrize(
    ("parse", "value", "meant"),
    [
        (parse_frequency_mhz, "600 KHz", "kHz"),
        (parse_frequency_mhz, "600 mhz", "MHz"),
        (parse_bits_per_second, "17 PB/s", "TB/s"),
        (parse_bandwidth_bits, "17 GBps", "GB/s"),
        (parse_bandwidth_bits, "17 gb/cycle", "GB/cycle"),
        (parse_size_bits, "64 KB", "KiB"),
        (parse_size_bits, "64 kib", "KiB"),
        (parse_energy_pj, "1 NJ", "nJ"),
    ],
)
def test_the_nearest_unit_is_the_one_that_was_meant(parse: object, value: str, meant: str) -> None:
    """The nearest unit respects the intended prefix: capitals, `ps` for `/s` and too large prefixes are corrected."""
    with pytest.raises(FieldError) as raised:
        parse(value)  # type: ignore[operator]
    assert raised.value.nearest == meant
