"""Make the example networks of this folder: ResNet-18, MobileNetV2 and BERT-tiny as ONNX files without weights.

Run `python config/workload/make_models.py` to write them anew; the bytes are always the same. Nothing is downloaded:
the graphs are built here from the published architectures, in the form in which networks are exported for inference
(batch normalisation folded into the convolutions, fixed input shapes, the shape of every tensor stored). Weights are
declared with their shapes, as external data in a file that does not exist.

Sources:
  ResNet-18    K. He, X. Zhang, S. Ren, J. Sun: Deep Residual Learning for Image Recognition, 2015 (arXiv:1512.03385),
               table 1, 18 layers, projection shortcuts where the shape changes.
  MobileNetV2  M. Sandler, A. Howard, M. Zhu, A. Zhmoginov, L.-C. Chen: MobileNetV2: Inverted Residuals and Linear
               Bottlenecks, 2018 (arXiv:1801.04381), table 2, width 1.0.
  BERT-tiny    I. Turc, M.-W. Chang, K. Lee, K. Toutanova: Well-Read Students Learn Better, 2019 (arXiv:1908.08962):
               2 layers, hidden size 128, 2 heads, feed-forward size 512, vocabulary 30522; here 128 tokens.

Licence: the files are made by this script and fall under the licence of this project.
"""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]

OPSET = 20
IR_VERSION = 9
WEIGHT_FILE = "weights-not-included.bin"


