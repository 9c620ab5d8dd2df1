"""**Not modelled**, and listed in the coverage: operators whose work depends on values or has no known loop nest.

The shapes of these operators are known if onnx infers them. Every output depends on all inputs. An operator that
belongs to no family is not modelled either, except if onnx defines the operator by a function. Then the function
replaces the operator.
"""

import onnx

from tilewright.base.operator_groups import SEQUENCE_TYPES
from tilewright.workload.onnx.lowering import Lowering, lowers

_REASONS = {
    "": {
        "the amount of work, and often the size of the result, depends on values": (
            "NonZero Unique NonMaxSuppression Multinomial"
        ),
        "a layer cannot describe it as a loop nest": "Det DFT STFT MelWeightMatrix ImageDecoder",
        "it works on text": "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer",
        "it moves tensors in and out of a sequence or an optional value that is not known before run time": " ".join(
            SEQUENCE_TYPES
        ),
    },
    "ai.onnx.ml": {
        "it looks up values, or makes tables of them": (
            "ArrayFeatureExtractor CastMap CategoryMapper DictVectorizer FeatureVectorizer LabelEncoder OneHotEncoder "
            "ZipMap"
        ),
        "a classical classifier, regressor or scaler, for which there is no layer": (
            "Binarizer Imputer LinearClassifier LinearRegressor Normalizer SVMClassifier SVMRegressor Scaler "
            "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"
        ),
    },
    "ai.onnx.preview.training": {"it is a step of training": "Adagrad Adam Gradient Momentum"},
}
"""Operators that are not modelled, by (domain, reason)."""
_REASON_OF = {
    (domain, name): reason
    for domain, reasons in _REASONS.items()
    for reason, names in reasons.items()
    for name in names.split()
}


def lower_not_modelled(op: Lowering) -> None:
    """Record that the operator is not modelled, with the reason."""
    proto = op.node.proto
    reason = _REASON_OF["" if proto.domain == "ai.onnx" else proto.domain, proto.op_type]
    op.unsupported(f"{op.node.operator_type} is not modelled ({reason})")


for _domain, _names in ((domain, " ".join(reasons.values()).split()) for domain, reasons in _REASONS.items()):
    lowers(*_names, domain=_domain)(lower_not_modelled)


def is_not_modelled(node: onnx.NodeProto) -> bool:
    """True if the operator is listed in this module as not modelled."""
    return ("" if node.domain == "ai.onnx" else node.domain, node.op_type) in _REASON_OF
