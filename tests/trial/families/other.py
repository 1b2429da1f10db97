"""Speech, recommenders with ragged bags, graphs, time series, quantised models, buffers that are written to."""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.families.text import CACHES, OUTPUTS, VOCAB, _bert_like
from tests.trial.families.vision import _vit_like
from tests.trial.model import TORCHVISION, Built, Model


def _made(make, samples, dynamic, **more):
    def build() -> Built:
        torch.manual_seed(0)
        return Built(module=make().eval(), samples=tuple(samples()), dynamic=dynamic(), **more)

    return build


def _wave(kind, config):
    def samples():
        return [((), {"input_values": torch.randn(rows, 3200)}) for rows in (2, 1, 4, 3)]

    def make():
        return kind(config(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=32, conv_dim=(16,) * 3,
            conv_stride=(5, 4, 4), conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4))  # fmt: skip

    return _made(make, samples, lambda: {"input_values": {0: torch.export.Dim("batch", min=1, max=16)}})


def _whisper():
    return hf.WhisperForConditionalGeneration(hf.WhisperConfig(
        vocab_size=VOCAB, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=16, max_source_positions=50, max_target_positions=32,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False))  # fmt: skip


def _speech_and_text():
    return [((), {"input_features": torch.randn(rows, 16, 100), "decoder_input_ids": torch.randint(3, VOCAB, (rows, length))})
            for rows, length in ((2, 7), (1, 3), (4, 20), (3, 2))]  # fmt: skip


def _speech_dims():
    batch, length = torch.export.Dim("batch", min=1, max=16), torch.export.Dim("length", min=2, max=30)
    return {"input_features": {0: batch}, "decoder_input_ids": {0: batch, 1: length}}


def _spectrogram():
    return hf.ASTForAudioClassification(hf.ASTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_length=64, num_mel_bins=32))  # fmt: skip


def _vocoder():
    return hf.SpeechT5HifiGan(hf.SpeechT5HifiGanConfig(model_in_dim=16, upsample_initial_channel=32, upsample_rates=[4, 4],
                                                       upsample_kernel_sizes=[8, 8], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1, 3]]))  # fmt: skip


class _Codec(torch.nn.Module):
    """The encoder of the descript codec: strided convolutions with snakes, then the nearest codes."""

    def __init__(self):
        super().__init__()
        config = hf.DacConfig(
            encoder_hidden_size=8, downsampling_ratios=[4, 2], decoder_hidden_size=32, n_codebooks=2, codebook_size=32,
            codebook_dim=4, hidden_size=32,
        )  # fmt: skip
        self.inner = hf.DacModel(config)

    def forward(self, wave):
        found = self.inner.encode(wave)
        return found.quantized_representation, found.audio_codes


class _Recommender(torch.nn.Module):
    """DLRM as its paper has it: bags of categories, a tower for numbers, pairwise products, a tower on top."""

    def __init__(self, tables: int = 3, rows: int = 50, width: int = 16):
        super().__init__()
        self.bags = torch.nn.ModuleList(
            [torch.nn.EmbeddingBag(rows, width, mode="sum", include_last_offset=True) for _ in range(tables)]
        )
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, width), torch.nn.ReLU()
        )
        self.top = torch.nn.Sequential(
            torch.nn.Linear(width + 6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1), torch.nn.Sigmoid()
        )
        self.register_buffer("pairs", torch.triu_indices(tables + 1, tables + 1, 1))

    def forward(self, dense, indices: list[torch.Tensor], offsets: list[torch.Tensor]):
        x = self.bottom(dense)
        found = [bag(i, o) for bag, i, o in zip(self.bags, indices, offsets, strict=True)]
        stacked = torch.stack([x, *found], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, products], 1))


def _bags(rows, total):
    indices = [torch.randint(0, 50, (total,)) for _ in range(3)]
    offsets = [
        torch.cat(
            [torch.tensor([0]), torch.sort(torch.randint(0, total + 1, (rows - 1,))).values, torch.tensor([total])]
        )
        for _ in range(3)
    ]
    return (torch.randn(rows, 13), indices, offsets), {}


def _bag_dims():
    batch = torch.export.Dim("batch", min=2, max=64)
    counts = [torch.export.Dim(f"count{number}", min=2, max=512) for number in range(3)]
    return ({0: batch}, [{0: count} for count in counts], [{0: batch + 1}] * 3)


