"""Groups of ONNX operators by kind of work, used for the operators of a core and for names of mapping entries.

Operator types are names of ONNX and com.microsoft, without the domain. The name of a group is in lower case. The group
`mac` has the operators that run on multiply-accumulate arrays, `vector` has those that run on vector units, and `all`
has every operator. All other groups are lists of operator types.
"""

from typing import NamedTuple

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
"""Group -> operators in it. The operators in `OTHER_TYPES` are in none of these groups, only in `vector` and `all`."""

OTHER_TYPES: tuple[str, ...] = ("AffineGrid", "Col2Im", "GridSample", "Resize", "Upsample")
"""Operators for vector units that belong to no group in `OPERATOR_TYPES_OF`."""

SEQUENCE_TYPES: tuple[str, ...] = (
    *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct"),
    *("SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
)
"""Operators that put tensors into sequences or take them out. They move data and compute nothing."""


class UnmodelledTypes(NamedTuple):
    """Operators that are not modelled, and the one reason that all of them share."""

    reason: str
    names: str
    """Operator types without domain, separated by spaces."""
    domain: str = ""
    """Domain of the operators; '' is the standard domain."""
    has_no_macs: bool = False
    """True if the operators certainly have no multiply-accumulates. False if their number of multiply-accumulates is
    unknown."""

    @property
    def types(self) -> tuple[str, ...]:
        """Operator types. Types of other domains than the standard have the domain in their name."""
        return tuple(f"{self.domain}::{name}" if self.domain else name for name in self.names.split())


_ML = "ai.onnx.ml"
_OF_VALUES = "the amount of work, and often the size of the result, depends on the values of the input"
_ON_TEXT = "it works on text"
_CLASSICAL = "it is a classifier, regressor or scaler of classical machine learning, which no layer can describe"
NOT_MODELLED = (
    UnmodelledTypes(_OF_VALUES, "NonZero Unique NonMaxSuppression Multinomial", has_no_macs=True),
    UnmodelledTypes("it is not a loop nest that a layer can describe", "Det DFT STFT MelWeightMatrix ImageDecoder"),
    UnmodelledTypes(_ON_TEXT, "StringConcat StringNormalizer StringSplit RegexFullMatch", has_no_macs=True),
    UnmodelledTypes(_ON_TEXT, "TfIdfVectorizer"),
    UnmodelledTypes(
        "it moves tensors in and out of a sequence or an optional value that is not known before run time",
        " ".join(SEQUENCE_TYPES),
        has_no_macs=True,
    ),
    UnmodelledTypes(
        "it looks up values, or makes tables of values",
        "ArrayFeatureExtractor CastMap CategoryMapper DictVectorizer FeatureVectorizer LabelEncoder OneHotEncoder"
        " ZipMap",
        _ML,
        has_no_macs=True,
    ),
    UnmodelledTypes(_CLASSICAL, "Binarizer Imputer", _ML, has_no_macs=True),
    UnmodelledTypes(
        _CLASSICAL,
        "LinearClassifier LinearRegressor Normalizer SVMClassifier SVMRegressor Scaler TreeEnsemble"
        " TreeEnsembleClassifier TreeEnsembleRegressor",
        _ML,
    ),
    UnmodelledTypes("it is a step of training", "Adagrad Adam Gradient Momentum", "ai.onnx.preview.training"),
)
"""Operators that are not modelled, with the reason. To model one of them, move its name from here to a group."""

UNMODELLED_WITHOUT_MACS: tuple[str, ...] = tuple(
    name for listed in NOT_MODELLED if listed.has_no_macs for name in listed.types
)
"""Operators that are not modelled, but certainly have no multiply-accumulates. For any other operator that is not
modelled, the number of multiply-accumulates is unknown."""

GROUPS: tuple[str, ...] = (MAC, VECTOR, *OPERATOR_TYPES_OF, ALL)
"""Names of all groups."""

KNOWN_TYPES: tuple[str, ...] = tuple(
    dict.fromkeys((*MAC_TYPES, *(name for types in OPERATOR_TYPES_OF.values() for name in types), *OTHER_TYPES))
)
"""Operator types that a user can name."""


def bare_type(operator_type: str) -> str:
    """Operator type without its domain: Gelu for com.microsoft::Gelu."""
    return operator_type.rpartition("::")[2]


def is_listed(operator_type: str, listed: tuple[str, ...]) -> bool:
    """True if an operator type is in the tuple `listed`, by name or through a group of `OPERATOR_TYPES_OF` that
    `listed` contains. The groups `mac`, `vector` and `all` in `listed` do not count."""
    name = bare_type(operator_type)
    return name in listed or any(name in OPERATOR_TYPES_OF.get(group, ()) for group in listed)


def group_has(group: str, operator_type: str) -> bool:
    """True if a group contains an operator type. For the groups `mac` and `vector`, the type alone decides, even if a
    layer of this type runs on another unit. Unknown types are only in `all`.
    """
    name = bare_type(operator_type)
    if group == ALL:
        return True
    if group in (MAC, VECTOR):
        return name in KNOWN_TYPES and (name in MAC_TYPES) == (group == MAC)
    return name in OPERATOR_TYPES_OF.get(group, ())


def may_do_macs(operator_type: str) -> bool:
    """True if an operator can contain multiply-accumulates; False only if it certainly contains none."""
    if operator_type in UNMODELLED_WITHOUT_MACS:
        return False
    name = bare_type(operator_type)
    return name in MAC_TYPES or name not in KNOWN_TYPES


MAC_ARRAY, VECTOR_UNIT = "mac_array", "vector_unit"
"""Units on which a layer runs: multipliers that accumulate, and units for any other arithmetic."""


def work_counts(unit: str, operations: int) -> dict[str, int]:
    """Number of operations of a layer, as a count of multiply-accumulates and a count of other operations. One of the
    two counts is 0, because all operations of a layer run on the same `unit`.
    """
    is_other = unit == VECTOR_UNIT
    return {"mac_count": 0 if is_other else operations, "operation_count": operations if is_other else 0}
