"""Numbers with units, as people write them in YAML: sizes, bandwidths, energies, areas, powers, frequencies.

A plain number has the unit of the reference dialect (zigzag-dse 3.9.1): bits, bits per cycle, pJ. Areas have no unit in
this dialect. The reader of the file must therefore know whether a plain area is in mm2. Prefixes are the standard ones:
`k`, `M`, `G` are powers of 1000, `Ki`, `Mi`, `Gi` are powers of 1024; `b` is a bit, `B` is a byte.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tilewright.base.errors import InputError, Problem, nearest_name

if TYPE_CHECKING:
    from fractions import Fraction

LARGEST_WHOLE_NUMBER = 2**53
"""Largest number up to which double precision represents every whole number. The cost model uses double precision."""
LARGEST_SIZE_BITS = 2**60
"""Largest size of a memory. Above 2^53, double precision no longer represents every whole number. The cost model
accepts this, because it only compares the size with the number of bits of the data in the memory."""
LARGEST_ENERGY_PJ = 10**12
"""Largest energy: one joule. No real access, operation or transfer needs that much energy. Up to this limit, sums over
a network are finite."""
LARGEST_BUDGET_PJ = 10**24
"""Largest energy of a whole network: 10^12 joules. A network can need many joules, a single access cannot."""
LARGEST_AREA_MM2 = 10**9
"""Largest area of one unit or one instance of a memory: a thousand square metres."""
LARGEST_POWER_MW = 10**9
"""Largest power of one unit of the array, or of one instance of a memory: a megawatt."""
LARGEST_FREQUENCY_MHZ = 10**6
"""Largest frequency: a terahertz."""

_DECIMAL_PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_PREFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_BIT_NAMES = {"b": 1, "bit": 1, "bits": 1, "B": 8, "byte": 8, "bytes": 8}
_CYCLE_NAMES = ("cycle", "clk")
UNKNOWN_UNIT = "unknown unit"

SIZE_UNITS = {
    prefix + name: scale * bits
    for prefix, scale in {**_DECIMAL_PREFIXES, **_BINARY_PREFIXES}.items()
    for name, bits in _BIT_NAMES.items()
}
BANDWIDTH_UNITS = {f"{unit}/{cycle}": bits for cycle in _CYCLE_NAMES for unit, bits in SIZE_UNITS.items()}
RATE_UNITS = {f"{unit}/{second}": bits for second in ("s", "sec") for unit, bits in SIZE_UNITS.items()}
PICOJOULES_A_MICROJOULE = 1e6
ENERGY_UNITS = {
    **{"aJ": "1e-6", "fJ": "1e-3", "pJ": "1", "nJ": "1e3"},
    **{"uJ": "1e6", "µJ": "1e6", "mJ": "1e9", "J": "1e12"},
}
BITS_OF_ENERGY = {"b": 1, "bit": 1, "B": 8, "byte": 8}
"""Unit after the slash of an energy per bit or per byte, such as `B` in `64 pJ/B` -> number of bits in this unit."""
AREA_UNITS = {"um2": "1e-6", "µm2": "1e-6", "mm2": "1"}
"""Unit of area -> factor to mm2, as text with all digits."""
POWER_UNITS = {"pW": "1e-9", "nW": "1e-6", "uW": "1e-3", "µW": "1e-3", "mW": "1", "W": "1e3"}
FREQUENCY_UNITS = {"Hz": "1e-6", "kHz": "1e-3", "MHz": "1", "GHz": "1e3"}

NUMBER_PATTERN = r"[+-]?(?:[0-9][0-9_]{0,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
_QUANTITY = re.compile(rf"\s*({NUMBER_PATTERN})\s*(\S*)\s*")


class FieldError(ValueError):
    """Error of a value that a field does not accept, with the accepted values and the nearest valid name."""

    def __init__(self, message: str, allowed: str = "", nearest: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.allowed = allowed
        self.nearest = nearest


def parse_size_bits(value: object) -> int:
    """Memory size in bits from `16384`, "2 KiB", "64 kB", "128 bits". Raises FieldError unless the size is a whole
    number of bits above 0."""
    size = _quantity(value, SIZE_UNITS, "bits", "2 KiB, 64 kB, 1 MiB, 128 b")
    return _whole(size, "bits", LARGEST_SIZE_BITS)


def parse_bandwidth_bits(value: object) -> int:
    """Port width in bits per cycle, from a number of bits such as `64` or a text such as "8 B/cycle" or "64 b/cycle".
    Raises FieldError for a bandwidth per second, and for a width that is not a whole number of bits above 0."""
    if is_per_second(value):
        raise FieldError(
            "a bandwidth per second needs a clock frequency; give bits per cycle", "512 b/cycle, 64 B/cycle"
        )
    examples = "512 b/cycle, 64 B/cycle, 25.6 GB/s"
    return _whole(_quantity(value, BANDWIDTH_UNITS, "bits per cycle", examples, RATE_UNITS), "bits per cycle")


def is_per_second(value: object) -> bool:
    """True if a value is written as a bandwidth per second."""
    return isinstance(value, str) and re.search(r"/s(ec)?\s*$", value) is not None


def parse_bits_per_second(value: object) -> "Fraction":
    """Bandwidth in bits per second from "25.6 GB/s", "800 Mb/s". Raises FieldError unless it is above 0."""
    rate = _quantity(value, RATE_UNITS, "bits per second", "25.6 GB/s, 800 Mb/s")
    if rate <= 0:
        raise FieldError("must be greater than 0")
    return rate


def is_energy_per_bit(value: object) -> bool:
    """True if a value is written as an energy per bit or byte."""
    return isinstance(value, str) and re.search(rf"J\s*/\s*({'|'.join(BITS_OF_ENERGY)})\s*$", value) is not None


def parse_energy_per_bit_pj(value: object) -> float:
    """Energy per bit in pJ from "8 pJ/b", "64 pJ/B". Raises FieldError if the energy before the slash is negative or
    above LARGEST_ENERGY_PJ.
    """
    energy, _, unit = str(value).partition("/")
    return parse_energy_pj(energy) / BITS_OF_ENERGY[unit.strip()]


def parse_energy_pj(value: object) -> float:
    """Energy in pJ from `0.5`, "0.5 pJ", "1 nJ". Raises FieldError if it is negative or above LARGEST_ENERGY_PJ."""
    return _up_to(LARGEST_ENERGY_PJ, "10^12 pJ", _quantity(value, ENERGY_UNITS, "pJ", "0.5 pJ, 120 fJ, 1 nJ"))


def parse_area_mm2(value: object) -> float:
    """Area in mm2 from "0.25 mm2", "1200 um2", or from `0.25`, a plain number in mm2.

    Raises FieldError if the value is not an area, or if the area is negative or above LARGEST_AREA_MM2.
    """
    return _up_to(LARGEST_AREA_MM2, "10^9 mm2", _quantity(value, AREA_UNITS, "mm2", "0.25 mm2, 1200 um2"))


def parse_power_mw(value: object) -> float:
    """Power in mW from `0.5`, "20 uW", "3 nW". Raises FieldError if it is negative or above LARGEST_POWER_MW."""
    return _up_to(LARGEST_POWER_MW, "10^9 mW", _quantity(value, POWER_UNITS, "mW", "0.5 mW, 20 uW, 3 nW"))


def parse_frequency_mhz(value: object) -> float:
    """Frequency in MHz from `200`, "200 MHz", "1.2 GHz". Raises FieldError unless it is above 0 and at most
    LARGEST_FREQUENCY_MHZ.
    """
    frequency = _quantity(value, FREQUENCY_UNITS, "MHz", "200 MHz, 1.2 GHz")
    if frequency == 0:
        raise FieldError("must be greater than 0")
    return _up_to(LARGEST_FREQUENCY_MHZ, "10^6 MHz", frequency)


def share_of_percent(text: str) -> float:
    """Fraction for a percentage: 0.02 for "2%" or "2 %". Raises FieldError for other texts and negative numbers."""
    number, sign, rest = text.partition("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = math.nan
    if not sign or rest.strip() or not 0 <= share < math.inf:
        raise FieldError("must be a percentage", allowed="0% or more, such as 2%")
    return share


def budget_pj(text: str) -> float:
    """Energy of a network in pJ from a number with a unit. Raises FieldError for other texts, a number without a unit,
    and a number that is not above 0 or is above LARGEST_BUDGET_PJ."""
    allowed = "a number above 0 with a unit: 300 uJ, 3 mJ, 2 J"
    if not text.strip()[-1:].isalpha():
        raise FieldError("must have a unit", allowed)
    try:
        quantity = _quantity(text, ENERGY_UNITS, "pJ", "")
    except FieldError as error:
        message = error.message if error.message.startswith(UNKNOWN_UNIT) else "must be a number with a unit"
        raise FieldError(message, allowed, error.nearest) from None
    if quantity <= 0:
        raise FieldError("must be greater than 0", allowed)
    return _up_to(LARGEST_BUDGET_PJ, "10^12 J", quantity)


def checked(name: str, reader: Callable[[str], float]) -> Callable[[str], None]:
    """Function that checks a text. If `reader` cannot read the text, the function raises InputError for the parameter
    `name`."""

    def check(text: str) -> None:
        try:
            reader(text)
        except FieldError as error:
            problem = Problem(error.message, path=name, value=text, allowed=error.allowed, nearest=error.nearest)
            raise InputError([problem]) from None

    return check


class WrittenArea(NamedTuple):
    """Area as it is written in a file."""

    amount: float
    """Area in mm2 if the text has a unit; otherwise the plain number."""
    has_unit: bool


def parse_written_area(value: object) -> WrittenArea:
    """Area with or without a unit. Raises FieldError if it is negative or above LARGEST_AREA_MM2."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return WrittenArea(parse_area_mm2(value), bool(match and match[2]))


