"""Architectures with parts that few others have: transforms to complex numbers, boxes, volumes, prompts, several checkpoints.

Each stands for an operator, a dtype, a rank or a shape of a call that no other family has.
"""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.families.other import _batch, _clicks, _features, _graph, _graph_dims, _graphs, _made, _wave
from tests.trial.families.text import EXPERTS, OUTPUTS, VOCAB, _bert_like, _ids, _llama_like, _mask, causal, encoder
from tests.trial.families.vision import _First, _timm, _torchvision, image
from tests.trial.model import TORCHVISION, Built, Model

SIDE = 64  # how far boxes reach
STEPS = 40
CLASSES = 10
ROWS = (2, 1, 4, 3)


def _of(name: str) -> str:
    """The setup that imports a model's own output classes."""
    return f"{TORCHVISION}\nimport transformers.models.{name}.modeling_{name}\n"


def _lengths(*names: str, longest: int = 48):
    def dims():
        batch, length = torch.export.Dim("batch", min=1, max=16), torch.export.Dim("length", min=2, max=longest)
        return {name: {0: batch, 1: length} for name in names}

    return dims


def _boxes(rows: int, columns: int) -> torch.Tensor:
    corners = torch.randint(0, SIDE, (rows, columns, 2, 2)).sort(dim=2).values
    return corners.flatten(2)


def _documents():
    return [((), {"input_ids": _ids(*size), "bbox": _boxes(*size), "attention_mask": _mask(*size)})
            for size in ((2, 9), (1, 4), (4, 20), (3, 3))]  # fmt: skip


def _tables():
    kinds = (3, 16, 16, 2, 16, 16, 10)
    return [((), {"input_ids": _ids(*size), "attention_mask": _mask(*size),
                  "token_type_ids": torch.stack([torch.randint(0, kind, size) for kind in kinds], -1)})
            for size in ((2, 9), (1, 4), (4, 20), (3, 3))]  # fmt: skip


def _tapas():
    return hf.TapasModel(
        _bert_like(hf.TapasConfig, type_vocab_sizes=[3, 16, 16, 2, 16, 16, 10], reset_position_index_per_cell=False)()
    )


def _perceiver():
    return hf.PerceiverForMaskedLM(hf.PerceiverConfig(
        num_latents=8, d_latents=32, d_model=24, num_self_attends_per_block=2, num_self_attention_heads=2, num_cross_attention_heads=2,
        vocab_size=VOCAB, max_position_embeddings=64))  # fmt: skip


def _letters():
    return [((), {"inputs": _ids(*size), "attention_mask": _mask(*size)}) for size in ((2, 9), (1, 4), (4, 20), (3, 3))]


def _mamba2():
    return hf.Mamba2Config(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=8,
        num_heads=8,
        head_dim=8,
        n_groups=1,
        chunk_size=4,
    )


def _falcon():
    return hf.FalconConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
                           bos_token_id=1, eos_token_id=2)  # fmt: skip


def _decisions():
    return hf.DecisionTransformerModel(hf.DecisionTransformerConfig(
        state_dim=5, act_dim=3, hidden_size=32, max_ep_len=STEPS, n_positions=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))  # fmt: skip


def _episodes():
    return [((), {"states": torch.randn(rows, steps, 5), "actions": torch.randn(rows, steps, 3), "rewards": torch.randn(rows, steps, 1),
                  "returns_to_go": torch.randn(rows, steps, 1), "timesteps": torch.randint(0, STEPS, (rows, steps)),
                  "attention_mask": _mask(rows, steps)}) for rows, steps in ((2, 6), (1, 3), (4, 12), (3, 2))]  # fmt: skip


def _deformable():
    return _First(hf.DeformableDetrForObjectDetection(hf.DeformableDetrConfig(
        backbone_config=hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1], layer_type="basic",
                                        out_features=["stage3", "stage4"]),
        num_feature_levels=2, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=5, num_labels=4)))  # fmt: skip


