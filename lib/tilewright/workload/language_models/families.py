"""Families of models: meaning of the fields of a configuration (Hugging Face's `config.json`) in each family.

The fields of each family and their defaults are those of the transformers library (5.23, classes `LlamaConfig`, ...).
Unknown fields are refused, because they could change the cost of a model. Missing and wrong fields are reported by
name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.base.errors import KeyPath, Problems, nearest_name
from tilewright.workload.language_models.architecture import (
    LAYER_NORM,
    PARALLEL,
    PRE,
    RMS_NORM,
    SANDWICH,
    Architecture,
    Attention,
    Block,
    FeedForward,
    LatentAttention,
    Mixture,
    StateSpace,
)

WITHOUT_COST = frozenset(
    (
        *("_name_or_path", "_attn_implementation_autoset", "architectures", "auto_map", "transformers_version"),
        *("torch_dtype", "dtype", "use_cache", "cache_implementation", "initializer_range", "initializer_factor"),
        *("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "decoder_start_token_id"),
        *("attention_dropout", "hidden_dropout", "dropout", "activation_dropout", "layerdrop", "resid_pdrop"),
        *("embd_pdrop", "attn_pdrop", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise"),
        *("aux_loss_alpha", "seq_aux", "pretraining_tp", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon"),
        *("layer_norm_elementwise_affine", "rope_theta", "rope_scaling", "rope_interleave", "rope_parameters"),
        *("norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group", "topk_method", "ep_size"),
        *("query_pre_attn_scalar", "num_nextn_predict_layers", "quantization_config", "task_specific_params"),
        *("summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
        *("prefix", "init_std", "n_ctx", "residual_in_fp32", "time_step_floor"),
        *("time_step_max", "time_step_min", "time_step_scale", "time_step_init_scheme", "rescale_prenorm_residual"),
        *("use_mambapy", "is_decoder", "original_max_position_embeddings", "problem_type", "_commit_hash"),
        *("scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "use_flash_attn"),
    )
)
"""Fields of a configuration that do not change the amount of work. Some of them give the element type or the
quantisation of the stored weights; the workload file gives the bits instead.
"""

SAID_BY_THE_WORKLOAD = {
    "quantization_config": "has no effect: `precision` in the workload file sets the bits and scales of weights"
}
"""Messages for fields that seem to affect the cost but have no effect: field -> reason."""


@dataclass
class Fields:
    """Reader of the fields of a configuration. Wrong fields are reported as problems. A field that is null counts as
    missing.
    """

    data: Mapping[str, Any]
    problems: Problems
    path: KeyPath = ()
    """Path of the table in its document."""
    asked: list[str] = field(default_factory=list)

    def count(self, name: str, default: int | None = None, most: int = 1 << 40) -> int:
        """Value of a field that is a whole number from 1 to `most`. A missing field has the default. A wrong field is
        reported as a problem, and so is a missing field without a default. The value is then the default, or 1 if there
        is no default.
        """
        value = self._value(name)
        if value is None:
            if default is None:
                self.problems.at((*self.path, name), "required field is missing")
            return 1 if default is None else default
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            self.problems.at((*self.path, name), "must be a whole number", value, f"1 to {most:,}")
            return 1 if default is None else default
        return value

    def optional_count(self, name: str) -> int | None:
        """Value of a field that is a whole number of at least 1; None if the field is missing."""
        return None if self._value(name) is None else self.count(name)

    def number(self, name: str, default: int, most: int = 1 << 40) -> int:
        """Value of a field that is a whole number from 0 to `most`. A missing or wrong field has the default. A wrong
        field is also reported as a problem.
        """
        value = self._value(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most):
            self.problems.at((*self.path, name), "must be a whole number", value, f"0 to {most:,}")
            return default
        return default if value is None else value

    def has_cap(self, name: str) -> bool:
        """True if the field makes the model apply a soft cap: the field is a number above 0, or is missing (the default
        of the family is a cap). False for null and 0. Any other value is reported as a problem.
        """
        value = self._value(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            self.problems.at((*self.path, name), "must be a number of at least 0, or null", value)
        return name not in self.data or bool(value)

    def even(self, name: str, width: int) -> None:
        """Report a problem if `width`, the width of a head, is odd. Rotary positions need an even width, because they
        rotate the two halves of a head.
        """
        sizes = {name, "hidden_size", "num_attention_heads"}
        if width % 2 and not any(self.problems.has(*self.path, one) for one in sizes):
            self.problems.at(
                (*self.path, name), "gives an odd head width, but rotary positions need an even head width", width
            )

    def flag(self, name: str, default: bool) -> bool:
        """Value of a field that is true or false; the default if the field is missing or wrong."""
        value = self._value(name)
        if value is not None and not isinstance(value, bool):
            self.problems.at((*self.path, name), "must be true or false", value)
            return default
        return default if value is None else value

    def choice(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        """Value of a field, which must be one of the texts `known`. A missing field has the default. A wrong value, or
        a missing field without a default, is reported as a problem; the result is then the first text of `known`."""
        value = self._value(name)
        if value is None and default is not None:
            return default
        if value is None:
            self.problems.at((*self.path, name), "required field is missing", allowed=", ".join(known))
        elif value not in known:
            nearest = nearest_name(str(value), known)
            self.problems.at((*self.path, name), "is not known", value, ", ".join(known), nearest)
        return value if value in known else known[0]

    def texts(self, name: str, known: Sequence[str], length: int) -> list[str] | None:
        """Value of a field that is a list of `length` texts, each one of `known`. None if the field is missing or
        wrong. A wrong field is reported as a problem.
        """
        value = self._value(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            self.problems.at((*self.path, name), "must be a list with an entry for each layer", value, f"{length}")
            return None
        wrong = [(place, item) for place, item in enumerate(value) if item not in known]
        for place, item in wrong:
            nearest = nearest_name(str(item), known)
            self.problems.at((*self.path, name, place), "is not known", item, ", ".join(known), nearest)
        return None if wrong else value

    def only(self, name: str, allowed: Any, meaning: str) -> None:
        """Report a problem if a field has another value than `allowed`. A missing field counts as `allowed`. In the
        message, `meaning` says what other values mean."""
        value = self._value(name)
        if value is not None and (value != allowed or isinstance(value, bool) != isinstance(allowed, bool)):
            self.problems.at((*self.path, name), f"is not modelled: {meaning}", value, str(allowed).lower())

    def divides(self, part: str, whole: str, sizes: tuple[int, int]) -> bool:
        """True if the first of two sizes divides the second. If not, report a problem of the field `part`.

        `part` and `whole` are the names of the first and the second size.
        """
        if sizes[1] % sizes[0]:
            self.problems.at((*self.path, part), f"must divide {whole}", sizes[0], f"a divisor of {sizes[1]}")
            return False
        return True

    def finish(self) -> None:
        """Report problems and unused fields, after all known fields have been read. A field that no method has read is
        a problem, because it could change the cost. Fields in WITHOUT_COST are not reported. Fields in
        SAID_BY_THE_WORKLOAD are reported as unused, not as problems.
        """
        known = sorted({*self.asked, "model_type"})
        for name in self.data:
            if name not in known and name not in WITHOUT_COST:
                nearest = nearest_name(str(name), known)
                message = "unknown field, which could change the cost"
                self.problems.at((*self.path, name), message, self.data[name], ", ".join(known), nearest)
        for name, why in SAID_BY_THE_WORKLOAD.items():
            if self.data.get(name) is not None:
                self.problems.unused((*self.path, name), why)

    def _value(self, name: str) -> Any:
        self.asked.append(name)
        return self.data.get(name)


ACTIVATIONS = {
    "silu": "Silu",
    "swish": "Silu",
    "gelu": "Gelu",
    "gelu_new": "Gelu",
    "gelu_fast": "Gelu",
    "gelu_pytorch_tanh": "Gelu",
    "relu": "Relu",
}
"""ONNX operator type of each activation function, by its name in a configuration."""
_FULL, _SLIDING = "full_attention", "sliding_attention"
_MOST_LAYERS = 4096


def architecture_of(data: Mapping[str, Any], name: str, problems: Problems, path: KeyPath = ()) -> Architecture | None:
    """Architecture that a configuration describes. None if the family of the model is not known, or if a field is
    wrong. Both faults are reported as problems.
    """
    fields = Fields(data, problems, path)
    before = len(problems.found)
    family = fields.choice("model_type", list(FAMILIES))
    if len(problems.found) > before:
        return None
    model = FAMILIES[family](fields, name)
    fields.finish()
    return model if len(problems.found) == before else None


def _activation(fields: Fields, name: str, default: str) -> str:
    return ACTIVATIONS[fields.choice(name, list(ACTIVATIONS), default)]


def _grouped(
    fields: Fields, *, has_bias: bool | None = None, output_bias: bool | None = None, width: int | None = None
) -> Attention:
    """Grouped-query attention as in Llama. `has_bias` replaces the field `attention_bias`. `output_bias` says whether
    the output projection has a bias; by default, the output projection has a bias if the other projections have a bias.
    `width` is the head width if the field `head_dim` is missing.
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    key_heads = fields.count("num_key_value_heads", heads)
    given = fields.optional_count("head_dim") or width
    if given is None:
        fields.divides("num_attention_heads", "hidden_size", (heads, hidden))
    fields.divides("num_key_value_heads", "num_attention_heads", (key_heads, heads))
    own_width = given or max(1, hidden // heads)
    fields.even("head_dim" if fields.data.get("head_dim") else "num_attention_heads", own_width)
    bias = fields.flag("attention_bias", False) if has_bias is None else has_bias
    own = bias if output_bias is None else output_bias
    return Attention(heads, key_heads, own_width, bias, own, is_rotary=True)


def _gated(fields: Fields, width: str = "intermediate_size", default: str = "silu") -> FeedForward:
    bias = fields.flag("mlp_bias", False)
    return FeedForward(fields.count(width), True, _activation(fields, "hidden_act", default), bias)


def _model(fields: Fields, name: str, blocks: tuple[Block, ...], *, is_tied: bool, **others: Any) -> Architecture:
    """Architecture from the fields that most families have."""
    return Architecture(
        name=name,
        model_type=str(fields.data["model_type"]),
        hidden=fields.count("hidden_size"),
        vocabulary=fields.count("vocab_size"),
        blocks=blocks,
        last_norm=others.pop("last_norm", RMS_NORM),
        is_tied=fields.flag("tie_word_embeddings", is_tied),
        most_tokens=fields.optional_count("max_position_embeddings"),
        **others,
    )


def _layers(fields: Fields) -> int:
    return fields.count("num_hidden_layers", most=_MOST_LAYERS)


def _llama(fields: Fields, name: str) -> Architecture:
    block = Block("", _grouped(fields), _gated(fields), RMS_NORM)
    return _model(fields, name, (block,) * _layers(fields), is_tied=False)


def _windowed(attention: Attention, window: int | None) -> Attention:
    return replace(attention, window=window)


def _mistral(fields: Fields, name: str) -> Architecture:
    attention = _windowed(_grouped(fields, has_bias=False), fields.optional_count("sliding_window"))
    block = Block("", attention, _gated(fields), RMS_NORM)
    return _model(fields, name, (block,) * _layers(fields), is_tied=False)


def _phi3(fields: Fields, name: str) -> Architecture:
    fields.only("partial_rotary_factor", 1.0, "only some channels of a head are rotated")
    return _mistral(fields, name)


def _mixtral(fields: Fields, name: str) -> Architecture:
    attention = _windowed(_grouped(fields, has_bias=False), fields.optional_count("sliding_window"))
    mixture = _mixture(fields, "num_local_experts", _gated(fields), None)
    return _model(fields, name, (Block("", attention, mixture, RMS_NORM),) * _layers(fields), is_tied=False)


def _mixture(fields: Fields, experts: str, expert: FeedForward, shared: FeedForward | None) -> Mixture:
    count, chosen = fields.count(experts), fields.count("num_experts_per_tok")
    if chosen > count:
        message = "is larger than the number of experts"
        fields.problems.at((*fields.path, "num_experts_per_tok"), message, chosen, f"1 to {count}")
    return Mixture(count, chosen, expert, shared)


def _kinds_of_attention(fields: Fields, window: int | None, default: list[str]) -> list[int | None]:
    """Window of each layer, from the field `layer_types`, or from the default of the family if this field is missing. A
    window of None means full attention."""
    types = fields.texts("layer_types", (_FULL, _SLIDING), len(default)) or default
    if window is None and _SLIDING in types:
        fields.problems.at((*fields.path, "sliding_window"), "is needed, because some layers have sliding attention")
    return [window if kind == _SLIDING else None for kind in types]


def _mixed_blocks(
    attention: Attention, windows: list[int | None], part: FeedForward | Mixture, norms: str = PRE
) -> tuple[Block, ...]:
    are_mixed = len(set(windows)) > 1
    return tuple(
        Block(
            ("full" if window is None else "sliding") if are_mixed else "",
            _windowed(attention, window),
            part,
            RMS_NORM,
            norms,
        )
        for window in windows
    )


def _qwen_windows(fields: Fields) -> list[int | None]:
    layers = _layers(fields)
    window = fields.optional_count("sliding_window")
    first = fields.number("max_window_layers", 28)
    if not fields.flag("use_sliding_window", False):
        return _kinds_of_attention(fields, None, [_FULL] * layers)
    return _kinds_of_attention(fields, window, [_SLIDING if i >= first else _FULL for i in range(layers)])


def _qwen2(fields: Fields, name: str) -> Architecture:
    attention = _grouped(fields, has_bias=True, output_bias=False)
    blocks = _mixed_blocks(attention, _qwen_windows(fields), _gated(fields))
    return _model(fields, name, blocks, is_tied=False)


def _qwen3(fields: Fields, name: str) -> Architecture:
    attention = replace(_grouped(fields, width=128), head_norm=RMS_NORM)
    return _model(fields, name, _mixed_blocks(attention, _qwen_windows(fields), _gated(fields)), is_tied=False)


def _qwen3_moe(fields: Fields, name: str) -> Architecture:
    fields.only("decoder_sparse_step", 1, "layers without experts between layers with experts")
    fields.only("mlp_only_layers", [], "layers without experts")
    fields.optional_count("intermediate_size")
    attention = replace(_grouped(fields), head_norm=RMS_NORM)
    mixture = _mixture(fields, "num_experts", _gated(fields, "moe_intermediate_size"), None)
    return _model(fields, name, _mixed_blocks(attention, _qwen_windows(fields), mixture), is_tied=False)


def _gemma(fields: Fields, name: str) -> Architecture:
    fields.asked.append("hidden_act")
    activation = "hidden_activation" if fields.data.get("hidden_activation") else "hidden_act"
    part = FeedForward(fields.count("intermediate_size"), True, _activation(fields, activation, "gelu"), False)
    block = Block("", _grouped(fields, width=256), part, RMS_NORM)
    return _model(fields, name, (block,) * _layers(fields), is_tied=True, scales_embedding=True)


def _gemma2(fields: Fields, name: str) -> Architecture:
    fields.asked.append("hidden_act")
    part = FeedForward(
        fields.count("intermediate_size"), True, _activation(fields, "hidden_activation", "gelu_pytorch_tanh"), False
    )
    has_softcap, has_last_cap = fields.has_cap("attn_logit_softcapping"), fields.has_cap("final_logit_softcapping")
    attention = replace(_grouped(fields, width=256), has_softcap=has_softcap)
    default = [_FULL if layer % 2 else _SLIDING for layer in range(_layers(fields))]
    windows = _kinds_of_attention(fields, fields.count("sliding_window", 4096), default)
    blocks = _mixed_blocks(attention, windows, part, SANDWICH)
    others = {"scales_embedding": True, "has_output_softcap": has_last_cap}
    return _model(fields, name, blocks, is_tied=True, **others)


def _deepseek(fields: Fields, name: str) -> Architecture:
    fields.only("moe_layer_freq", 1, "layers without experts between layers with experts")
    fields.optional_count("num_key_value_heads")
    fields.optional_count("head_dim")
    attention = LatentAttention(
        heads=fields.count("num_attention_heads"),
        query_rank=fields.optional_count("q_lora_rank"),
        rank=fields.count("kv_lora_rank"),
        width=fields.count("qk_nope_head_dim"),
        rotary_width=fields.count("qk_rope_head_dim"),
        value_width=fields.count("v_head_dim"),
        has_bias=fields.flag("attention_bias", False),
    )
    fields.even("qk_rope_head_dim", attention.rotary_width)
    fields.only(
        "qk_head_dim", attention.width + attention.rotary_width, "a query width that is not the sum of its parts"
    )
    dense, expert = _gated(fields), _gated(fields, "moe_intermediate_size")
    count = fields.optional_count("n_shared_experts")
    shared = None if count is None else FeedForward(expert.width * count, True, expert.activation, expert.has_bias)
    mixture = _mixture(fields, "n_routed_experts", expert, shared)
    scores = fields.choice("scoring_func", ("softmax", "sigmoid"), _scoring(fields))
    mixture = Mixture(mixture.experts, mixture.experts_per_token, expert, shared, scores == "sigmoid")
    layers = _layers(fields)
    first = fields.number("first_k_dense_replace", 0, layers)
    blocks = (Block("dense", attention, dense, RMS_NORM),) * first
    blocks += (Block("experts", attention, mixture, RMS_NORM),) * (layers - first)
    return _model(fields, name, blocks, is_tied=False)


def _scoring(fields: Fields) -> str:
    return "sigmoid" if fields.data["model_type"] == "deepseek_v3" else "softmax"


def _gpt2(fields: Fields, name: str) -> Architecture:
    hidden, heads = fields.count("n_embd"), fields.count("n_head")
    fields.divides("n_head", "n_embd", (heads, hidden))
    fields.only("add_cross_attention", False, "attention to an encoder")
    attention = Attention(heads, heads, max(1, hidden // heads), True, True, is_rotary=False)
    width = fields.optional_count("n_inner") or 4 * hidden
    part = FeedForward(width, False, _activation(fields, "activation_function", "gelu_new"), True)
    layers, positions = fields.count("n_layer", most=_MOST_LAYERS), fields.count("n_positions", 1024)
    return Architecture(
        name=name,
        model_type="gpt2",
        hidden=hidden,
        vocabulary=fields.count("vocab_size"),
        blocks=(Block("", attention, part, LAYER_NORM),) * layers,
        last_norm=LAYER_NORM,
        is_tied=fields.flag("tie_word_embeddings", True),
        positions=positions,
        most_tokens=positions,
    )


_OPT_OFFSET = 2
"""Number of rows in OPT's table of positions that come before the row of the first position."""


def _opt(fields: Fields, name: str) -> Architecture:
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    fields.divides("num_attention_heads", "hidden_size", (heads, hidden))
    fields.only("word_embed_proj_dim", hidden, "a projection of the embedding")
    fields.only("do_layer_norm_before", True, "norms after the attention and the feed-forward part")
    fields.only("_remove_final_layer_norm", False, "no last norm")
    has_bias = fields.flag("enable_bias", True)
    attention = Attention(heads, heads, max(1, hidden // heads), has_bias, has_bias, is_rotary=False)
    part = FeedForward(fields.count("ffn_dim"), False, _activation(fields, "activation_function", "relu"), has_bias)
    positions = fields.count("max_position_embeddings") + _OPT_OFFSET
    blocks = (Block("", attention, part, LAYER_NORM),) * _layers(fields)
    return _model(fields, name, blocks, is_tied=True, last_norm=LAYER_NORM, positions=positions)


def _falcon(fields: Fields, name: str) -> Architecture:
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    fields.divides("num_attention_heads", "hidden_size", (heads, hidden))
    fields.only("new_decoder_architecture", False, "separate norms for attention and feed-forward part")
    fields.only("alibi", False, "positions as a bias of the scores")
    fields.only("parallel_attn", True, "a feed-forward part that runs after attention")
    fields.even("num_attention_heads", max(1, hidden // heads))
    has_bias = fields.flag("bias", False)
    key_heads = 1 if fields.flag("multi_query", True) else heads
    fields.optional_count("num_kv_heads")
    attention = Attention(heads, key_heads, max(1, hidden // heads), has_bias, has_bias, is_rotary=True)
    width = fields.optional_count("ffn_hidden_size") or 4 * hidden
    part = FeedForward(width, False, _activation(fields, "activation", "gelu"), has_bias)
    blocks = (Block("", attention, part, LAYER_NORM, PARALLEL),) * _layers(fields)
    return _model(fields, name, blocks, is_tied=True, last_norm=LAYER_NORM)


_STEP_RANK_OF = 16
"""Divisor for the rank of the step sizes in a state-space layer. The rank `auto` in a configuration means the hidden
size divided by this number, rounded up."""


def _mamba(fields: Fields, name: str) -> Architecture:
    hidden = fields.count("hidden_size")
    fields.asked += ["d_model", "d_inner", "n_layer", "ssm_cfg", "fused_add_norm"]
    fields.only("hidden_act", "silu", "another activation function")
    fields.only("rms_norm", True, "LayerNorm between the blocks")
    rank = fields.data.get("time_step_rank", "auto")
    fields.asked.append("time_step_rank")
    mixer = StateSpace(
        width=fields.optional_count("intermediate_size") or fields.count("expand", 2) * hidden,
        state=fields.count("state_size", 16),
        kernel=fields.count("conv_kernel", 4),
        rank=-(-hidden // _STEP_RANK_OF) if rank == "auto" else fields.count("time_step_rank"),
        has_bias=fields.flag("use_bias", False),
        has_kernel_bias=fields.flag("use_conv_bias", True),
    )
    fields.optional_count("expand")
    return _model(fields, name, (Block("", mixer, None, RMS_NORM),) * _layers(fields), is_tied=True)


FAMILIES: dict[str, Callable[[Fields, str], Architecture]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "gpt2": _gpt2,
    "opt": _opt,
    "falcon": _falcon,
    "mamba": _mamba,
}
"""Functions that read the fields of a family of models: `model_type` of the configuration -> function."""
