"""From the text of config.pbtxt to what the server would make of it, with the reason where it makes nothing."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.record import record
from aotidoctor.model.serving import PLATFORM
from aotidoctor.model.serving_config import ModelConfig, Position, written
from aotidoctor.triton import protobuf, text_format
from aotidoctor.triton.repository import ModelFolder
from aotidoctor.triton.tokens import TextFormatError
from aotidoctor.triton.typed import empty_config, typed


@record
class Reading:
    """What became of the text.

    ``config`` is None where the text is none; ``problem`` is then what is wrong with it. ``unchecked`` says why the
    text was not checked against Triton's own schema.
    """

    config: ModelConfig | None
    problem: str | None = None
    at: Position | None = None
    unchecked: str | None = None


def read_config(text: str | None) -> Reading:
    """What the server reads. Without a config it goes by the files alone."""
    if text is None:
        return Reading(config=empty_config())
    try:
        own = typed(text_format.parse(text), text)
    except TextFormatError as error:
        return _refused(text, error)
    official = protobuf.judge(text)
    if official.accepted is False:
        # Known to happen with numbers only, where the server's C++ parser takes more than protobuf's Python parser.
        return Reading(config=own, unchecked=f"protobuf's Python parser refuses it: {official.problem}")
    return Reading(config=own, unchecked=official.problem if official.accepted is None else None)


def _refused(text: str, error: TextFormatError) -> Reading:
    """Refused, unless all that is wrong is a field that a newer schema has and the own table of types has not."""
    refused = Reading(config=None, problem=_said(error), at=error.at)
    try:
        lenient = typed(text_format.parse(text, lenient=True), text)
    except TextFormatError:
        return refused
    official = protobuf.judge(text)
    if official.accepted:
        return Reading(config=lenient)
    return replace(refused, unchecked=official.problem if official.accepted is None else None)


def _said(error: TextFormatError) -> str:
    return f"{error.at.line}:{error.at.column}: {error}"


def is_meant(config: ModelConfig | None, folder: ModelFolder) -> bool:
    """Whether somebody meant this for the AOTInductor loader: by its platform, its file name, or a file ``*.pt2``."""
    names = [name for _, files in folder.folders for name in files]
    if config is not None:
        platform = written(config.platform).lower()
        if PLATFORM in platform or "aoti" in platform or "inductor" in platform:
            return True
        names.append(written(config.default_model_filename))
    return any(name.endswith(".pt2") for name in names)