def _segment_anything():
    return hf.SamModel(hf.SamConfig(
        vision_config={"hidden_size": 16, "output_channels": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
                       "patch_size": 8, "window_size": 2, "global_attn_indexes": [1], "num_pos_feats": 8, "mlp_dim": 32},
        prompt_encoder_config={"hidden_size": 16, "image_size": 32, "patch_size": 8, "mask_input_channels": 4},
        mask_decoder_config={"hidden_size": 16, "mlp_dim": 32, "num_attention_heads": 2, "iou_head_hidden_dim": 16}))  # fmt: skip


def _prompts():
    return [((), {"pixel_values": torch.randn(rows, 3, 32, 32), "input_points": torch.rand(rows, 1, points, 2) * 32,
                  "input_labels": torch.randint(0, 2, (rows, 1, points))}) for rows, points in ((2, 3), (1, 2), (4, 5), (3, 2))]  # fmt: skip


def _prompt_dims():
    batch, points = torch.export.Dim("batch", min=1, max=16), torch.export.Dim("points", min=2, max=32)
    return {"pixel_values": {0: batch}, "input_points": {0: batch, 2: points}, "input_labels": {0: batch, 2: points}}


def _depth():
    return hf.GLPNForDepthEstimation(hf.GLPNConfig(
        hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16))  # fmt: skip


def _clips():
    return hf.TimesformerForVideoClassification(hf.TimesformerConfig(
        image_size=32, patch_size=8, num_frames=2, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=5))  # fmt: skip


def _mixer():
    return hf.PatchTSMixerForPrediction(hf.PatchTSMixerConfig(
        context_length=32, patch_length=8, patch_stride=8, num_input_channels=3, d_model=8, num_layers=2, prediction_length=8))  # fmt: skip


def _dit():
    from diffusers import DiTTransformer2DModel

    return DiTTransformer2DModel(num_attention_heads=2, attention_head_dim=8, in_channels=4, num_layers=2, norm_num_groups=4, sample_size=8,
                                 num_embeds_ada_norm=CLASSES)  # fmt: skip


def _noise():
    return [((), {"hidden_states": torch.randn(rows, 4, 8, 8), "timestep": torch.randint(0, 1000, (rows,)),
                  "class_labels": torch.randint(0, CLASSES, (rows,))}) for rows in ROWS]  # fmt: skip


def _flux():
    from diffusers import FluxTransformer2DModel

    return FluxTransformer2DModel(patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                                  joint_attention_dim=32, pooled_projection_dim=24, axes_dims_rope=(4, 4, 8))  # fmt: skip


def _packed():
    return [((), {"hidden_states": torch.randn(rows, 16, 4), "encoder_hidden_states": torch.randn(rows, 6, 32),
                  "pooled_projections": torch.randn(rows, 24), "timestep": torch.rand(rows), "img_ids": torch.rand(16, 3).round(),
                  "txt_ids": torch.zeros(6, 3)}) for rows in ROWS]  # fmt: skip


def _packed_dims():
    batch = torch.export.Dim("batch", min=1, max=16)
    rows = {key: {0: batch} for key in ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep")}
    return {**rows, "img_ids": None, "txt_ids": None}


def _control():
    from diffusers import ControlNetModel

    return ControlNetModel(block_out_channels=(16, 32), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), layers_per_block=1,
                           norm_num_groups=4, cross_attention_dim=16, attention_head_dim=4, conditioning_embedding_out_channels=(8, 16))  # fmt: skip


def _controlled():
    return [((), {"sample": torch.randn(rows, 4, 8, 8), "timestep": torch.randint(0, 1000, (rows,)),
                  "encoder_hidden_states": torch.randn(rows, 6, 16), "controlnet_cond": torch.randn(rows, 3, 16, 16)}) for rows in ROWS]  # fmt: skip


class _Bytes(torch.nn.Module):
    """A classifier that takes pictures as a camera gives them: bytes, channels last."""

    def __init__(self):
        super().__init__()
        self.inner = _timm("test_vit", num_classes=CLASSES)()
        self.register_buffer("mean", torch.tensor([0.5, 0.4, 0.4]).view(3, 1, 1))

    def forward(self, picture):
        return self.inner(picture.permute(0, 3, 1, 2).float() / 255 - self.mean).softmax(-1)


