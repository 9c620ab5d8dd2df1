"""Shares of zeros, given in a workload file, by an option for an ONNX network, and in a configuration."""

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.config_networks import network_arguments
from tilewright.cli.options import parse_network_options
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import read_onnx
from tilewright.workload.source import parse_workload

from tests.unit.mapping.test_zeros import workload
from tests.unit.workload.onnx.test_given_bits import PROFILES, network


def shares(profile: str = "corrected", **zeros: float) -> dict[str, dict[str, float]]:
    """Layer of the ONNX network -> its shares of zeros."""
    options = NetworkOptions(zeros=tuple((name.replace("_", "."), share) for name, share in zeros.items()))
    nodes = read_onnx(network(), PROFILES[profile], options=options).workload.nodes
    return {node.name: node.layer.zeros_of for node in nodes if node.layer is not None}


@pytest.mark.parametrize("profile", PROFILES)
def test_each_kind_of_data_has_its_share(profile: str) -> None:
    """Weights are constants, activations are all other inputs, and outputs are final outputs."""
    found = shares(profile, weights=0.1, activations=0.4, outputs=0.5)
    assert found["first"] == {"W": 0.1, "I": 0.4, "O_final": 0.5}
    assert found["second"] == {"W": 0.1, "I": 0.4, "O_final": 0.5}
    assert not any(0.1 in zeros.values() for name, zeros in found.items() if name not in ("first", "second"))


def test_the_narrowest_selection_counts() -> None:
    """The share of an operator overrules that of its type, which overrules the general one; others have no share."""
    found = shares(second_activations=0.7, Conv_activations=0.4)
    assert (found["first"], found["second"], found["relu"]) == ({"I": 0.4}, {"I": 0.7}, {})


def test_a_file_gives_shares() -> None:
    """Each of the shares in a file may be missing."""
    layers = [node.layer for node in parse_workload(workload({"I": 0.6, "O_final": 0.5})).nodes]
    assert [layer.zeros for layer in layers if layer] == [(("I", 0.6), ("O_final", 0.5))] * 2
    assert [node.layer.zeros for node in parse_workload(workload()).nodes if node.layer] == [(), ()]


@pytest.mark.parametrize(
    ("zeros", "said"),
    [
        ({"I": 1.2}, "[0].zeros.I: must not be greater than 1.0, got 1.2"),
        ({"I": -0.1}, "[0].zeros.I: must not be less than 0.0, got -0.1"),
        ({"O_fnal": 0.5}, "did you mean 'O_final'?"),
        ({"O": 0.5}, "unknown key"),
    ],
)
def test_wrong_shares_in_a_file(zeros: dict[str, float], said: str) -> None:
    """The message has the place of a wrong share and the allowed values."""
    with pytest.raises(InputError) as refused:
        parse_workload(workload(zeros))
    assert said in str(refused.value).replace("conv.", "[0].")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("weights=1.5", "zeros.weights: wrong share of zeros, got 1.5 (allowed: a number from 0 to 1)"),
        (
            "weight=0.5",
            "zeros.weight: unknown operand, got weight (allowed: weights, activations, outputs; did you mean",
        ),
        ("weights=nan", "wrong value, got 'weights=nan'"),
        ("weights", "wrong value, got 'weights'"),
        ("weights=0.1,weights=0.2", "this name is given twice"),
    ],
)
def test_wrong_options(text: str, said: str) -> None:
    """Wrong texts on the command line are refused."""
    with pytest.raises(InputError) as refused:
        parse_network_options((), zeros=(text,))
    assert said.split(";")[0] in str(refused.value)


def test_selectors_without_operators_are_refused() -> None:
    """A share of zeros is refused if its selector matches no operator, or no operator with constant operands."""
    with pytest.raises(InputError, match="did you mean 'second'"):
        shares(secnd_activations=0.5)
    with pytest.raises(InputError, match="no constant operands"):
        shares(relu_weights=0.5)


def test_configuration_command_and_python_agree() -> None:
    """Configuration, command and Python give the same shares."""
    noted: list[object] = []
    table = {"zeros": {"net": {"weights": 0.1, "Conv.activations": 0.45}}}
    (arguments,) = network_arguments(table, ["net"], lambda *told, **more: noted.append(told)).values()
    assert arguments == ("--zeros=weights=0.1", "--zeros=Conv.activations=0.45")
    assert noted == []
    texts = tuple(argument.removeprefix("--zeros=") for argument in arguments)
    assert parse_network_options((), zeros=texts).zeros == (("weights", 0.1), ("Conv.activations", 0.45))
    network_arguments({"zeros": {"net": {"weights": 2}}}, ["net"], lambda *told, **more: noted.append(told))
    assert "wrong share of zeros" in str(noted)


def test_options_for_files_without_onnx_are_refused() -> None:
    """The option is refused for a workload file, which has a key for shares."""
    with pytest.raises(InputError, match="zeros: applies only to ONNX files"):
        parse_workload(workload(), options=NetworkOptions(zeros=(("weights", 0.5),)))
