"""The fields of a model's configuration, read one by one: what is missing, wrong or not known is told by its name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import KeyPath, Problems, nearest_name

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
"""Fields that change what is computed, but not how much; or how it is stored, which the workload file says itself."""


@dataclass
class Fields:
    """A table of fields while it is read. A field that is null counts as one that is not there."""

    data: Mapping[str, Any]
    problems: Problems
    path: KeyPath = ()
    """Where the table is in its document."""
    asked: list[str] = field(default_factory=list)

    def count(self, name: str, default: int | None = None, most: int = 1 << 40) -> int:
        """A whole number from 1 on; 1 where it is wrong, which is told. Without a default it has to be there."""
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
        """A whole number from 1 on, or None where there is none."""
        return None if self._value(name) is None else self.count(name)

    def number(self, name: str, default: int, most: int = 1 << 40) -> int:
        """A whole number from 0 on; the default where it is wrong, which is told."""
        value = self._value(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most):
            self.problems.at((*self.path, name), "must be a whole number", value, f"0 to {most:,}")
            return default
        return default if value is None else value

    def has_cap(self, name: str) -> bool:
        """Whether numbers are limited: so where the field is missing, not where it is null or 0."""
        value = self._value(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            self.problems.at((*self.path, name), "must be a number from 0 on, or null", value)
        return name not in self.data or bool(value)

    def even(self, name: str, width: int) -> None:
        """Refuse heads of an odd width: positions turn the halves of a head."""
        sizes = {name, "hidden_size", "num_attention_heads"}
        if width % 2 and not any(self.problems.has(*self.path, one) for one in sizes):
            self.problems.at((*self.path, name), "makes heads of an odd width, whose halves cannot be turned", width)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._value(name)
        if value is not None and not isinstance(value, bool):
            self.problems.at((*self.path, name), "must be true or false", value)
            return default
        return default if value is None else value

    def choice(self, name: str, known: Sequence[str], default: str | None = None) -> str:
        """One of the known texts; the first of them where it is wrong, which is told."""
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
        """A list of so many known texts; None where there is none, or it is wrong, which is told."""
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
        """Refuse any other value than `allowed`, which is also the one where the field is missing."""
        value = self._value(name)
        if value is not None and (value != allowed or isinstance(value, bool) != isinstance(allowed, bool)):
            self.problems.at((*self.path, name), f"is not modelled: {meaning}", value, str(allowed).lower())

    def divides(self, part: str, whole: str, sizes: tuple[int, int]) -> bool:
        """Whether one size divides another; told where it does not."""
        if sizes[1] % sizes[0]:
            self.problems.at((*self.path, part), f"must divide {whole}", sizes[0], f"a divisor of {sizes[1]}")
            return False
        return True

    def finish(self) -> None:
        """Tell every field that nobody asked for and that may cost something."""
        known = sorted({*self.asked, "model_type"})
        for name in self.data:
            if name not in known and name not in WITHOUT_COST:
                nearest = nearest_name(str(name), known)
                message = "unknown field: what it costs is not known"
                self.problems.at((*self.path, name), message, self.data[name], ", ".join(known), nearest)

    def _value(self, name: str) -> Any:
        self.asked.append(name)
        return self.data.get(name)
