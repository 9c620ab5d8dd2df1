"""One mistake in an ONNX file, chosen by a seed: a misspelt, repeated or foreign name."""

import random

import onnx

from tests.strangers.mistakes import misspelt

OF_OTHER_TOOLS = ("target_core", "tile_size", "quant_bits", "xnnpack", "layout")
"""Attributes that other tools, and some of tilewright's, might add."""


def onnx_mistake(content: bytes, seed: int) -> tuple[str, tuple[str, ...], bytes]:
    """(kind of mistake, words of which a message has at least one, the model with the mistake)."""
    chance = random.Random(seed)
    model = onnx.load_model_from_string(content)
    node = chance.choice(list(model.graph.node))
    attributes = list(node.attribute)
    kind = chance.choice(("operator", "attribute", "attribute", "domain", "node", "tool", "input", "repeated", "opset"))
    place = (node.name, node.op_type)
    if kind in ("attribute", "repeated") and attributes:
        one = chance.choice(attributes)
        if kind == "repeated":
            node.attribute.append(one)
            return "repeated attribute", (one.name,), model.SerializeToString()
        word = one.name
        one.name = misspelt(word, chance)
        return "misspelt attribute", (word, one.name), model.SerializeToString()
    if kind == "domain":
        node.domain = chance.choice(("com.microsoft", "ai.onnx.ml", "my.tools", "ai.onn"))
        return "moved domain", (*place, node.domain), model.SerializeToString()
    if kind == "node":
        model.graph.node.append(node)
        return "repeated node", (*place, *node.output), model.SerializeToString()
    if kind == "tool":
        name = chance.choice(OF_OTHER_TOOLS)
        node.attribute.append(onnx.helper.make_attribute(name, chance.choice((4, "x", [1, 2]))))
        return "attribute of a tool", (name,), model.SerializeToString()
    if kind == "input":
        number = chance.randrange(len(node.input))
        word = node.input[number]
        node.input[number] = word + "_x"
        return "misspelt input", (word, node.input[number], *place), model.SerializeToString()
    if kind == "opset":
        one = model.opset_import[0]
        one.domain = misspelt("ai.onnx", chance)
        return "misspelt operator set", (one.domain, "operator set", *place), model.SerializeToString()
    word = node.op_type
    node.op_type = misspelt(word, chance)
    return "misspelt operator", (word, node.op_type, node.name), model.SerializeToString()
