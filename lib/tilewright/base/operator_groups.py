"""Groups of ONNX operators by kind of work, for the operators of a core and the names of mapping entries.

Operator types are those of ONNX and of com.microsoft, without domain. A group is a name in lower case; `mac`, `vector`
and `all` go by the unit that a layer needs, the others list operator types.
"""

MAC, VECTOR, ALL = "mac", "vector", "all"

MAC_TYPES: tuple[str, ...] = (
    *("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "FusedConv", "QLinearConvTranspose"),
    *("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "QGemm", "FusedGemm", "FusedMatMul", "MatMulNBits"),
    *("TransposeMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "Einsum", "LSTM", "GRU", "RNN"),
    *("DynamicQuantizeLSTM", "MoE", "NhwcConv", "NhwcFusedConv"),
    *("Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention"),
)
"""Operators that multiply and accumulate. Those that are decomposed have parts for vector units as well."""

OPERATOR_TYPES_OF: dict[str, tuple[str, ...]] = {
    "pooling": (
        *("AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "MaxUnpool"),
        *("MaxRoiPool", "NhwcMaxPool", "RoiAlign", "QLinearAveragePool", "QLinearGlobalAveragePool"),
    ),
    "elementwise": (
        *("Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BiasAdd", "BiasGelu"),
        *("BipolarQuant", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast"),
        *("CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear", "Div", "DynamicQuantizeLinear"),
        *("Elu", "Equal", "Erf", "Exp", "FastGelu", "FloatQuant", "Floor", "GatherBlockQuantized", "Gelu"),
        *("Greater", "GreaterOrEqual"),
        *("HardSigmoid", "HardSwish", "IntQuant", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max"),
        *("Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "QLinearAdd", "QLinearConcat"),
        *("QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "Quant", "QuantizeLinear", "QuickGelu", "Reciprocal"),
        *("Relu", "RotaryEmbedding", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Silu", "Sin", "Sinh"),
        *("Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu", "Trunc"),
        *("Where", "Xor"),
    ),
    "normalization": (
        *("BatchNormalization", "EmbedLayerNormalization", "GroupNorm", "GroupNormalization", "SkipGroupNorm"),
        *("InstanceNormalization", "LRN", "LayerNormalization"),
        *("LpNormalization", "MeanVarianceNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    ),
    "reduction": (
        *("ArgMax", "ArgMin", "CumProd", "CumSum", "QLinearReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum"),
        *("ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        "TopK",
    ),
    "softmax": ("Softmax", "LogSoftmax", "Hardmax", "QLinearSoftmax"),
}
"""Group -> the operators in it. What is in none of them and does not multiply and accumulate is in `vector` alone."""

OTHER_TYPES: tuple[str, ...] = ("AffineGrid", "Col2Im", "GridSample", "Resize", "Upsample")
"""Operators for vector units that are in no group of their own."""

SEQUENCE_TYPES: tuple[str, ...] = (
    *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
    *("SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
)
"""Operators that put tensors into sequences and take them out again: they move data, and compute nothing."""

UNMODELLED_WITHOUT_MACS: tuple[str, ...] = (
    *("Multinomial", "NonMaxSuppression", "NonZero", "Unique"),  # they compare and choose
    *("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"),  # they work on text
    *("ai.onnx.ml::ArrayFeatureExtractor", "ai.onnx.ml::Binarizer", "ai.onnx.ml::CastMap", "ai.onnx.ml::Imputer"),
    *("ai.onnx.ml::CategoryMapper", "ai.onnx.ml::DictVectorizer", "ai.onnx.ml::FeatureVectorizer"),
    *("ai.onnx.ml::LabelEncoder", "ai.onnx.ml::OneHotEncoder", "ai.onnx.ml::ZipMap"),  # they look up, or compare
)
"""Operators (those of other domains with the domain) that are not modelled, and surely multiply and accumulate nothing.
The multiply-accumulates of any other operator that is not modelled are unknown."""

GROUPS: tuple[str, ...] = (MAC, VECTOR, *OPERATOR_TYPES_OF, ALL)
"""All groups."""

KNOWN_TYPES: tuple[str, ...] = tuple(
    dict.fromkeys((*MAC_TYPES, *(name for types in OPERATOR_TYPES_OF.values() for name in types), *OTHER_TYPES))
)
"""All operator types that may be named."""


def bare_type(operator_type: str) -> str:
    """An operator type without its domain: Gelu for com.microsoft::Gelu."""
    return operator_type.rpartition("::")[2]


def is_listed(operator_type: str, listed: tuple[str, ...]) -> bool:
    """Whether an operator type is in a list of types and of groups that list types (`mac`, `vector` and `all` do not
    count)."""
    name = bare_type(operator_type)
    return name in listed or any(name in OPERATOR_TYPES_OF.get(group, ()) for group in listed)


def group_has(group: str, operator_type: str) -> bool:
    """Whether a group has an operator type, judged by the type alone; unknown types are in `all` alone."""
    name = bare_type(operator_type)
    if group == ALL:
        return True
    if group in (MAC, VECTOR):
        return name in KNOWN_TYPES and (name in MAC_TYPES) == (group == MAC)
    return name in OPERATOR_TYPES_OF.get(group, ())


MAC_ARRAY, VECTOR_UNIT = "mac_array", "vector_unit"
"""What a layer needs to run on: multipliers that accumulate, or units for any other arithmetic."""


def work_counts(unit: str, operations: int) -> dict[str, int]:
    """The operations of a layer that needs `unit`, as multiply-accumulates or as others: a layer has one kind."""
    is_other = unit == VECTOR_UNIT
    return {"mac_count": 0 if is_other else operations, "operation_count": operations if is_other else 0}