def _quantity(
    value: object,
    units: Mapping[str, int | str],
    plain_unit: str,
    examples: str,
    others: Mapping[str, int | str] | None = None,
) -> "Fraction":
    """Number that a value gives, times the factor of its unit in `units`. The error about an unknown unit names the
    nearest unit in `units` and `others`. `others` has units that the field accepts, but that another function reads.
    """
    from fractions import Fraction  # imported here, so that commands that read no quantity start faster

    allowed = f"a number of {plain_unit}, or with a unit: {examples}"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise FieldError("must be a number", allowed)
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise FieldError("must be a finite number", allowed)
        return Fraction(value)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise FieldError("must be a number, with or without a unit", allowed)
    number, unit = match.groups()
    if unit and unit not in units:
        nearest = nearest_unit(unit, {**units, **(others or {})})
        raise FieldError(f"{UNKNOWN_UNIT} '{unit}'{_two_meanings(unit, units)}", allowed, nearest)
    return Fraction(number.replace("_", "")) * Fraction(units[unit] if unit else 1)


def nearest_unit(unit: str, units: Mapping[str, int | str]) -> str:
    """Unit that a person most likely meant. For `KB`, the result is `KiB`, because most people use `KB` for 1024 bytes.
    For any other unit, the result is the unit that differs only in capitals, or in `ps` instead of `/s`. If bits and
    bytes are both possible, the result is in bytes. A prefix above the largest known prefix becomes the largest. If
    there is no such unit, the result is the unit that is nearest in spelling, or '' if none is near.
    """
    if _is_kilo_by_habit(unit, units):
        return f"Ki{unit.removeprefix('K')}"
    with_slash = re.sub(r"ps$", "/s", unit)
    for meant in (with_slash, re.sub(r"^[PE]", "T", with_slash)):
        same = [one for one in units if one.lower() == meant.lower()]
        if same:
            return meant if meant in same else same[-1]
    return nearest_name(unit, list(units))


