"""Stages in the form of zigzag-dse, as in scripts of users."""

import copy
from typing import Any

from tilewright.main_stage import Stage, TemporalMapping

# They are written as users write them: without types, and with their habits.
# mypy: ignore-errors


class LeastAccesses(Stage):
    """A reduction that keeps the mapping with the fewest accesses."""

    def run(self):
        substage = self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs)
        best = None
        for cme, _ in substage.run():
            value = sum(level.rd_out_to_low for level in cme.memory_word_access["W"])
            if best is None or value < best[0]:
                best = value, cme
        yield best[1], {"words": best[0]}


class FastEnough(Stage):
    """A filter that drops slow mappings."""

    def __init__(self, list_of_callables, *, most_cycles=10**9, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.most_cycles = most_cycles

    def run(self):
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            if cme.latency_total2 <= self.most_cycles:
                yield cme, extra_info


class DearerMemories(Stage):
    """A stage that varies the memory energies of the accelerator."""

    def __init__(self, list_of_callables, *, accelerator, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.accelerator = accelerator

    def run(self):
        for factor in (1, 2):
            accelerator = copy.deepcopy(self.accelerator)
            for level in accelerator.memory_hierarchy.mem_level_list:
                level.memory_instance.r_cost *= factor
                level.memory_instance.w_cost *= factor
            kwargs = self.kwargs.copy()
            kwargs["accelerator"] = accelerator
            for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **kwargs).run():
                yield cme, (factor, extra_info)


class Twice(Stage):
    """A stage that yields each result twice."""

    def run(self):
        for pair in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            yield pair
            yield pair


class Raises(Stage):
    """A stage that raises an error at its first cost model evaluation (CME)."""

    def run(self):
        for cme, _ in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            raise KeyError(cme.layer.name)  # the line that is told
            yield


class YieldsNothing(Stage):
    """A stage that yields no result."""

    def run(self):
        yield from list(self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run())[:0]


class ReturnsNothing(Stage):
    """A stage whose `run` returns None."""

    def run(self):
        list(self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run())


class Penalty(Stage):
    """A stage that sets another energy and its own attribute."""

    def run(self):
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            cme.energy_total *= 1.5
            cme.mine = "kept"
            yield cme, extra_info


class SwapsLoops(Stage):
    """A stage that swaps the two innermost loops if one memory level has both."""

    def __init__(self, list_of_callables, *, temporal_mapping, layer, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.temporal_mapping, self.layer = temporal_mapping, layer

    def run(self):
        levels = copy.deepcopy(dict(self.temporal_mapping.mapping_dic_origin))
        if all(len(of_operand[0]) >= 2 for of_operand in levels.values()):
            for of_operand in levels.values():
                of_operand[0][0], of_operand[0][1] = of_operand[0][1], of_operand[0][0]
        kwargs = self.kwargs.copy()
        kwargs["layer"] = self.layer
        kwargs["temporal_mapping"] = TemporalMapping(levels, self.layer)
        yield from self.list_of_callables[0](self.list_of_callables[1:], **kwargs).run()


class GivenSpatialMapping(Stage):
    """A stage that sets the spatial mapping of each layer."""

    def __init__(self, list_of_callables, *, layer, spatial_mapping_of_mine, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.layer, self.given = layer, spatial_mapping_of_mine

    def run(self):
        self.layer.spatial_mapping = self.given
        substage = self.list_of_callables[0](self.list_of_callables[1:], layer=self.layer, **self.kwargs)
        for cme, extra_info in substage.run():
            yield cme, extra_info


class Counts(Stage):
    """A stage that counts the evaluations."""

    seen: list[Any] = []  # noqa: RUF012

    def run(self):
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            Counts.seen.append(cme.energy_total)
            yield cme, extra_info


class YieldsNumbers(Stage):
    """A stage that yields numbers in place of pairs."""

    def run(self):
        for cme, _ in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            yield cme.energy_total


class ChangesSizes(Stage):
    """A stage that changes a table of the layer."""

    def __init__(self, list_of_callables, *, layer, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.layer = layer

    def run(self):
        self.layer.layer_dim_sizes["K"] = 1
        yield from self.list_of_callables[0](self.list_of_callables[1:], layer=self.layer, **self.kwargs).run()


class Forgets(Stage):
    """A stage that takes a keyword and does not pass it on."""

    def __init__(self, list_of_callables, *, accelerator, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.accelerator = accelerator

    def run(self):
        yield from self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run()


class SmallerCore(Stage):
    """A stage that removes a memory and a part of the array."""

    def __init__(self, list_of_callables, *, accelerator, **kwargs):
        super().__init__(list_of_callables, **kwargs)
        self.accelerator = accelerator

    def run(self):
        accelerator = copy.deepcopy(self.accelerator)
        levels = accelerator.memory_hierarchy.mem_level_list
        levels.remove(next(level for level in levels if level.name == "input_pad"))
        accelerator.operational_array.dimension_sizes["D1"] = 6
        substage = self.list_of_callables[0](self.list_of_callables[1:], accelerator=accelerator, **self.kwargs)
        yield from substage.run()