class GraphBuilder:
    """Appends operators to a graph; every tensor is known by name, with its shape. A node's name is its output's."""

    def __init__(self, name: str, data: str, shape: Shape, element_type: int = TensorProto.FLOAT) -> None:
        self.name = name
        self.shapes: dict[str, Shape] = {data: shape}
        self.inputs = [helper.make_tensor_value_info(data, element_type, shape)]
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def add(self, operator: str, name: str, inputs: list[str], shape: Shape, **attributes: object) -> str:
        """One operator; returns the name of its output."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        self.shapes[name] = shape
        return name

    def weight(self, name: str, shape: Shape) -> str:
        """A float tensor of which only the shape is stored."""
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=WEIGHT_FILE)
        self.initializers.append(tensor)
        return name

    def value(self, name: str, array: np.ndarray) -> str:
        """A small constant with its values."""
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def model(self, output: str) -> onnx.ModelProto:
        """The finished model with `output` as its only output."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            self.inputs,
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, self.shapes[output])],
            self.initializers,
            value_info=[
                helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, self.shapes[node.output[0]])
                for node in self.nodes
                if node.output[0] != output
            ],
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="config/workload/make_models.py",
        )

    def conv(self, name: str, data: str, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution with bias and 'same' padding for its odd, square kernel."""
        batch, in_channels, height, width = self.shapes[data]
        weight = self.weight(f"{name}.weight", (channels, in_channels // groups, kernel, kernel))
        bias = self.weight(f"{name}.bias", (channels,))
        pad = kernel // 2
        shape = (batch, channels, math.ceil(height / stride), math.ceil(width / stride))
        return self.add(
            "Conv",
            name,
            [data, weight, bias],
            shape,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            dilations=[1, 1],
            group=groups,
        )

    def same(self, operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        """An operator whose output has the shape of its first input."""
        return self.add(operator, name, inputs, self.shapes[inputs[0]], **attributes)

    def fully_connected(self, name: str, data: str, features: int) -> str:
        """Gemm on a matrix, with bias."""
        rows, depth = self.shapes[data]
        weight = self.weight(f"{name}.weight", (features, depth))
        return self.add(
            "Gemm", name, [data, weight, self.weight(f"{name}.bias", (features,))], (rows, features), transB=1
        )

    def linear(self, name: str, data: str, features: int) -> str:
        """MatMul on a tensor of any rank, then the bias: `name` and `name`.add."""
        shape = (*self.shapes[data][:-1], features)
        weight = self.weight(f"{name}.weight", (self.shapes[data][-1], features))
        product = self.add("MatMul", name, [data, weight], shape)
        return self.same("Add", f"{name}.add", [product, self.weight(f"{name}.bias", (features,))])

    def classifier(self, name: str, data: str, classes: int) -> str:
        """Global average pooling and a fully connected layer."""
        batch, channels = self.shapes[data][:2]
        pooled = self.add("GlobalAveragePool", "pool", [data], (batch, channels, 1, 1))
        return self.fully_connected(name, self.add("Flatten", "flatten", [pooled], (batch, channels)), classes)


def resnet18() -> onnx.ModelProto:
    """ResNet-18 for 224 x 224 images."""
    net = GraphBuilder("resnet18", "image", (1, 3, 224, 224))
    data = net.same("Relu", "relu", [net.conv("conv1", "image", 64, 7, stride=2)])
    data = net.add(
        "MaxPool", "maxpool", [data], (1, 64, 56, 56), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    )
    for stage, channels in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            stride = 2 if stage > 1 and block == 0 else 1
            data = _residual_block(net, f"layer{stage}.{block}", data, channels, stride)
    return net.model(net.classifier("fc", data, 1000))


def _residual_block(net: GraphBuilder, name: str, data: str, channels: int, stride: int) -> str:
    inner = net.same("Relu", f"{name}.relu1", [net.conv(f"{name}.conv1", data, channels, 3, stride)])
    inner = net.conv(f"{name}.conv2", inner, channels, 3)
    if net.shapes[data] != net.shapes[inner]:
        data = net.conv(f"{name}.downsample", data, channels, 1, stride)
    return net.same("Relu", f"{name}.relu2", [net.same("Add", f"{name}.add", [inner, data])])


def mobilenetv2() -> onnx.ModelProto:
    """MobileNetV2 of width 1.0 for 224 x 224 images."""
    net = GraphBuilder("mobilenetv2", "image", (1, 3, 224, 224))
    for name, bound in (("relu6.min", 0), ("relu6.max", 6)):
        net.value(name, np.array(bound, dtype=np.float32))
    data = _relu6(net, net.conv("stem.conv", "image", 32, 3, stride=2))
    # Expansion factor, output channels, repetitions and first stride of each stage: table 2 of the paper.
    stages = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    for stage, (expansion, channels, repetitions, first_stride) in enumerate(stages, start=1):
        for block in range(repetitions):
            stride = first_stride if block == 0 else 1
            data = _inverted_residual(net, f"stage{stage}.{block}", data, expansion, channels, stride)
    data = _relu6(net, net.conv("head.conv", data, 1280, 1))
    return net.model(net.classifier("classifier", data, 1000))


def _relu6(net: GraphBuilder, data: str) -> str:
    return net.same("Clip", f"{data}.relu6", [data, "relu6.min", "relu6.max"])


def _inverted_residual(net: GraphBuilder, name: str, data: str, expansion: int, channels: int, stride: int) -> str:
    inner, expanded = data, net.shapes[data][1] * expansion
    if expansion > 1:
        inner = _relu6(net, net.conv(f"{name}.expand", inner, expanded, 1))
    inner = _relu6(net, net.conv(f"{name}.depthwise", inner, expanded, 3, stride, groups=expanded))
    inner = net.conv(f"{name}.project", inner, channels, 1)
    if net.shapes[inner] == net.shapes[data]:
        inner = net.same("Add", f"{name}.add", [data, inner])
    return inner


def bert_tiny(tokens: int = 128) -> onnx.ModelProto:
    """BERT-tiny with its pooling layer, for one segment of `tokens` tokens without padding."""
    layers, hidden, heads, inner_size, vocabulary = 2, 128, 2, 512, 30522
    net = GraphBuilder("bert_tiny", "input_ids", (1, tokens), TensorProto.INT64)
    table = net.weight("embeddings.word.weight", (vocabulary, hidden))
    data = net.add("Gather", "embeddings.word", [table, "input_ids"], (1, tokens, hidden), axis=0)
    data = net.same("Add", "embeddings.position", [data, net.weight("embeddings.position.weight", (tokens, hidden))])
    data = net.same("Add", "embeddings.segment", [data, net.weight("embeddings.segment.weight", (hidden,))])
    data = _layer_norm(net, "embeddings.norm", data)
    net.value("attention.scale", np.array(1 / math.sqrt(hidden // heads), dtype=np.float32))
    net.value("attention.heads_shape", np.array([1, tokens, heads, hidden // heads], dtype=np.int64))
    net.value("attention.merged_shape", np.array([1, tokens, hidden], dtype=np.int64))
    for layer in range(layers):
        name = f"encoder.{layer}"
        attention = _self_attention(net, f"{name}.attention", data, heads)
        data = _layer_norm(
            net, f"{name}.attention.norm", net.same("Add", f"{name}.attention.residual", [attention, data])
        )
        inner = net.same("Gelu", f"{name}.ffn.gelu", [net.linear(f"{name}.ffn.up", data, inner_size)])
        inner = net.linear(f"{name}.ffn.down", inner, hidden)
        data = _layer_norm(net, f"{name}.ffn.norm", net.same("Add", f"{name}.ffn.residual", [inner, data]))
    net.value("pooler.position", np.array(0, dtype=np.int64))
    first = net.add("Gather", "pooler.first_token", [data, "pooler.position"], (1, hidden), axis=1)
    return net.model(net.same("Tanh", "pooler.tanh", [net.fully_connected("pooler.dense", first, hidden)]))


def _layer_norm(net: GraphBuilder, name: str, data: str) -> str:
    hidden = net.shapes[data][-1]
    scale, bias = net.weight(f"{name}.scale", (hidden,)), net.weight(f"{name}.bias", (hidden,))
    return net.same("LayerNormalization", name, [data, scale, bias], axis=-1, epsilon=1e-12)


def _self_attention(net: GraphBuilder, name: str, data: str, heads: int) -> str:
    batch, tokens, hidden = net.shapes[data]
    depth = hidden // heads
    query = _heads(net, f"{name}.query", data, heads, [0, 2, 1, 3])
    key = _heads(net, f"{name}.key", data, heads, [0, 2, 3, 1])
    value = _heads(net, f"{name}.value", data, heads, [0, 2, 1, 3])
    scores = net.add("MatMul", f"{name}.scores", [query, key], (batch, heads, tokens, tokens))
    scores = net.same("Mul", f"{name}.scaled", [scores, "attention.scale"])
    weights = net.same("Softmax", f"{name}.softmax", [scores], axis=-1)
    context = net.add("MatMul", f"{name}.context", [weights, value], (batch, heads, tokens, depth))
    context = net.add(
        "Transpose", f"{name}.context.transpose", [context], (batch, tokens, heads, depth), perm=[0, 2, 1, 3]
    )
    merged = net.add("Reshape", f"{name}.context.merge", [context, "attention.merged_shape"], (batch, tokens, hidden))
    return net.linear(f"{name}.output", merged, hidden)


def _heads(net: GraphBuilder, name: str, data: str, heads: int, axes: list[int]) -> str:
    """A linear layer whose output is split into heads, with its axes (batch, token, head, depth) put in this order."""
    batch, tokens, hidden = net.shapes[data]
    split = (batch, tokens, heads, hidden // heads)
    data = net.add("Reshape", f"{name}.split", [net.linear(name, data, hidden), "attention.heads_shape"], split)
    return net.add("Transpose", f"{name}.transpose", [data], tuple(split[axis] for axis in axes), perm=axes)


MODELS = {"resnet18": resnet18, "mobilenetv2": mobilenetv2, "bert_tiny": bert_tiny}


def model_bytes(name: str) -> bytes:
    """The content of `name`.onnx."""
    return MODELS[name]().SerializeToString(deterministic=True)


def main() -> None:
    """Write all models next to this script."""
    for name in MODELS:
        path = Path(__file__).with_name(f"{name}.onnx")
        path.write_bytes(model_bytes(name))
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
