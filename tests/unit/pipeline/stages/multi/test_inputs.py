"""Stated options of a tiling are read back."""

import pytest
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.multi.inputs import stated_tiling


@pytest.mark.parametrize(
    "options",
    [
        TilingOptions(),
        TilingOptions(mode="lbl"),
        TilingOptions(layer_stacks=[[0, 1], [2]]),
        TilingOptions(cn_define_mode=4, hint_loops=[["OY", 2]], split_W_percentage=0.5),
        TilingOptions(cn_define_mode=1, hint_loops=[["OY", "all"], ["K", 4]]),
        TilingOptions(cn_define_mode=3, hint_loops=[[["OY", 2]], [["K", 4], ["OY", 3]]], layer_cutoffs=[1]),
        TilingOptions(cn_define_mode=3, hint_loops={(0, 1): [["OY", 2]], (2,): []}),
        TilingOptions(stack_cutoffs=[3]),
    ],
)
def test_options_are_read_back(options: TilingOptions) -> None:
    """Options are read back for each form of loops."""
    assert stated_tiling(options.stated()) == options


def test_a_pipeline_is_no_tiling() -> None:
    """The stated stages of a pipeline give no options, because a user's stages cut the network."""
    assert stated_tiling({"pipeline": []}) is None
