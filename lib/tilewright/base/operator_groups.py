"""Groups of ONNX operators by kind of work, used for the operators of a core and for names of mapping entries.

Operator types are those of ONNX and of com.microsoft, without domain. The name of a group is in lower case. The groups
`mac`, `vector` and `all` are defined by the unit on which a layer runs. All other groups are lists of operator types.
"""

MAC, VECTOR, ALL = "mac", "vector", "all"

MAC_TYPES: tuple[str, ...] = (
    *("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "FusedConv", "QLinearConvTranspose"),
    *("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "QGemm", "FusedGemm", "FusedMatMul", "MatMulNBits"),
    *("TransposeMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "Einsum", "LSTM", "GRU", "RNN"),
    *("DynamicQuantizeLSTM", "MoE", "NhwcConv", "NhwcFusedConv"),
    *("Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention"),
)
"""Operators that multiply and accumulate. Some of them are decomposed, and then have parts for vector units too."""

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
"""Group -> operators in it. An operator that is in no group and does not multiply and accumulate belongs to `vector`
only."""

OTHER_TYPES: tuple[str, ...] = ("AffineGrid", "Col2Im", "GridSample", "Resize", "Upsample")
"""Operators for vector units that belong to none of the groups above."""

SEQUENCE_TYPES: tuple[str, ...] = (
    *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
    *("SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
)
"""Operators that put tensors into sequences or take them out. They move data and compute nothing."""

UNMODELLED_WITHOUT_MACS: tuple[str, ...] = (
    *("Multinomial", "NonMaxSuppression", "NonZero", "Unique"),  # they compare and choose
    *("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"),  # they work on text
    *("ai.onnx.ml::ArrayFeatureExtractor", "ai.onnx.ml::Binarizer", "ai.onnx.ml::CastMap", "ai.onnx.ml::Imputer"),
    *("ai.onnx.ml::CategoryMapper", "ai.onnx.ml::DictVectorizer", "ai.onnx.ml::FeatureVectorizer"),
    *("ai.onnx.ml::LabelEncoder", "ai.onnx.ml::OneHotEncoder", "ai.onnx.ml::ZipMap"),  # they look up, or compare
)
"""Operators that are not modelled, but certainly have no multiply-accumulates. Operators of other domains have the
domain in their name. For any other operator that is not modelled, the number of multiply-accumulates is unknown."""

GROUPS: tuple[str, ...] = (MAC, VECTOR, *OPERATOR_TYPES_OF, ALL)
"""Names of all groups."""

KNOWN_TYPES: tuple[str, ...] = tuple(
    dict.fromkeys((*MAC_TYPES, *(name for types in OPERATOR_TYPES_OF.values() for name in types), *OTHER_TYPES))
)
"""Operator types that a user can name."""


def bare_type(operator_type: str) -> str:
    """An operator type without its domain: Gelu for com.microsoft::Gelu."""
    return operator_type.rpartition("::")[2]


def is_listed(operator_type: str, listed: tuple[str, ...]) -> bool:
    """True if a list of types and groups contains an operator type. Only groups that list types count, so `mac`,
    `vector` and `all` do not."""
    name = bare_type(operator_type)
    return name in listed or any(name in OPERATOR_TYPES_OF.get(group, ()) for group in listed)


def group_has(group: str, operator_type: str) -> bool:
    """True if a group contains an operator type, whatever the layer. Unknown types are only in `all`."""
    name = bare_type(operator_type)
    if group == ALL:
        return True
    if group in (MAC, VECTOR):
        return name in KNOWN_TYPES and (name in MAC_TYPES) == (group == MAC)
    return name in OPERATOR_TYPES_OF.get(group, ())


MAC_ARRAY, VECTOR_UNIT = "mac_array", "vector_unit"
"""Units on which a layer runs: multipliers that accumulate, and units for any other arithmetic."""


def work_counts(unit: str, operations: int) -> dict[str, int]:
    """Number of operations of a layer, as a count of multiply-accumulates and a count of other operations. One of them
    is 0, because all operations of a layer run on the same `unit`."""
    is_other = unit == VECTOR_UNIT
    return {"mac_count": 0 if is_other else operations, "operation_count": operations if is_other else 0}
