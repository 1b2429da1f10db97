"""Text models of transformers: encoders, decoders with caches, encoder-decoders, mixtures of experts, state-space models."""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.model import TORCHVISION, Built, Model

VOCAB = 211
OUTPUTS = f"{TORCHVISION}\nimport transformers.modeling_outputs\n"
CACHES = f"""{OUTPUTS}
from transformers.integrations.executorch import register_dynamic_cache_export_support
try:
    register_dynamic_cache_export_support()
except ValueError:
    pass  # done before
"""
EXPERTS = OUTPUTS + "import transformers.integrations.moe\n"
SIZES = ((2, 12), (1, 5), (5, 31), (3, 2))


def _ids(rows: int, columns: int, high: int = VOCAB, low: int = 3) -> torch.Tensor:
    return torch.randint(low, high, (rows, columns))


def _mask(rows: int, columns: int) -> torch.Tensor:
    mask = torch.ones(rows, columns, dtype=torch.int64)
    for row in range(1, rows):
        mask[row, columns - min(row, columns - 1) :] = 0
    return mask


def _dims(longest: int = 48, least: int = 2):
    return torch.export.Dim("batch", min=1, max=32), torch.export.Dim("length", min=least, max=longest)


def encoder(kind, config, *, types: bool = False, masked: bool = True):
    def build() -> Built:
        torch.manual_seed(0)
        module = kind(config()).eval()
        samples = []
        for rows, columns in SIZES:
            kwargs = {"input_ids": _ids(rows, columns)}
            if masked:
                kwargs["attention_mask"] = _mask(rows, columns)
            if types:
                kwargs["token_type_ids"] = torch.randint(0, 2, (rows, columns))
            samples.append(((), kwargs))
        batch, length = _dims()
        dynamic = {name: {0: batch, 1: length} for name in samples[0][1]}
        bounds = {"kwargs['input_ids']": VOCAB, **({"kwargs['token_type_ids']": 2} if types else {})}
        return Built(module=module, samples=tuple(samples), dynamic=dynamic, index_bounds=bounds)

    return build


def causal(kind, config, *, cache: bool = False, dtype: torch.dtype | None = None, columns: int | None = None):
    """``columns`` is the length where the model's own loops leave it fixed."""

    def build() -> Built:
        torch.manual_seed(0)
        module = kind(config()).eval()
        if dtype is not None:
            module = module.to(dtype)
        module.config.use_cache = cache
        batch, length = _dims()
        sizes = [(rows, columns or length) for rows, length in SIZES]
        samples = tuple(((), {"input_ids": _ids(*size), "use_cache": cache}) for size in sizes)
        dynamic = {"input_ids": {0: batch} if columns else {0: batch, 1: length}, "use_cache": None}
        return Built(module=module, samples=samples, dynamic=dynamic, index_bounds={"kwargs['input_ids']": VOCAB})

    return build


def seq2seq(kind, config):
    def build() -> Built:
        torch.manual_seed(0)
        module = kind(config()).eval()
        module.config.use_cache = False
        batch, length = _dims()
        target = torch.export.Dim("target", min=2, max=48)
        samples = tuple(
            ((), {"input_ids": _ids(rows, columns), "decoder_input_ids": _ids(rows, columns + 2), "use_cache": False})
            for rows, columns in SIZES
        )
        dynamic = {"input_ids": {0: batch, 1: length}, "decoder_input_ids": {0: batch, 1: target}, "use_cache": None}
        bounds = {"kwargs['input_ids']": VOCAB, "kwargs['decoder_input_ids']": VOCAB}
        return Built(module=module, samples=samples, dynamic=dynamic, index_bounds=bounds)

    return build


def _bert_like(kind, **more):
    sizes = {
        "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 64,
    }  # fmt: skip
    return lambda: kind(**{**sizes, **more})


def _llama_like(kind, **more):
    sizes = {
        "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    return lambda: kind(**{**sizes, **more})


def _gpt2(**more):
    return lambda: hf.GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=2, **more)


def _t5():
    return hf.T5Config(vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)


def _bart_like(kind):
    return lambda: kind(
        vocab_size=VOCAB, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, pad_token_id=1,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, eos_token_id=2,
        decoder_start_token_id=2,
    )  # fmt: skip


def _big_bert():
    return hf.BertConfig()


