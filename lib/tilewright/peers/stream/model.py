"""The schedule model `stream-2023`: whole tensors in place of pieces, decisions that are not causal."""

from tilewright.peers.stream.scheduler import simulate_stream_2023
from tilewright.peers.stream.whole_tiles import whole_tile_problem
from tilewright.scheduling.models import ScheduleModel

MODEL = ScheduleModel(whole_tile_problem, simulate_stream_2023)