def _two_meanings(unit: str, units: Mapping[str, int | str]) -> str:
    """Words on the two meanings of a unit such as `KB`; '' for other units."""
    rest = unit.removeprefix("K")
    return f": write `k{rest}` for 1000 or `Ki{rest}` for 1024" if _is_kilo_by_habit(unit, units) else ""


def _is_kilo_by_habit(unit: str, units: Mapping[str, int | str]) -> bool:
    """True for a unit such as `KB`, which some people use for 1000 bytes, but most people for 1024 bytes."""
    return unit.startswith(("Kb", "KB")) and f"Ki{unit[1:]}" in units


def _whole(quantity: "Fraction", unit: str, largest: int = LARGEST_WHOLE_NUMBER) -> int:
    if quantity <= 0:
        raise FieldError("must be greater than 0")
    if quantity.denominator != 1:
        raise FieldError(f"must be a whole number of {unit}")
    if quantity > largest:
        raise FieldError(f"must not be greater than 2^{largest.bit_length() - 1} {unit}")
    return int(quantity)


def _up_to(largest: int, told: str, quantity: "Fraction") -> float:
    if quantity < 0:
        raise FieldError("must not be negative")
    if quantity > largest:
        raise FieldError(f"must not be greater than {told}")
    return float(quantity)


SHOWN_DIGITS = 4
"""Number of significant digits of measured numbers in texts for people. Files for programs have all digits."""


def number_text(value: float, signed: bool = False) -> str:
    """Text of a measured number with SHOWN_DIGITS significant digits, or with all digits before the point if there are
    more. If `signed` is True, a number above 0 begins with a plus sign.

    Energies, EDPs and areas have this text in all sentences and tables for people, so that a number is the same
    wherever it is printed. The pages for a browser follow the same rule (`numberText` of their scripts).
    """
    sign = "+" if signed and value else ""
    return f"{value:{sign},.0f}" if abs(value) >= 10 ** (SHOWN_DIGITS - 1) else f"{value:{sign},.{SHOWN_DIGITS}g}"


def microjoules_text(energy_pj: float) -> str:
    """Text of an energy in µJ without the unit, for a table whose heading has the unit."""
    return number_text(energy_pj / PICOJOULES_A_MICROJOULE)


def energy_text(energy_pj: float) -> str:
    """Text of an energy in µJ, with the unit.

    All texts for people use this unit, so that their numbers can be compared. Only the energy of one access or one bit
    is given in pJ.
    """
    return f"{microjoules_text(energy_pj)} µJ"


def size_text(bits: int) -> str:
    """Text of a capacity in the largest binary unit in which the capacity is at least 1. The number has three
    significant digits, or all digits before the point if there are more."""
    for unit, size in (("GiB", 2**33), ("MiB", 2**23), ("KiB", 2**13)):
        if bits >= size:
            value = bits / size
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{bits} b" if bits % 8 or bits < 8 else f"{bits // 8} B"


def count_text(count: int, digits: int = 4) -> str:
    """Text of a whole number with `digits` significant digits, such as 9.333e+12 or 1.25e+400. The number can be too
    large for a float."""
    from decimal import Decimal

    try:
        return f"{float(count):.{digits}g}"
    except OverflowError:
        return f"{Decimal(count):.{digits}g}"