E_, D_ = "encoder", "decoder"
MODELS = (
    Model(name="bert", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.BertModel, _bert_like(hf.BertConfig), types=True)),
    Model(name="distilbert", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.DistilBertForSequenceClassification, lambda: hf.DistilBertConfig(
              vocab_size=VOCAB, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64))),
    Model(name="roberta", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.RobertaForTokenClassification, _bert_like(hf.RobertaConfig))),
    Model(name="albert", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.AlbertForMaskedLM, _bert_like(hf.AlbertConfig, embedding_size=16))),
    Model(name="electra", traits=(E_, "output-class"), setup=OUTPUTS,
          build=encoder(hf.ElectraForPreTraining, _bert_like(hf.ElectraConfig, embedding_size=16))),
    Model(name="deberta-v2", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.DebertaV2Model, _bert_like(hf.DebertaV2Config, relative_attention=True, pos_att_type=["c2p", "p2c"]))),
    Model(name="mpnet", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.MPNetModel, _bert_like(hf.MPNetConfig))),
    Model(name="modernbert", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.ModernBertModel, _bert_like(hf.ModernBertConfig, pad_token_id=0, cls_token_id=1, sep_token_id=2))),
    Model(name="esm", traits=(E_, "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.EsmModel, _bert_like(hf.EsmConfig, pad_token_id=1, mask_token_id=2, position_embedding_type="rotary"))),
    Model(name="gpt2-cache", traits=(D_, "cache", "tied"), setup=CACHES, build=causal(hf.GPT2LMHeadModel, _gpt2(), cache=True)),
    Model(name="llama-cache", traits=(D_, "cache", "output-class"), setup=CACHES,
          build=causal(hf.LlamaForCausalLM, _llama_like(hf.LlamaConfig), cache=True)),
    Model(name="llama-bf16", traits=(D_, "half", "output-class"), setup=OUTPUTS,
          build=causal(hf.LlamaForCausalLM, _llama_like(hf.LlamaConfig), dtype=torch.bfloat16)),
    Model(name="qwen2-tied", traits=(D_, "tied", "output-class"), setup=OUTPUTS,
          build=causal(hf.Qwen2ForCausalLM, _llama_like(hf.Qwen2Config, tie_word_embeddings=True))),
    Model(name="mistral", traits=(D_, "output-class"), setup=OUTPUTS,
          build=causal(hf.MistralForCausalLM, _llama_like(hf.MistralConfig, sliding_window=8))),
    Model(name="phi", traits=(D_, "output-class"), setup=OUTPUTS, build=causal(hf.PhiForCausalLM, _llama_like(hf.PhiConfig))),
    Model(name="opt", traits=(D_, "tied", "output-class"), setup=OUTPUTS,
          build=causal(hf.OPTForCausalLM, lambda: hf.OPTConfig(
              vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=2,
              max_position_embeddings=64, word_embed_proj_dim=32))),
    Model(name="bloom", traits=(D_, "tied", "output-class"), setup=OUTPUTS,
          build=causal(hf.BloomForCausalLM, lambda: hf.BloomConfig(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=2))),
    Model(name="gpt-neox", traits=(D_, "output-class"), setup=OUTPUTS,
          build=causal(hf.GPTNeoXForCausalLM, _bert_like(hf.GPTNeoXConfig))),
    Model(name="mixtral", traits=(D_, "moe", "output-class"), setup=EXPERTS,
          build=causal(hf.MixtralForCausalLM, _llama_like(hf.MixtralConfig, num_local_experts=4, num_experts_per_tok=2))),
    Model(name="olmoe", traits=(D_, "moe", "output-class"), setup=EXPERTS,
          build=causal(hf.OlmoeForCausalLM, _llama_like(hf.OlmoeConfig, num_experts=4, num_experts_per_tok=2))),
    Model(name="mamba", traits=("state-space", "output-class"), setup=CACHES + "import transformers.models.mamba.modeling_mamba\n",
          build=causal(hf.MambaForCausalLM, lambda: hf.MambaConfig(
              vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, state_size=8), columns=12)),
    Model(name="t5", traits=("encoder-decoder", "tied", "output-class"), setup=CACHES,
          build=seq2seq(hf.T5ForConditionalGeneration, _t5)),
    Model(name="bart", traits=("encoder-decoder", "tied", "output-class"), setup=CACHES,
          build=seq2seq(hf.BartForConditionalGeneration, _bart_like(hf.BartConfig))),
    Model(name="marian", traits=("encoder-decoder", "tied", "output-class"), setup=CACHES,
          build=seq2seq(hf.MarianMTModel, _bart_like(hf.MarianConfig))),
    Model(name="bert-base", traits=(E_, "masks", "output-class", "big"), setup=OUTPUTS, heavy=True,
          build=encoder(hf.BertModel, _big_bert, types=True)),
    Model(name="gpt2-base", traits=(D_, "tied", "big", "output-class"), setup=OUTPUTS, heavy=True,
          build=causal(hf.GPT2LMHeadModel, hf.GPT2Config)),
)  # fmt: skip
