"""Certificates of lower bounds: weights in exact fractions prove a bound, and false claims are found."""

import copy
from typing import Any

import pytest
from tilewright.multicore.scheduling.bounds.certificate import bound_certificate
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.bound_certificate import certificate_faults

from tests.unit.multicore.scheduling.bound_attack import Target, target
from tests.unit.multicore.scheduling.tiny_systems import Piece, bus_system, make_problem


def certified(seed: int) -> tuple[Target, dict[str, Any]]:
    """A random problem, and the certificate of its bounds."""
    aim = target(seed)
    return aim, bound_certificate(aim.problem, aim.allowed, aim.bounds)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_follow_from_their_weights(seed: int) -> None:
    """Every claim for random problems states its bound and follows from its weights."""
    aim, certificate = certified(seed)
    for rule, claim in certificate.items():
        stated = aim.bounds.energy_pj if rule == "energy" else getattr(aim.bounds.if_copied, f"{rule}_cycles")
        assert claim.get("pj", claim.get("cycles")) == stated
    assert certificate_faults(aim.problem, aim.allowed, certificate) == []


def test_larger_claims_and_other_weights_do_not_follow() -> None:
    """A claim of one cycle more, energy larger by a millionth, negative weights and an unknown rule are found."""
    aim, certificate = certified(3)
    assert set(certificate) == {"critical_path", "off_chip_traffic", "energy", "core_work", "link_traffic"}
    for rule in certificate:
        wrong = copy.deepcopy(certificate)
        if rule == "energy":
            wrong[rule]["pj"] *= 1 + 1e-6
        else:
            wrong[rule]["cycles"] = round(wrong[rule]["cycles"] * 1.5) + 2
        found = certificate_faults(aim.problem, aim.allowed, wrong)
        assert [text.partition(":")[0] for text in found] == [rule]
    negative = copy.deepcopy(certificate)
    negative["link_traffic"]["links"][0][1] = -1
    assert certificate_faults(aim.problem, aim.allowed, negative) == ["link_traffic: a weight is negative"]
    negative = copy.deepcopy(certificate)
    negative["core_work"]["traffic"][0] = -1
    assert len(certificate_faults(aim.problem, aim.allowed, negative)) == 1
    assert certificate_faults(aim.problem, aim.allowed, {"magic": {"cycles": 9}}) == ["magic: is not a known rule"]


def test_nothing_to_run() -> None:
    """The certificate of a problem without CNs has no fault."""
    problem = make_problem(bus_system(1), [Piece(40)], [])
    allowed = target(0).allowed[:0, :2]
    certificate = bound_certificate(problem, allowed, lower_bounds(problem))
    assert certificate_faults(problem, allowed, certificate) == []
