"""Architectures that came last: recurrences, relative speech positions, scatters of several kinds, waves."""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.families.other import (
    _batch,
    _clicks,
    _features,
    _graph,
    _graph_dims,
    _graphs,
    _made,
    _quantised,
    _sequence_dims,
    _sequences,
    _wave,
)
from tests.trial.families.text import VOCAB, _llama_like, causal
from tests.trial.families.uncommon import _of
from tests.trial.families.vision import _timm, image
from tests.trial.model import TORCHVISION, Model

ROWS = (2, 1, 4, 3)


def _rwkv():
    return hf.RwkvConfig(
        vocab_size=VOCAB, hidden_size=32, attention_hidden_size=32, num_hidden_layers=2, context_length=32
    )


def _wave_unet():
    from diffusers import UNet1DModel

    return UNet1DModel(sample_size=64, in_channels=2, out_channels=2, block_out_channels=(32, 32), extra_in_channels=64,
                       down_block_types=("DownBlock1DNoSkip", "DownBlock1D"), up_block_types=("UpBlock1D", "UpBlock1DNoSkip"),
                       norm_num_groups=4, time_embedding_type="fourier")  # fmt: skip


def _sounds():
    return [((), {"sample": torch.randn(rows, 2, 64), "timestep": torch.rand(rows)}) for rows in ROWS]


MODELS = (
    Model(name="rwkv", traits=("state-space", "output-class"), setup=_of("rwkv"), build=causal(hf.RwkvForCausalLM, _rwkv, columns=6)),
    Model(name="recurrent-gemma", traits=("state-space", "decoder", "output-class"), setup=_of("recurrent_gemma"),
          build=causal(hf.RecurrentGemmaForCausalLM, _llama_like(hf.RecurrentGemmaConfig, lru_width=32, attention_window_size=8,
                                                                 block_types=["recurrent", "attention"]), columns=8)),
    Model(name="wavlm", traits=("speech", "convolution", "output-class"), setup=_of("wavlm"), build=_wave(hf.WavLMModel, hf.WavLMConfig)),
    Model(name="gin", traits=("graph", "ragged"), build=_made(_graph("GIN"), _graphs, _graph_dims)),
    Model(name="edge-cnn", traits=("graph", "ragged"), build=_made(_graph("EdgeCNN"), _graphs, _graph_dims)),
    Model(name="xdeepfm", traits=("recommender",), build=_made(_clicks("xDeepFM"), _features, _batch())),
    Model(name="wave-unet", traits=("diffusion", "convolution", "output-class"),
          setup=f"{TORCHVISION}\nimport diffusers.models.unets.unet_1d\n", build=_made(_wave_unet, _sounds, _batch("sample", "timestep"))),
    Model(name="intx-weights", traits=("quantised",), build=_made(_quantised("IntxWeightOnlyConfig"), _sequences, _sequence_dims)),
    Model(name="levit", traits=("vision", "classification"), build=image(_timm("levit_128s", img_size=64, num_classes=10, depth=(1, 1, 1)), 64)),
)  # fmt: skip
