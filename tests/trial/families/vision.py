"""Vision: classification, detection, segmentation, diffusion; transformers, timm, torchvision, diffusers, smp."""

from __future__ import annotations

import torch
import transformers as hf

from tests.trial.families.text import OUTPUTS
from tests.trial.model import TORCHVISION, Built, Model


def image(
    make,
    side: int,
    *,
    name: str | None = None,
    rows=(2, 1, 4, 3),
    dynamic: bool = True,
    dtype=torch.float32,
    channels=3,
):
    """A model of one image batch, given by keyword where ``name`` is set."""

    def build() -> Built:
        torch.manual_seed(0)
        module = make().eval().to(dtype)
        rows_ = rows if dynamic else (rows[0],) * 4
        pictures = [torch.randn(row, channels, side, side).to(dtype) for row in rows_]
        pictures[-1] = torch.zeros_like(pictures[-1]) if dtype == torch.float32 else pictures[-1]
        samples = tuple(((), {name: picture}) if name else ((picture,), {}) for picture in pictures)
        shape = {0: torch.export.Dim("batch", min=1, max=16)} if dynamic else None
        return Built(module=module, samples=samples, dynamic={name: shape} if name else (shape,))

    return build


def _timm(name, **more):
    import timm

    return lambda: timm.create_model(name, pretrained=False, **more)


def _torchvision(name, **more):
    import torchvision

    return lambda: torchvision.models.get_model(name, weights=None, **more)


