"""Architectures with attention, memory and outputs of other kinds: windows and blocks, integers, queries, seasons, codes."""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.families.other import _batch, _made
from tests.trial.families.text import EXPERTS, OUTPUTS, VOCAB, _bert_like, _ids, _llama_like, _mask, causal, encoder
from tests.trial.families.uncommon import ROWS, _of
from tests.trial.families.vision import _First, _timm, image
from tests.trial.model import Model

CLASSES = 10
# Sequences of whole windows: what they attend to is cut at export.
WHOLE = 16


def _fixed(kind, config, columns: int = WHOLE):
    """An encoder of sequences of one length."""

    def samples():
        return [((), {"input_ids": _ids(rows, columns), "attention_mask": _mask(rows, columns)}) for rows in ROWS]

    return _made(
        lambda: kind(config()),
        samples,
        _batch("input_ids", "attention_mask"),
        index_bounds={"kwargs['input_ids']": VOCAB},
    )


def _xlnet():
    return hf.XLNetConfig(vocab_size=VOCAB, d_model=32, n_layer=2, n_head=2, d_inner=64, pad_token_id=0)


def _jamba():
    return hf.JambaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        num_experts=2, num_experts_per_tok=1, expert_layer_period=2, expert_layer_offset=1, attn_layer_period=2, attn_layer_offset=1,
        use_mamba_kernels=False, mamba_d_state=4, mamba_dt_rank=4, pad_token_id=0)  # fmt: skip


def _depth_anything():
    return hf.DepthAnythingForDepthEstimation(hf.DepthAnythingConfig(
        backbone_config=hf.Dinov2Config(image_size=28, patch_size=14, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                        out_features=["stage1", "stage2"], reshape_hidden_states=False, apply_layernorm=True),
        patch_size=14, reassemble_hidden_size=32, reassemble_factors=[2, 1], neck_hidden_sizes=[16, 16], fusion_hidden_size=16,
        head_in_index=-1, head_hidden_size=8))  # fmt: skip


def _rt_detr():
    return _First(hf.RTDetrForObjectDetection(hf.RTDetrConfig(
        backbone_config=hf.RTDetrResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], layer_type="basic",
                                              out_features=["stage2", "stage3", "stage4"]),
        encoder_hidden_dim=32, encoder_in_channels=[16, 16, 32], feat_strides=[8, 16, 32], encoder_layers=1, encoder_ffn_dim=64,
        encoder_attention_heads=2, d_model=32, num_queries=5, decoder_in_channels=[32, 32, 32], decoder_ffn_dim=64, decoder_layers=2,
        decoder_attention_heads=2, decoder_n_points=2, num_labels=4, anchor_image_size=None, use_pretrained_backbone=False)))  # fmt: skip


def _registers():
    return hf.Dinov2WithRegistersModel(hf.Dinov2WithRegistersConfig(
        image_size=28, patch_size=14, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_register_tokens=3))  # fmt: skip


def _siglip():
    return hf.SiglipVisionModel(hf.SiglipVisionConfig(
        image_size=32, patch_size=8, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2))  # fmt: skip


def _series():
    return hf.TimeSeriesTransformerModel(hf.TimeSeriesTransformerConfig(
        prediction_length=4, context_length=12, lags_sequence=[1, 2], num_time_features=2, d_model=16, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, use_cache=False))  # fmt: skip


def _seasons():
    past, future = 14, 4
    return [((), {"past_values": torch.randn(rows, past), "past_time_features": torch.randn(rows, past, 2),
                  "past_observed_mask": torch.ones(rows, past), "future_values": torch.randn(rows, future),
                  "future_time_features": torch.randn(rows, future, 2)}) for rows in ROWS]  # fmt: skip


_SEASONS = ("past_values", "past_time_features", "past_observed_mask", "future_values", "future_time_features")


def _spectrum():
    return hf.ASTModel(hf.ASTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, patch_size=8, frequency_stride=8, time_stride=8,
        max_length=32, num_mel_bins=16))  # fmt: skip


def _waves():
    return hf.DacModel(hf.DacConfig(
        encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=32, upsampling_ratios=[4, 2], n_codebooks=2, codebook_size=16,
        codebook_dim=4, hidden_size=32))  # fmt: skip


def _canine():
    return hf.CanineModel(hf.CanineConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64, num_hash_functions=2,
        num_hash_buckets=64, local_transformer_stride=16, downsampling_rate=4))  # fmt: skip


MODELS = (
    Model(name="ibert", traits=("encoder", "integers", "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.IBertModel, _bert_like(hf.IBertConfig, quant_mode=False))),
    Model(name="xlnet", traits=("encoder", "output-class"), setup=_of("xlnet"), build=_fixed(hf.XLNetModel, _xlnet)),
    Model(name="canine", traits=("encoder", "hashes", "masks", "output-class"), setup=_of("canine"),
          build=_made(_canine, lambda: [((), {"input_ids": _ids(rows, 32, 1000), "attention_mask": _mask(rows, 32)}) for rows in ROWS],
                      _batch("input_ids", "attention_mask"))),
    Model(name="jamba", traits=("decoder", "state-space", "moe", "output-class"), setup=EXPERTS,
          build=causal(hf.JambaForCausalLM, _jamba, columns=6)),
    Model(name="gemma3", traits=("decoder", "tied", "windows", "output-class"), setup=OUTPUTS,
          build=causal(hf.Gemma3ForCausalLM, _llama_like(hf.Gemma3TextConfig, head_dim=8, query_pre_attn_scalar=8, sliding_window=8))),
    Model(name="depth-anything", traits=("vision", "depth", "output-class"), setup=OUTPUTS, build=image(_depth_anything, 28, name="pixel_values")),
    Model(name="rt-detr", traits=("vision", "detection"), build=image(_rt_detr, 64, name="pixel_values", dynamic=False)),
    Model(name="dinov2-registers", traits=("vision", "output-class"), setup=OUTPUTS, build=image(_registers, 28, name="pixel_values")),
    Model(name="series", traits=("time-series", "output-class"), setup=OUTPUTS, build=_made(_series, _seasons, _batch(*_SEASONS))),
    Model(name="ast", traits=("audio", "output-class"), setup=OUTPUTS,
          build=_made(_spectrum, lambda: [((), {"input_values": torch.randn(rows, 32, 16)}) for rows in ROWS], _batch("input_values"))),
    Model(name="dac", traits=("audio", "convolution", "codes", "output-class"), setup=_of("dac"),
          build=_made(_waves, lambda: [((), {"input_values": torch.randn(rows, 1, 64)}) for rows in ROWS], _batch("input_values"))),
    Model(name="hiera", traits=("vision", "classification"), build=image(_timm("hiera_tiny_224", img_size=64, num_classes=CLASSES, embed_dim=16, stages=(1, 1, 1, 1)), 64)),
    Model(name="fastvit", traits=("vision", "classification"), build=image(_timm("fastvit_t8", num_classes=CLASSES, layers=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32)), 64)),
)  # fmt: skip