def _clicks(kind):
    """One of deepctr's models, on the flat row of features that its ``forward`` takes."""

    def make():
        from deepctr_torch import models
        from deepctr_torch.inputs import DenseFeat, SparseFeat

        columns = [SparseFeat(f"C{number}", vocabulary_size=20, embedding_dim=8) for number in range(4)]
        columns += [DenseFeat(f"I{number}", 1) for number in range(3)]
        return getattr(models, kind)(columns, columns, dnn_hidden_units=(16, 8), device="cpu")

    return make


def _features():
    return [
        ((torch.cat([torch.randint(0, 20, (rows, 4)).float(), torch.randn(rows, 3)], 1),), {}) for rows in (4, 1, 9, 2)
    ]


def _graph(kind):
    def make():
        from torch_geometric.nn import models

        return getattr(models, kind)(in_channels=8, hidden_channels=16, num_layers=2, out_channels=4)

    return make


def _graphs():
    return [
        ((torch.randn(nodes, 8), torch.randint(0, nodes, (2, edges))), {})
        for nodes, edges in ((12, 30), (5, 6), (40, 99), (20, 11))
    ]


def _graph_dims():
    return ({0: torch.export.Dim("nodes", min=2, max=4096)}, {1: torch.export.Dim("edges", min=2, max=65536)})


def _patches():
    return hf.PatchTSTForPrediction(hf.PatchTSTConfig(
        num_input_channels=3, context_length=32, prediction_length=8, patch_length=8, patch_stride=8, d_model=16,
        num_hidden_layers=2, num_attention_heads=2, ffn_dim=32))  # fmt: skip


def _clip():
    text = _bert_like(hf.CLIPTextConfig, pad_token_id=0, bos_token_id=1, eos_token_id=2)()
    return hf.CLIPModel(
        hf.CLIPConfig(
            text_config=text.to_dict(), vision_config=_vit_like(hf.CLIPVisionConfig)().to_dict(), projection_dim=16
        )
    )


def _pictures_and_text():
    return [((), {"input_ids": torch.randint(3, VOCAB, (texts, length)), "pixel_values": torch.randn(pictures, 3, 32, 32)})
            for texts, length, pictures in ((3, 7, 2), (1, 5, 4), (5, 20, 1), (2, 2, 3))]  # fmt: skip


def _clip_dims():
    texts, length, pictures = (
        torch.export.Dim(name, min=least, max=48) for name, least in (("texts", 1), ("length", 2), ("pictures", 1))
    )
    return {"input_ids": {0: texts, 1: length}, "pixel_values": {0: pictures}}


def _quantised(scheme):
    """A torchvision transformer whose linear layers torchao quantised."""

    def make():
        from torchao import quantization

        torch.manual_seed(0)
        module = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0), 2, enable_nested_tensor=False
        ).eval()
        quantization.quantize_(module, getattr(quantization, scheme)())
        from torchao.utils import unwrap_tensor_subclass

        return unwrap_tensor_subclass(module)

    return make


def _sequences():
    return [((torch.randn(rows, columns, 64),), {}) for rows, columns in ((2, 9), (1, 4), (4, 17), (3, 6))]


def _sequence_dims():
    return ({0: torch.export.Dim("batch", min=1, max=16), 1: torch.export.Dim("length", min=2, max=64)},)


class _StaticCache(torch.nn.Module):
    """One decoding step of Llama with a static cache: buffers of the module that each call writes to."""

    def __init__(self):
        super().__init__()
        from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

        config = hf.LlamaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                intermediate_size=64, max_position_embeddings=64, pad_token_id=0)  # fmt: skip
        model = hf.LlamaForCausalLM(config).eval()
        model.generation_config = hf.GenerationConfig(use_cache=True, cache_implementation="static", max_length=32,
                                                      cache_config={"batch_size": 1, "max_cache_len": 32})  # fmt: skip
        self.inner = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=32, device="cpu")

    def forward(self, input_ids, cache_position):
        return self.inner(input_ids=input_ids, cache_position=cache_position)


def _steps():
    return [
        ((), {"input_ids": torch.randint(3, VOCAB, (1, 1)), "cache_position": torch.tensor([step])})
        for step in (0, 1, 2, 3)
    ]


