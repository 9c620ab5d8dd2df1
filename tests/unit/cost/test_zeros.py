"""Zero gating and run-length codes: the plain model, sizes by hand, and bounds below all mappings."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import MappingError
from tilewright.hardware.core import RunLength, ZeroGating
from tilewright.mapping.zeros import compressed_share, pairs_an_element
from tilewright.results.checks import check_run, failure_message
from tilewright.search.evaluate import evaluate, prepare
from tilewright.search.options import SearchOptions

from tests.members import members
from tests.plain import attack_open, comparison
from tests.plain.attack import Outcome, attack
from tests.plain.attack_layer_bounds import attack_layer_bounds
from tests.plain.tally import Tally
from tests.plain.zero_problems import problem_with_zeros, with_random_zeros
from tests.plain.zeros import elements_a_pair, exactly

EYERISS = RunLength(("I1", "O"), 5, 3, 64)


def test_every_term_is_that_of_the_plain_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words, transfers, stalls, latency and energy of random mappings on cores with keys equal the plain model."""
    monkeypatch.setattr(comparison, "random_problem", problem_with_zeros)
    seen: Counter[str] = Counter()
    for seed in range(members(400, 120)):
        for compared in comparison.comparisons(seed):
            assert not compared.differences, (seed, compared.problem.model, compared.order, compared.boundaries)
            if compared.record is not None:
                seen["fits"] += 1
                seen["gated"] += compared.record.get("active_share", 1.0) < 1.0
                seen["compressed"] += any(memory.run_length for memory in compared.problem.core.memories)
    assert seen["fits"] > members(450, 130)
    assert seen["gated"] > members(120, 35)
    assert seen["compressed"] > members(200, 60)


def test_a_share_of_zero_layers_gives_the_same_numbers() -> None:
    """Keys without shares of zeros, and shares without keys, change no number of a record."""
    tried = 0
    for seed in range(60):
        bare = comparison.random_problem(seed)
        layer, core = with_random_zeros(random.Random(seed), bare.layer, bare.core)
        plain = bare.plain()
        order = tuple(plain.temporal_sizes.items())
        options = SearchOptions(model=bare.model)

        def cost(layer: Any, core: Any, bare: Any = bare, order: Any = order, options: Any = options) -> Any:
            try:
                record = evaluate(layer, core, bare.links, bare.unrolling, order, options)
            except MappingError:
                return None
            return replace(record, zeros={}, active_share=1.0)

        one = cost(bare.layer, bare.core)
        assert cost(bare.layer, core) == one
        assert cost(layer, bare.core) == one
        tried += one is not None
    assert tried > 20


@pytest.mark.parametrize(("zeros", "share"), [(0.0, 4 / 3), (0.25, 1.0), (0.5, 2 / 3), (1.0, 1 / 24), (0.725, 0.36668)])
def test_sizes_of_the_code_of_eyeriss(zeros: float, share: float) -> None:
    """Run-length compression as in Eyeriss puts three pairs into 64 bits.

    With less than 25 % zeros, compressed data are larger than plain data. At best, they take 1 / 24 of the plain size.
    """
    assert compressed_share(EYERISS, 16, zeros) == pytest.approx(share, rel=1e-5)


@pytest.mark.parametrize("run_bits", [1, 2, 5])
@pytest.mark.parametrize("zeros", [0.0, 0.1, 0.45, 0.9, 0.999, 1.0])
def test_expected_pairs_are_those_of_all_runs(run_bits: int, zeros: float) -> None:
    """The closed form of expected pairs equals the sum over all runs that a pair can hold."""
    expected = 1 / elements_a_pair(run_bits, exactly(zeros))
    assert pairs_an_element(run_bits, zeros) == pytest.approx(float(expected), rel=1e-9)


