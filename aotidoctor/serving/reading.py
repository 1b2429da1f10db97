"""From the text of config.pbtxt to what the server would make of it, with the reason where it makes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aotidoctor.model.serving import PLATFORM
from aotidoctor.model.serving_config import ModelConfig, Position
from aotidoctor.serving import protobuf, text_format
from aotidoctor.serving.repository import ModelFolder
from aotidoctor.serving.tokens import TextFormatError
from aotidoctor.serving.typed import empty_config, typed

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What became of the text.

    ``config`` is None where the text is none; ``problem`` is then what is wrong with it. ``unchecked`` says why the
    text was not held against Triton's own schema.
    """

    config: ModelConfig | None
    problem: str | None = None
    at: Position | None = None
    unchecked: str | None = None


def read_config(text: str | None) -> Reading:
    """What the server reads. Without a config it goes by the files alone."""
    if text is None:
        return Reading(config=empty_config())
    official = protobuf.judge(text)
    missing = official.problem if official.accepted is None else None
    try:
        own = typed(text_format.parse(text), text)
    except TextFormatError as error:
        return _refused(text, error, official, missing)
    if official.accepted is False:
        # Known to happen with numbers only, where the server's C++ parser takes more than protobuf's Python parser.
        return Reading(config=own, unchecked=f"protobuf's Python parser refuses it: {official.problem}")
    return Reading(config=own, unchecked=missing)


def _refused(text: str, error: TextFormatError, official: protobuf.Verdict, missing: str | None) -> Reading:
    if official.accepted and not _SURROGATE.search(text):
        # A schema newer than the own table of types; what else the own reader refuses, the server refuses, too.
        try:
            return Reading(config=typed(text_format.parse(text, lenient=True), text))
        except TextFormatError:
            pass
    return Reading(config=None, problem=_said(error), at=error.at, unchecked=missing)


def _said(error: TextFormatError) -> str:
    return f"{error.at.line}:{error.at.column}: {error}"


def is_meant(config: ModelConfig | None, folder: ModelFolder) -> bool:
    """Whether somebody meant this for the AOTInductor loader: by its platform, its file name, or a file ``*.pt2``."""
    names = [name for _, files in folder.folders for name in files]
    if config is not None:
        written = config.platform.value.lower() if config.platform is not None else ""
        if PLATFORM in written or "aoti" in written or "inductor" in written:
            return True
        if config.default_model_filename is not None:
            names.append(config.default_model_filename.value)
    return any(name.endswith(".pt2") for name in names)