class _Counted(torch.nn.Module):
    """A convolutional network that keeps a running mean of what it saw, as online models do."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 2, 1),
            torch.nn.GroupNorm(2, 8),
            torch.nn.GELU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 64, 5),
        )
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen.add_(x.shape[0])
        return self.body(x), self.seen.clone()


def _batch(*names):
    def dims():
        batch = torch.export.Dim("batch", min=1, max=16)
        return {name: {0: batch} for name in names} if names else ({0: batch},)

    return dims


BAG_BOUNDS = {f"args[1][{number}]": 50 for number in range(3)}
MODELS = (
    Model(name="wav2vec2", traits=("speech", "convolution", "output-class"), setup=OUTPUTS, build=_wave(hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config)),
    Model(name="hubert", traits=("speech", "convolution", "output-class"), setup=OUTPUTS, build=_wave(hf.HubertModel, hf.HubertConfig)),
    Model(name="whisper", traits=("speech", "encoder-decoder", "output-class"), setup=CACHES,
          build=_made(_whisper, _speech_and_text, _speech_dims, index_bounds={"kwargs['decoder_input_ids']": VOCAB})),
    Model(name="spectrogram", traits=("speech", "output-class"), setup=OUTPUTS,
          build=_made(_spectrogram, lambda: [((), {"input_values": torch.randn(rows, 64, 32)}) for rows in (2, 1, 4, 3)], _batch("input_values"))),
    Model(name="vocoder", traits=("speech", "convolution"),
          build=_made(_vocoder, lambda: [((), {"spectrogram": torch.randn(rows, 20, 16)}) for rows in (2, 1, 4, 3)], _batch("spectrogram"))),
    Model(name="codec", traits=("speech", "convolution", "codes"),
          build=_made(_Codec, lambda: [((torch.randn(rows, 1, 320),), {}) for rows in (2, 1, 4, 3)], _batch())),
    Model(name="dlrm", traits=("recommender", "ragged"),
          build=_made(_Recommender, lambda: [_bags(*size) for size in ((4, 11), (2, 5), (9, 40), (3, 3))], _bag_dims, index_bounds=BAG_BOUNDS)),
    Model(name="deepfm", traits=("recommender",), build=_made(_clicks("DeepFM"), _features, _batch())),
    Model(name="dcn", traits=("recommender",), build=_made(_clicks("DCN"), _features, _batch())),
    Model(name="gcn", traits=("graph", "ragged"), build=_made(_graph("GCN"), _graphs, _graph_dims)),
    Model(name="sage", traits=("graph", "ragged"), build=_made(_graph("GraphSAGE"), _graphs, _graph_dims)),
    Model(name="patchtst", traits=("time-series", "output-class"), setup=OUTPUTS + "import transformers.models.patchtst.modeling_patchtst\n",
          build=_made(_patches, lambda: [((), {"past_values": torch.randn(rows, 32, 3)}) for rows in (2, 1, 4, 3)], _batch("past_values"))),
    Model(name="clip", traits=("multimodal", "output-class"), setup=OUTPUTS + "import transformers.models.clip.modeling_clip\n",
          build=_made(_clip, _pictures_and_text, _clip_dims, index_bounds={"kwargs['input_ids']": VOCAB})),
    Model(name="int8-weights", traits=("quantised",), build=_made(_quantised("Int8WeightOnlyConfig"), _sequences, _sequence_dims)),
    Model(name="int8-dynamic", traits=("quantised",), setup="import torchao.quantization\n",  # its program calls torchao's operators
          build=_made(_quantised("Int8DynamicActivationInt8WeightConfig"), _sequences, _sequence_dims)),
    # The cache's layers hold the module's buffers too: only a strict export sees that they are the same.
    Model(name="static-cache", traits=("decoder", "cache", "mutated"), strict=True, setup=f"{TORCHVISION}\nimport transformers\n",
          build=_made(_StaticCache, _steps, lambda: None, index_bounds={"kwargs['input_ids']": VOCAB})),
    Model(name="counted", traits=("vision", "convolution", "mutated"),
          build=_made(_Counted, lambda: [((torch.randn(rows, 3, 16, 16),), {}) for rows in (2, 1, 4, 3)], _batch())),
)  # fmt: skip
