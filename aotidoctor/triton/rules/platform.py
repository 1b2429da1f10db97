"""Family config, the platform: which loader the server uses for the model."""

from __future__ import annotations

import difflib

from aotidoctor.model.serving import PLATFORM, Consequence, Family, Needs, Remark, RuleResult, ServedModel, Settled
from aotidoctor.model.serving_config import TOP, ModelConfig, written_text
from aotidoctor.triton.open_models import BACKEND, DEFAULT_FILE, LIBTORCH, LIBTORCH_FILE

RULES = Family("config")


@RULES.rule("R2", "the platform is not torch_aoti", Consequence.FAILS_TO_LOAD, needs=Needs.CONFIG, last_seen="26.06")
def platform_is_exact(model: ServedModel) -> RuleResult:
    """The platform must be exactly torch_aoti; the backend must be pytorch or omitted.

    Versions: all; up to 26.02 the platform is not known at all.
    Consequence: without a platform, backend "pytorch" and default_model_filename "model.pt2" both mean
    pytorch_libtorch, the TorchScript loader, which cannot read an AOTInductor package. A misspelt platform is refused:
    "unexpected platform type" or "unexpected 'platform' and 'backend' pair".
    How it was seen: read in the source of the server's core up to 26.06, run on a core of 24.10 for the messages.
    Remedy: platform: "torch_aoti".
    """
    config, settled = model.config, model.settled
    if config is None or settled is None:
        return
    if settled.platform != PLATFORM:
        # R3 is about a platform that was detected.
        yield from () if settled.platform_from == "detected" else (_wrong_platform(model, config, settled),)
        return
    backend = config.backend
    if backend is not None and backend.value not in ("", BACKEND):
        yield Remark(
            kind="backend",
            message="the model is not loaded: unexpected 'platform' and 'backend' pair, got:"
            f"{PLATFORM}, {backend.value}.",
            observed=f'backend: "{backend.value}"',
            expected=f'backend: "{BACKEND}", or none',
            remedy="Remove the backend, or write pytorch.",
            at=backend.at,
        )
    if model.release.before("26.03"):
        yield Remark(
            kind="release",
            message=f"the model is not loaded: unexpected platform type '{PLATFORM}' for {model.name}.",
            observed=f"Triton {model.release.name}",
            expected="Triton 26.03 or later; 26.05 is the first that can name its inputs",
            remedy="Use a later release of the server.",
            at=config.platform.at if config.platform is not None else TOP,
        )


def _wrong_platform(model: ServedModel, config: ModelConfig, settled: Settled) -> Remark:
    place = config.platform or config.backend or config.default_model_filename
    if settled.platform == LIBTORCH:
        message = f"the server treats it as TorchScript ({LIBTORCH}) and cannot load the package."
    elif config.platform is None:
        message = f"the model is not loaded: unexpected platform type '' for {model.name}."
    elif config.backend is not None:
        message = f"the model is not loaded: unexpected 'platform' and 'backend' pair, got:{settled.platform}, "
        message += f"{config.backend.value}."
    else:
        message = f"the model is not loaded: unexpected platform type '{settled.platform}' for {model.name}."
    platform = written_text(config.platform)
    near = difflib.SequenceMatcher(None, platform.lower(), PLATFORM).ratio() > 0.7
    return Remark(
        kind="misspelt" if near else "missing" if not platform else "other",
        message=message,
        observed=f'platform: "{platform}"'
        if platform
        else f"no platform; the server makes it {settled.platform or 'nothing'}",
        expected=f'platform: "{PLATFORM}"',
        remedy=f'Write platform: "{PLATFORM}". The other rules are checked as if it were set.',
        at=place.at if place is not None else TOP,
        file=model.config_path or model.path,
    )


@RULES.rule("R3", "the platform is left to detection", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def platform_is_stated(model: ServedModel) -> RuleResult:
    """Without platform, backend and file name, the server looks at the files of the first version directory.

    Versions: 26.04 and later detect torch_aoti if model.pt2 is the only model file; 26.03 treats it as TorchScript.
    Consequence: on 26.03 the model does not load. Later it loads, until a model.pt appears beside model.pt2 (which
    wins) or another directory sorts first.
    How it was seen: read in the source of the server's core.
    Remedy: platform: "torch_aoti" in config.pbtxt.
    """
    settled = model.settled
    if settled is None or settled.platform_from != "detected":
        return
    first = min((version.directory for version in model.versions), default="the first folder")
    if settled.platform == PLATFORM:
        yield Remark(
            kind="detected",
            consequence=Consequence.WASTE,
            message=f"the server finds {PLATFORM} by itself, only from {DEFAULT_FILE} in the first folder; "
            f"a {LIBTORCH_FILE} next to it would turn it into TorchScript.",
            observed=f"no platform; {DEFAULT_FILE} in {first}",
            expected=f'platform: "{PLATFORM}"',
            remedy=f'Write platform: "{PLATFORM}".',
            at=TOP,
            file=model.config_path or model.path,
        )
        return
    beside = model.release.since("26.04")
    why = f"{LIBTORCH_FILE} goes before {DEFAULT_FILE}" if beside else f"{model.release.name} detects only the backend"
    yield Remark(
        kind="taken-for-torchscript",
        message=f"the server treats it as TorchScript ({LIBTORCH}): {why}.",
        observed="no platform, no backend, no default_model_filename",
        expected=f'platform: "{PLATFORM}"',
        remedy=f'Write platform: "{PLATFORM}" and default_model_filename: "{DEFAULT_FILE}".',
        at=TOP,
        file=model.config_path or model.path,
    )
