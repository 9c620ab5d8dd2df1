"""The sets of the court, in the order in which they are told."""

from tilewright.comparison.court.case import CourtSet
from tilewright.comparison.court.gemmini import GEMMINI
from tilewright.comparison.court.gpu import GPU
from tilewright.comparison.court.timeloop import TIMELOOP
from tilewright.comparison.court.tpu import TPU

SETS: dict[str, CourtSet] = {one.name: one for one in (GEMMINI, TIMELOOP, GPU, TPU)}
"""By name."""