class _First(torch.nn.Module):
    """Of a model that returns a mapping of tensors, as it is."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, pixel_values):
        found = self.inner(pixel_values)
        return dict(found.items())


def _smp(kind, **more):
    def make():
        import segmentation_models_pytorch as smp

        return getattr(smp, kind)(encoder_name="resnet18", encoder_weights=None, classes=4, **more)

    return make


def _vit_like(kind, **more):
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
    }
    return lambda: kind(**{**sizes, **more})


def _detr():
    config = hf.DetrConfig(
        use_timm_backbone=False, backbone_config=hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1],
        layer_type="basic", out_features=["stage4"]), use_pretrained_backbone=False, backbone=None, d_model=32, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=5, num_labels=4,
    )  # fmt: skip
    return _First(hf.DetrForObjectDetection(config))


def _yolos():
    return hf.YolosForObjectDetection(hf.YolosConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=[32, 32], patch_size=8,
        num_detection_tokens=5, num_labels=4))  # fmt: skip


def _segformer():
    return hf.SegformerForSemanticSegmentation(hf.SegformerConfig(
        hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16, num_labels=4))  # fmt: skip


def _swin():
    return hf.SwinModel(
        hf.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
    )


def diffusion(make, setup_inputs, dynamic):
    def build() -> Built:
        torch.manual_seed(0)
        module = make().eval()
        return Built(module=module, samples=tuple(setup_inputs(rows) for rows in (2, 1, 3, 4)), dynamic=dynamic())

    return build


def _unet2d():
    from diffusers import UNet2DModel

    return UNet2DModel(sample_size=16, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=4, attention_head_dim=8,
                       down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))  # fmt: skip


def _unet_conditioned():
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(sample_size=8, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=4, cross_attention_dim=16,
                                attention_head_dim=4, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip


def _autoencoder():
    from diffusers import AutoencoderKL

    return AutoencoderKL(block_out_channels=(16, 32), norm_num_groups=4, layers_per_block=1, sample_size=16,
                         down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip


def _noise(rows):
    return (), {"sample": torch.randn(rows, 3, 16, 16), "timestep": torch.randint(0, 1000, (rows,))}


def _noise_with_text(rows):
    return (), {"sample": torch.randn(rows, 4, 8, 8), "timestep": torch.randint(0, 1000, (rows,)),
                "encoder_hidden_states": torch.randn(rows, 6, 16)}  # fmt: skip


def _one_batch(*names):
    def dynamic():
        batch = torch.export.Dim("batch", min=1, max=16)
        return {name: {0: batch} for name in names}

    return dynamic


DIFFUSERS = f"{TORCHVISION}\nimport diffusers.models.unets.unet_2d, diffusers.models.unets.unet_2d_condition\nimport diffusers.models.autoencoders.autoencoder_kl\n"
CLASSES = "classification"
MODELS = (
    Model(name="vit", traits=("vision", CLASSES, "output-class"), setup=OUTPUTS,
          build=image(lambda: hf.ViTForImageClassification(_vit_like(hf.ViTConfig)()), 32, name="pixel_values")),
    Model(name="vit-fp16", traits=("vision", CLASSES, "half", "output-class"), setup=OUTPUTS,
          build=image(lambda: hf.ViTForImageClassification(_vit_like(hf.ViTConfig)()), 32, name="pixel_values", dtype=torch.float16)),
    Model(name="dinov2", traits=("vision", "output-class"), setup=OUTPUTS,
          build=image(lambda: hf.Dinov2Model(_vit_like(hf.Dinov2Config)()), 32, name="pixel_values")),
    Model(name="swin", traits=("vision", "output-class"), setup=OUTPUTS + "import transformers.models.swin.modeling_swin\n",
          build=image(_swin, 32, name="pixel_values")),
    Model(name="convnext", traits=("vision", "convolution", "output-class"), setup=OUTPUTS,
          build=image(lambda: hf.ConvNextForImageClassification(hf.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1])), 64, name="pixel_values")),
    Model(name="mobilevit", traits=("vision", "convolution", "output-class"), setup=OUTPUTS,
          build=image(lambda: hf.MobileViTForImageClassification(hf.MobileViTConfig(
              image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32])), 64, name="pixel_values")),
    Model(name="resnet18", traits=("vision", "convolution", CLASSES), build=image(_torchvision("resnet18", num_classes=10), 64)),
    Model(name="mobilenet-v3", traits=("vision", "convolution", CLASSES), build=image(_torchvision("mobilenet_v3_small", num_classes=10), 64)),
    Model(name="shufflenet", traits=("vision", "convolution", CLASSES), build=image(_torchvision("shufflenet_v2_x0_5", num_classes=10), 64)),
    Model(name="squeezenet", traits=("vision", "convolution", CLASSES), build=image(_torchvision("squeezenet1_1", num_classes=10), 64)),
    Model(name="efficientnet", traits=("vision", "convolution", CLASSES), build=image(_torchvision("efficientnet_b0", num_classes=10), 64)),
    Model(name="regnet", traits=("vision", "convolution", CLASSES), build=image(_torchvision("regnet_y_400mf", num_classes=10), 64)),
    Model(name="lraspp", traits=("vision", "segmentation", "convolution"),
          build=image(lambda: _First(_torchvision("lraspp_mobilenet_v3_large", num_classes=4, weights_backbone=None)()), 64, name="pixel_values")),
    Model(name="mixer", traits=("vision", CLASSES), build=image(_timm("mixer_s32_224", img_size=64, num_classes=10), 64)),
    Model(name="ghostnet", traits=("vision", "convolution", CLASSES), build=image(_timm("ghostnet_050", num_classes=10), 64)),
    Model(name="xcit", traits=("vision", CLASSES), build=image(_timm("xcit_nano_12_p16_224", img_size=64, num_classes=10, depth=2), 64)),
    Model(name="resnest", traits=("vision", "convolution", CLASSES), build=image(_timm("resnest14d", num_classes=10), 64)),
    Model(name="unet-smp", traits=("vision", "segmentation", "convolution"), build=image(_smp("Unet"), 64)),
    Model(name="fpn-smp", traits=("vision", "segmentation", "convolution"), build=image(_smp("FPN"), 64)),
    Model(name="deeplab-smp", traits=("vision", "segmentation", "convolution"), build=image(_smp("DeepLabV3Plus"), 64)),
    Model(name="segformer", traits=("vision", "segmentation", "output-class"), setup=OUTPUTS, build=image(_segformer, 64, name="pixel_values")),
    Model(name="detr", traits=("vision", "detection"), build=image(_detr, 64, name="pixel_values")),
    Model(name="yolos", traits=("vision", "detection", "output-class"),
          setup=OUTPUTS + "import transformers.models.yolos.modeling_yolos\n", build=image(_yolos, 32, name="pixel_values")),
    Model(name="unet2d", traits=("diffusion", "convolution", "output-class"), setup=DIFFUSERS,
          build=diffusion(_unet2d, _noise, _one_batch("sample", "timestep"))),
    Model(name="unet-text", traits=("diffusion", "convolution", "output-class"), setup=DIFFUSERS,
          build=diffusion(_unet_conditioned, _noise_with_text, _one_batch("sample", "timestep", "encoder_hidden_states"))),
    Model(name="autoencoder", traits=("diffusion", "convolution", "output-class"), setup=DIFFUSERS, build=image(_autoencoder, 16, name="sample")),
    Model(name="resnet50", traits=("vision", "convolution", CLASSES, "big"), heavy=True, build=image(_torchvision("resnet50"), 224)),
    Model(name="vit-base", traits=("vision", CLASSES, "big"), heavy=True, build=image(_torchvision("vit_b_16"), 224)),
    Model(name="convnext-base", traits=("vision", "convolution", "big"), heavy=True, build=image(_torchvision("convnext_base"), 224)),
    Model(name="vgg16", traits=("vision", "convolution", "big"), heavy=True, build=image(_torchvision("vgg16"), 224)),
)  # fmt: skip
