"""Independent check of the certificates of attentions.

The costs in a certificate must be right, and no plan may have a value below the lower bound of the certificate.

The check uses the same lower bounds of layers, the same costs and the same plan programs as the search, but not the
search algorithm. The check bounds every plan of the space once, from the costs that the certificate lists.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.artifacts.seals import read_sealed
from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import CLOSE, contradictions, differing
from tilewright.results.checks import Check, result
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.optimum import Bounds
from tilewright.tiles.attention.points import AttentionPoints
from tilewright.tiles.attention.program import TileLayerProblem
from tilewright.tiles.attention.result import plan_object, problem_of
from tilewright.tiles.attention.space import ORDERS, AttentionPlan, AttentionSpace, Sizes, Tile
from tilewright.tiles.depth_first.options import LayerOptions

Reach = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class AttentionCertificate:
    """Certificate of an attention, as read from a file."""

    objective: str
    value: float
    lower_bound: float
    gap: float
    proven: bool
    plans_in_space: int
    sizes: Sizes
    searched: tuple[
        tuple[str, tuple[int, int, int, int], Reach, tuple[tuple[str, int], ...], float | None, float | None], ...
    ]


@dataclass(frozen=True)
class CertifiedAttention:
    """Attention with its best plan, as read from a file."""

    name: str
    repeats: int
    shape: dict[str, Any]
    plan: dict[str, Any] | None
    costs: tuple[float, float]
    """Energy in pJ and latency in cycles of the best plan, as the file states them."""
    unfused: tuple[float, float]
    certificate: AttentionCertificate


@dataclass(frozen=True)
class CertifiedFile:
    """Content of a file of certified attentions."""

    core: str
    workload: str
    points: AttentionPoints
    options: LayerOptions
    attentions: tuple[CertifiedAttention, ...]


def read_certified(file: Path) -> CertifiedFile:
    """Content of a file of certified attentions. Raises InputError if the file has no valid content."""
    content = read_sealed(file, is_required=False)
    try:
        told = json.loads(content)
        found = [
            CertifiedAttention(
                one["name"],
                one["repeats"],
                one["shape"],
                one["plan"],
                (float(one["best"][ENERGY_PJ]), float(one["best"][LATENCY_CYCLES])),
                (float(one["unfused"][ENERGY_PJ]), float(one["unfused"][LATENCY_CYCLES])),
                decode(AttentionCertificate, one["certificate"]),
            )
            for one in told["attentions"]
        ]
        options = decode(LayerOptions, told["options"])
        return CertifiedFile(
            told["core"], told["workload"], decode(AttentionPoints, told["points"]), options, tuple(found)
        )
    except (OSError, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        text = f"is not a valid certificate of `tilewright attention`: {type(error).__name__}: {error}"
        raise InputError([Problem(text, path=str(file))]) from error


def check_certificates(told: CertifiedFile, name: str, problems: Sequence[AttentionCosts]) -> list[Check]:
    """Checks of a file that has one certificate for each attention of a workload. `name` is the name of the workload,
    and `problems` has its attentions in the order of the file `told`.

    If the file is for another core, another workload or another number of attentions, only this error is reported.
    """
    core = problems[0].core.name if problems else told.core
    about = ("core", core, told.core), ("workload", name, told.workload)
    faults = list(differing((*about, ("attentions", len(problems), len(told.attentions)))))
    found = [result("certificate: subject", "core, workload, attentions", faults)]
    if faults:
        return found
    for one, costs in zip(told.attentions, problems, strict=True):
        costs.check()
        found += _Checker(one, costs).checks()
    return found


@dataclass(frozen=True)
class _Checker:
    told: CertifiedAttention
    costs: AttentionCosts

    def checks(self) -> Iterator[Check]:
        """Results of the checks of one attention: subject, costs, value and lower bound. If the subject is wrong, the
        other checks are left out.
        """
        claim, name = self.told.certificate, self.told.name
        subject = list(self._subject())
        yield result(f"{name}: subject", "shape, sizes, objective, plan", subject)
        if subject:
            return
        yield result(f"{name}: costs", f"{len(claim.searched):,} layers of tiles searched again", list(self._costs()))
        yield result(
            f"{name}: value",
            "the plan has the stated value, and is not worse than unfused execution",
            list(self._value()),
        )
        yield result(
            f"{name}: lower bound",
            f"{count_of(claim.plans_in_space, 'plan')}: lower bounds computed again",
            list(self._bound()),
        )

    @property
    def _space(self) -> AttentionSpace:
        return AttentionSpace(self.costs.attention.shape, self.costs.memories, self.told.certificate.sizes)

    def _plan(self) -> AttentionPlan | None:
        """Plan that the file names; None if the space has no such plan."""
        told = self.told.plan
        assert told is not None
        try:
            tile = Tile(*[told[f"tile_{axis}"] for axis in Tile._fields])
        except KeyError:
            return None
        return next((plan for plan in self._space.plans_of(tile) if plan_object(self.costs, plan) == told), None)

    def _subject(self) -> Iterator[str]:
        attention, claim = self.costs.attention, self.told.certificate
        yield from differing(
            (
                ("name", attention.name, self.told.name),
                ("repeats", attention.repeats, self.told.repeats),
                ("shape", encode(attention.shape), self.told.shape),
                ("objective", self.costs.options.objective, claim.objective),
            )
        )
        sizes = claim.sizes
        if any(size < 1 for axis in Tile._fields for size in getattr(sizes, axis)):
            yield f"sizes of tiles below 1: {sizes}"
        elif not sizes.orders or not set(sizes.orders) <= set(ORDERS):
            yield f"the space has no orders of loops, or unknown orders: {sizes.orders}"
        elif self.told.plan is not None and self._plan() is None:
            yield f"this plan is not in the space: {self.told.plan}"

    def _costs(self) -> Iterator[str]:
        """Messages on the layers of tiles in the certificate. There are two kinds of errors: the core or the attention
        does not have the layer, or the costs of the layer differ from the costs that are computed again.
        """
        for row in self.told.certificate.searched:
            problem = problem_of(self.costs, row)
            if problem is None:
                yield f"the core or the attention has no such layer of a tile: {row[:4]}"
                continue
            ledger = self.costs.of_layer(problem)
            cost = (None, None) if ledger is None else (ledger.energy_pj, ledger.latency_cycles())
            if cost != row[4:]:
                yield f"{row[:4]}: energy and latency are {row[4:]} in the certificate, but {cost} if computed again"

    def _value(self) -> Iterator[str]:
        """Messages on wrong numbers in the certificate. A number is wrong if it contradicts another number of the
        certificate, the costs of the plan, or the costs of unfused execution.
        """
        claim, powers = self.told.certificate, OBJECTIVES[self.told.certificate.objective]
        unfused = self.costs.unfused()
        yield from _differs("unfused", self.told.unfused, (unfused.energy_pj, unfused.latency_cycles()))
        plan = None if self.told.plan is None else self._plan()
        ledger = unfused if plan is None else self.costs.of_plan(plan)
        if ledger is None:
            yield "the plan cannot run, because no mapping of its layers fits into the memories"
            return
        yield from _differs("best", self.told.costs, (ledger.energy_pj, ledger.latency_cycles()))
        value = powers.value(ledger.energy_pj, ledger.latency_cycles())
        if not math.isclose(value, claim.value, rel_tol=CLOSE):
            yield f"the certificate has the value {claim.value}, but the plan has {value}"
        if value > powers.value(unfused.energy_pj, unfused.latency_cycles()) * (1 + CLOSE):
            yield "the plan is worse than unfused execution"
        yield from contradictions(claim)

    def _bound(self) -> Iterator[str]:
        """Messages on plans that have a smaller lower bound than the certificate states, and on a wrong number of
        plans.
        """
        claim, powers = self.told.certificate, OBJECTIVES[self.told.certificate.objective]
        searched: dict[TileLayerProblem, tuple[float, float] | None] = {}
        for row in claim.searched:
            problem = problem_of(self.costs, row)
            if problem is not None:
                searched[problem] = None if row[4] is None or row[5] is None else (row[4], row[5])
        bounds = Bounds(self.costs, searched)
        count = 1
        for plan in self._space.plans():
            count += 1
            program = self.costs.program(plan)
            least = powers.value(*bounds.of_program(program))
            if least < claim.lower_bound * (1 - CLOSE):
                plan_told = plan_object(self.costs, plan)
                yield f"{plan_told} could have the value {least}, below the lower bound {claim.lower_bound}"
        if count != claim.plans_in_space:
            yield f"the certificate has {claim.plans_in_space} plans, but the space has {count}"


def _differs(what: str, told: tuple[float, float], found: tuple[float, float]) -> Iterator[str]:
    if not all(math.isclose(one, other, rel_tol=CLOSE) for one, other in zip(told, found, strict=True)):
        yield f"{what}: energy and latency are {told} in the file, but {found} if computed again"