def _pictures():
    return [((torch.randint(0, 256, (rows, 160, 160, 3), dtype=torch.uint8),), {}) for rows in ROWS]


def _calibrated():
    """A convolutional network quantised after training, for this processor."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    torch.manual_seed(0)
    example = (torch.randn(2, 3, 64, 64),)
    batch = torch.export.Dim("batch", min=1, max=16)
    with torch.no_grad():
        program = torch.export.export(
            _torchvision("squeezenet1_1", num_classes=CLASSES)().eval(), example, dynamic_shapes=({0: batch},)
        )
        quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
        prepared = prepare_pt2e(program.module(), quantizer)
        prepared(*example)
        return convert_pt2e(prepared)


def _calibrated_build() -> Built:
    module = _calibrated()
    samples = tuple(((torch.randn(rows, 3, 64, 64),), {}) for rows in ROWS)
    return Built(module=module, samples=samples, dynamic=({0: torch.export.Dim("batch", min=1, max=16)},))


def _films(frames: int, side: int):
    return lambda: [((torch.randn(rows, 3, frames, side, side),), {}) for rows in ROWS]


IDS = {"kwargs['input_ids']": VOCAB}
MODELS = (
    Model(name="fnet", traits=("encoder", "fourier", "output-class"), setup=OUTPUTS,
          build=encoder(hf.FNetModel, _bert_like(hf.FNetConfig), types=True, masked=False)),
    Model(name="layoutlm", traits=("encoder", "boxes", "masks", "output-class"), setup=OUTPUTS,
          build=_made(lambda: hf.LayoutLMModel(_bert_like(hf.LayoutLMConfig, max_2d_position_embeddings=SIDE)()), _documents,
                      _lengths("input_ids", "bbox", "attention_mask"), index_bounds={**IDS, "kwargs['bbox']": SIDE})),
    Model(name="tapas", traits=("encoder", "tables", "masks", "output-class"), setup=OUTPUTS,
          build=_made(_tapas, _tables, _lengths("input_ids", "attention_mask", "token_type_ids"), index_bounds={**IDS, "kwargs['token_type_ids']": 10})),
    Model(name="perceiver", traits=("encoder", "latents", "masks", "output-class"), setup=_of("perceiver"),
          build=_made(_perceiver, _letters, _lengths("inputs", "attention_mask"), index_bounds={"kwargs['inputs']": VOCAB})),
    Model(name="convbert", traits=("encoder", "convolution", "masks", "output-class"), setup=OUTPUTS,
          build=encoder(hf.ConvBertModel, _bert_like(hf.ConvBertConfig, embedding_size=32, conv_kernel_size=3, num_attention_heads=4))),
    Model(name="gemma2", traits=("decoder", "tied", "output-class"), setup=OUTPUTS,
          build=causal(hf.Gemma2ForCausalLM, _llama_like(hf.Gemma2Config, head_dim=8, query_pre_attn_scalar=8, sliding_window=8))),
    Model(name="deepseek-v3", traits=("decoder", "moe", "output-class"), setup=EXPERTS,
          build=causal(hf.DeepseekV3ForCausalLM, _llama_like(
              hf.DeepseekV3Config, num_key_value_heads=4, moe_intermediate_size=16, n_routed_experts=4, kv_lora_rank=8, q_lora_rank=16,
              qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, n_group=2, topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1))),
    Model(name="gpt-oss", traits=("decoder", "moe", "output-class"), setup=EXPERTS,
          build=causal(hf.GptOssForCausalLM, _llama_like(hf.GptOssConfig, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=8))),
    Model(name="lfm2", traits=("decoder", "convolution", "tied", "output-class"), setup=OUTPUTS,
          build=causal(hf.Lfm2ForCausalLM, _llama_like(hf.Lfm2Config, full_attn_idxs=[1], block_auto_adjust_ff_dim=False))),
    Model(name="mamba2", traits=("state-space", "output-class"), setup=_of("mamba2"), build=causal(hf.Mamba2ForCausalLM, _mamba2, columns=12)),
    Model(name="falcon", traits=("decoder", "tied", "output-class"), setup=OUTPUTS, build=causal(hf.FalconForCausalLM, _falcon)),
    Model(name="decisions", traits=("decoder", "reinforcement", "masks", "output-class"), setup=_of("decision_transformer"),
          build=_made(_decisions, _episodes, _lengths("states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask", longest=20),
                      index_bounds={"kwargs['timesteps']": STEPS})),
    Model(name="conformer", traits=("speech", "convolution", "output-class"), setup=_of("wav2vec2_conformer"),
          build=_wave(hf.Wav2Vec2ConformerModel, hf.Wav2Vec2ConformerConfig)),
    Model(name="deformable-detr", traits=("vision", "detection"), build=image(_deformable, 64, name="pixel_values")),
    Model(name="sam", traits=("vision", "segmentation", "prompts", "output-class"), setup=_of("sam"),
          build=_made(_segment_anything, _prompts, _prompt_dims)),
    Model(name="glpn", traits=("vision", "depth", "output-class"), setup=OUTPUTS, build=image(_depth, 64, name="pixel_values")),
    Model(name="timesformer", traits=("video", "output-class"), setup=OUTPUTS,
          build=_made(_clips, lambda: [((), {"pixel_values": torch.randn(rows, 2, 3, 32, 32)}) for rows in ROWS], _batch("pixel_values"))),
    Model(name="patchtsmixer", traits=("time-series", "output-class"), setup=_of("patchtsmixer"),
          build=_made(_mixer, lambda: [((), {"past_values": torch.randn(rows, 32, 3)}) for rows in ROWS], _batch("past_values"))),
    Model(name="dit", traits=("diffusion", "output-class"), setup=f"{TORCHVISION}\nimport diffusers.models.transformers.dit_transformer_2d\n",
          build=_made(_dit, _noise, _batch("hidden_states", "timestep", "class_labels"), index_bounds={"kwargs['class_labels']": CLASSES + 1})),
    Model(name="flux", traits=("diffusion", "output-class"), setup=f"{TORCHVISION}\nimport diffusers.models.transformers.transformer_flux\n",
          build=_made(_flux, _packed, _packed_dims)),
    Model(name="controlnet", traits=("diffusion", "convolution", "output-class"),
          setup=f"{TORCHVISION}\nimport diffusers.models.controlnets.controlnet\n",
          build=_made(_control, _controlled, _batch("sample", "timestep", "encoder_hidden_states", "controlnet_cond"))),
    Model(name="autoint", traits=("recommender",), build=_made(_clicks("AutoInt"), _features, _batch())),
    Model(name="gat", traits=("graph", "ragged"), build=_made(_graph("GAT"), _graphs, _graph_dims)),
    Model(name="eva02", traits=("vision", "classification"),
          build=image(_timm("eva02_tiny_patch14_224", img_size=56, num_classes=CLASSES, depth=2), 56)),
    Model(name="nfnet", traits=("vision", "convolution", "classification"), build=image(_timm("test_nfnet", num_classes=CLASSES), 64)),
    Model(name="bytes", traits=("vision", "bytes", "classification"), build=_made(_Bytes, _pictures, _batch())),
    Model(name="pt2e-int8", traits=("vision", "convolution", "quantised"), build=_calibrated_build,
          setup="import torch.ao.quantization.fx._decomposed\n"),  # its program calls quantize and dequantize
    Model(name="alexnet", traits=("vision", "convolution", "big"), heavy=True, build=image(_torchvision("alexnet"), 224)),
    Model(name="vit-b-32", traits=("vision", "classification", "big"), heavy=True, build=image(_torchvision("vit_b_32"), 224)),
    Model(name="r3d-18", traits=("video", "convolution", "big"), heavy=True,
          build=_made(_torchvision("r3d_18"), _films(4, 56), _batch())),
)  # fmt: skip
