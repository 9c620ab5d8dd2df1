"""Texts on the results of a run, from invented summaries."""

from tilewright.results.run_text import ASSUMED_BITS, bits_lines, power_lines


def test_assumed_bits_are_printed() -> None:
    """The line names the bits, also assumed ones, because the bits of partial sums set the size of registers."""
    (line,) = bits_lines({"operand_bits": ASSUMED_BITS})
    assert line.startswith("bits: W 8, I 8, O_final 8, O 16 (O: partial sums; these bits are assumed")
    (line,) = bits_lines({"operand_bits": {**ASSUMED_BITS, "O": [16, 32]}})
    assert line == "bits: W 8, I 8, O_final 8, O 16/32 (O: partial sums; a/b: the bits differ between layers)"
    assert not [*bits_lines({})], "an old summary has no bits"


def test_the_area_is_printed() -> None:
    """The area is a line, with and without a clock; an unknown area has no line."""
    told = [*power_lines({"area_mm2": 0.56651})]
    assert told[-1] == "area 0.5665 mm²"
    assert [*power_lines({"area_mm2": 2.0, "area_note": "without DRAM"})][-1] == "area 2 mm²: without DRAM"
    assert len([*power_lines({"area_mm2": None})]) == len(told) - 1
