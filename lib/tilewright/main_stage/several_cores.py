"""Evaluation of a multi-core schedule for scripts, under the names of Stream.

The class of Stream is `stream.classes.cost_model.cost_model.StreamCostModelEvaluation`.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import nearest_name
from tilewright.base.objectives import energy_delay_product
from tilewright.main_stage import keywords as words

if TYPE_CHECKING:
    from tilewright.main_stage.views import DNNWorkload, System
    from tilewright.pipeline.stages.multi.result import MultiCoreResult


class StreamCostModelEvaluation:
    """Costs of a network that runs on several cores: energy in pJ, latency in cycles."""

    def __init__(self, result: "MultiCoreResult") -> None:
        self.result = result
        """Result of tilewright, with cost tables, summary, bounds and schedule."""
        self.latency, self.energy = result.latency_cycles, result.energy_pj

    @property
    def edp(self) -> float:
        """Energy-delay product in pJ cycles."""
        return energy_delay_product(self.energy, self.latency)

    @cached_property
    def workload(self) -> "DNNWorkload":
        """Network after its division into computation nodes."""
        from tilewright.main_stage.views import DNNWorkload

        return DNNWorkload(self.result.problem.inputs)

    @cached_property
    def accelerator(self) -> "System":
        """Accelerator on which the network is scheduled."""
        from tilewright.main_stage.views import System

        return System(self.result.problem.inputs.descriptions.accelerator)

    @property
    def scheduler_candidate_selection(self) -> str:
        """Name of the rule by which each core chooses its next computation node."""
        return str(self.result.problem.settings.stated()["scheduler_candidate_selection"])

    @property
    def operands_to_prefetch(self) -> list[str]:
        """Layer operands that are prefetched."""
        return list(self.result.problem.settings.operands_to_prefetch)

    def plot_schedule(
        self,
        plot_full_schedule: bool = False,
        draw_dependencies: bool = True,
        plot_data_transfer: bool = False,
        section_start_percent: tuple[int, ...] = (0, 50, 95),
        percent_shown: tuple[int, ...] = (5, 5, 5),
        fig_path: str = "outputs/schedule_plot.png",
    ) -> tuple[Path, ...]:
        """Draw the schedule. Returns the paths of the figure, `.svg` and `.png`.

        If `plot_full_schedule` is true, the figure shows the whole schedule. Otherwise, it shows three sections, each 5
        % of the latency long: at the beginning, in the middle and at the end. If `plot_data_transfer` is true, the
        figure also shows transfers. The arguments `draw_dependencies`, `section_start_percent` and `percent_shown` have
        no effect: dependences are shown only on the page of a report.
        """
        from tilewright.results.multi.bars import ScheduleView
        from tilewright.results.multi.gantt import write_schedule_figure
        from tilewright.results.schedule_options import ScheduleFigureOptions

        options = ScheduleFigureOptions(plot_full_schedule=plot_full_schedule, plot_data_transfer=plot_data_transfer)
        stem = Path(fig_path).with_suffix("")
        make_folder(stem.parent)
        return write_schedule_figure(ScheduleView(self.result.artifact), stem, self.result.summary, options)

    def plot_full_schedule(self, fig_path: str = "outputs/schedule_plot.png") -> tuple[Path, ...]:
        """Draw the whole schedule, with its transfers. Returns the paths of the figure, `.svg` and `.png`."""
        return self.plot_schedule(plot_full_schedule=True, plot_data_transfer=True, fig_path=fig_path)

    def plot_data_transfer(self, fig_path: str = "outputs/schedule_plot.png") -> tuple[Path, ...]:
        """Draw three sections of the schedule, with its transfers. Returns the paths of the figure, `.svg` and
        `.png`.
        """
        return self.plot_schedule(plot_data_transfer=True, fig_path=fig_path)

    def plot_memory_usage(self, fig_path: str = "outputs/memory_usage_plot.png") -> tuple[Path, ...]:
        """Draw the content of memories over time. Returns the paths of the figure."""
        from tilewright.results.multi.bars import ScheduleView
        from tilewright.results.multi.memory_figure import write_memory_figure

        stem = Path(fig_path).with_suffix("")
        make_folder(stem.parent)
        return write_memory_figure(ScheduleView(self.result.artifact), stem)

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError with the nearest name of an existing attribute."""
        if name.startswith("_"):
            raise AttributeError(name)
        known = [one for one in dir(type(self)) if not one.startswith("_")] + ["latency", "energy", "result"]
        near = nearest_name(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"StreamCostModelEvaluation of tilewright has no {name}{hint}")

    def __str__(self) -> str:
        return f"SCME(energy={self.energy:.2e}, latency={self.latency:.2e})"

    __repr__ = __str__


def draw(scme: StreamCostModelEvaluation, keywords: Mapping[str, Any]) -> None:
    """Draw the figures that a script requests by the keyword `plot_file_name`: the schedule, and the content of
    memories over time. If the keyword is not given, nothing is drawn.

    A value with `/` is the path of the schedule figure. Any other text is appended to `outputs/schedule_plot`. The
    memory figure has the same path with `_memory` at its end.
    """
    name = words.given(keywords, words.PLOT_NAME)
    if not name:
        return
    stem = str(name) if isinstance(name, str | Path) else ""
    path = Path(stem) if "/" in stem else Path("outputs") / f"schedule_plot{stem}"
    path = path.with_suffix("") if path.suffix in (".png", ".svg", ".html") else path
    full, transfer = (bool(words.given(keywords, word, False)) for word in (words.PLOT_FULL, words.PLOT_TRANSFER))
    scme.plot_schedule(plot_full_schedule=full, plot_data_transfer=transfer, fig_path=f"{path}.png")
    scme.plot_memory_usage(fig_path=f"{path}_memory.png")
