"""The parameter MODEL_INIT_LIBRARY: where it stands, and remarks about it."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Remark, ServedModel
from aotidoctor.model.serving_config import ParameterConfig
from aotidoctor.model.serving_hook import PARAMETER

SINCE = "26.07"


def init_library(model: ServedModel) -> ParameterConfig | None:
    """The parameter, None where the config has none."""
    return None if model.config is None else model.config.parameter(PARAMETER)


def said(
    kind: str,
    given: ParameterConfig,
    message: str,
    remedy: str,
    *,
    seen: str,
    wanted: str,
    consequence: Consequence = Consequence.FAILS_TO_LOAD,
) -> Remark:
    """A remark at the parameter."""
    return Remark(
        kind=kind,
        consequence=consequence,
        message=f"the model does not load: {message}." if consequence is Consequence.FAILS_TO_LOAD else message,
        remedy=remedy,
        observed=seen,
        expected=wanted,
        subject=PARAMETER,
        at=given.value_at,
    )
