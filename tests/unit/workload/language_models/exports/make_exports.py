"""Makes the ONNX files here: tiny language models, exported by torch with shapes and without weights.

    python -m venv exports && exports/bin/pip install torch transformers onnx onnxscript
    exports/bin/python tests/unit/workload/language_models/exports/make_exports.py

torch and transformers are no dependencies of the project; the files hold structure only.
"""

import sys
from pathlib import Path
from typing import Any

import onnx
import torch
import transformers

TOKENS = 8
COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 40, "attn_implementation": "eager"}
OPT = {
    "hidden_size": 32,
    "ffn_dim": 48,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}
DEEPSEEK = {
    **COMMON,
    "num_key_value_heads": 4,
    "q_lora_rank": 12,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "first_k_dense_replace": 1,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 8,
    "n_group": 1,
    "topk_group": 1,
    "experts_implementation": "batched_mm",
}
FALCON = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 40,
    "multi_query": True,
    "parallel_attn": True,
    "new_decoder_architecture": False,
    "alibi": False,
    "attn_implementation": "eager",
}
MAMBA = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "vocab_size": 40,
    "state_size": 4,
    "intermediate_size": 32,
    "time_step_rank": 3,
}
# Of the ways of transformers to run experts the one that can be exported: a product for each token and expert of it.
EXPERTS = {**COMMON, "num_experts_per_tok": 2, "experts_implementation": "batched_mm"}
MIXTRAL = {**EXPERTS, "num_local_experts": 4}
QWEN3_MOE = {**EXPERTS, "head_dim": 8, "num_experts": 4, "moe_intermediate_size": 16}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", COMMON),
    "qwen2": ("Qwen2", COMMON),
    "qwen3": ("Qwen3", {**COMMON, "head_dim": 8}),
    "gemma": ("Gemma", {**COMMON, "head_dim": 8}),
    "gpt2": ("GPT2", GPT2),
    "opt": ("OPT", OPT),
    "deepseek_v3": ("DeepseekV3", DEEPSEEK),
    "falcon": ("Falcon", FALCON),
    "mamba": ("Mamba", MAMBA),
    "mixtral": ("Mixtral", MIXTRAL),
    "qwen3_moe": ("Qwen3Moe", QWEN3_MOE),
}
HEADS = {"GPT2": "GPT2LMHeadModel"}


class Logits(torch.nn.Module):
    """The logits of all tokens of one prompt."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The logits for the numbers of tokens."""
        return self.model(ids, use_cache=False).logits


def main(folder: Path, names: list[str]) -> None:
    """Write a file for each model."""
    for name in names or list(MODELS):
        family, fields = MODELS[name]
        config = getattr(transformers, f"{family}Config")(**fields)
        head = getattr(transformers, HEADS.get(family, f"{family}ForCausalLM"))
        model = Logits(head(config)).eval()
        ids = torch.zeros((1, TOKENS), dtype=torch.int64)
        exported = torch.onnx.export(model, (ids,), dynamo=True, verbose=False)
        proto = exported.model_proto
        for tensor in proto.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) and max(tensor.dims) > 1:
                tensor.ClearField("raw_data")
                tensor.ClearField("float_data")
                tensor.data_location = onnx.TensorProto.EXTERNAL
                tensor.external_data.add(key="location", value="left_out")
        for node in proto.graph.node:
            node.doc_string = ""
            del node.metadata_props[:]
        for value in proto.graph.value_info:
            del value.metadata_props[:]
        del proto.metadata_props[:]
        onnx.save(proto, folder / f"{name}.onnx")
        print(name, (folder / f"{name}.onnx").stat().st_size)


if __name__ == "__main__":
    main(Path(__file__).parent, sys.argv[1:])