def test_expected_pairs_are_those_of_a_coded_stream() -> None:
    """An encoder of random elements needs the expected number of pairs."""
    rng = random.Random(3)
    pairs, run = 0, 0
    for _ in range(200_000):
        if rng.random() < 0.7 and run < 3:
            run += 1
        else:
            pairs, run = pairs + 1, 0
    assert pairs / 200_000 == pytest.approx(pairs_an_element(2, 0.7), rel=0.01)


def test_wide_elements_are_refused() -> None:
    """An element that does not fit into a pair is refused with the reason."""
    assert compressed_share(EYERISS, 8, 0.0) == pytest.approx(8 / 3)
    with pytest.raises(MappingError, match="3 pairs of 5 \\+ 17 bits do not fit into a word of 64 bits"):
        compressed_share(EYERISS, 17, 0.5)


def test_ports_that_are_too_narrow_are_refused() -> None:
    """A port that moves less than a bit of plain data per cycle is refused; a wide one is accepted."""
    bare = comparison.random_problem(5)
    layer = replace(bare.layer, zeros=tuple((key, 0.0) for key, _ in bare.layer.precision_bits if key != "O"))
    top = bare.core.memories[-1]
    most = max(bits for _, bits in layer.precision_bits)
    code = RunLength(top.operands, 1, 1, 20 * most)
    for width, is_refused in ((20 * most, False), (1, True)):
        ports = tuple(replace(port, bandwidth_min_bits=1, bandwidth_max_bits=width) for port in top.ports)
        memory = replace(top, ports=ports, run_length=code)
        core = replace(bare.core, memories=(*bare.core.memories[:-1], memory))
        assert is_refused == _is_refused_for_its_port(layer, core, bare.links, bare.unrolling), width


def _is_refused_for_its_port(layer: Any, core: Any, links: Any, unrolling: Any) -> bool:
    try:
        prepare(layer, core, links, unrolling, SearchOptions(model="corrected"))
    except MappingError as error:
        return "bits per cycle, but the run-length code turns each bit" in str(error)
    return False


def test_no_mapping_is_below_a_bound() -> None:
    """Proven optima equal brute force, and bounds of layers are not above random mappings."""
    outcome, tally = Outcome(), Tally()
    for seed in range(members(120, 12)):
        outcome.add(attack(seed, draw=problem_with_zeros))
    assert outcome.differences == []
    assert outcome.counts["proven"] > members(250, 20)
    for seed in range(members(300, 30)):
        tally.add(attack_layer_bounds(seed, problem_with_zeros))
    assert tally.wrong == []
    assert tally.counts["mappings"] > members(6000, 500)


def test_no_spatial_mapping_is_better_than_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs over open sides of the array hold.
    The bound of seed 323 counts only the operations that zeros do not stop.
    """
    monkeypatch.setattr(attack_open, "random_problem", problem_with_zeros)
    outcome = Outcome()
    for seed in (323, 2017, *range(2002, 2002 + members(12, 2))):
        outcome.add(attack_open.attack_open(seed))
    assert outcome.differences == []
    assert outcome.counts["proven"] > members(40, 10)


def test_reads_are_left_out_only_if_all_operations_stop() -> None:
    """Reads are left out only if all operations of a lane stop: with zeros everywhere, no input or weight is read."""
    found = next(
        problem
        for seed in range(200)
        if (problem := comparison.random_problem(seed)).layer.operator_type == "Gemm"
        and problem.model == "corrected"
        and len(problem.layer.operands) == 3
    )
    gating = ZeroGating(("I1", "I2"), ("I1", "I2"))
    core = replace(found.core, operational_array=replace(found.core.operational_array, zero_gating=gating))
    all_zero = replace(found.layer, zeros=(("I", 1.0), ("W", 1.0)))
    order = tuple(found.plain().temporal_sizes.items())
    record = evaluate(all_zero, core, found.links, found.unrolling, order, SearchOptions(model="corrected"))
    assert record.energy_terms_pj["mac"] == 0.0
    assert all(record.word_accesses[operand][0]["tl"] == 0 for operand in ("I", "W"))
    assert failure_message(check_run([record], None, core)) == ""
