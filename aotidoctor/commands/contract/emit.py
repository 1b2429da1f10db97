"""Which forms a contract can be written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aotidoctor.commands.contract.cpp import cpp_header
from aotidoctor.commands.contract.json_schema import json_schema
from aotidoctor.commands.contract.python import python_module
from aotidoctor.commands.contract.read import Shippable, read_contract
from aotidoctor.model.errors import CannotExamineError

PBTXT = "pbtxt"
FORMS: Mapping[str, Callable[[Shippable], str]] = {"python": python_module, "json": json_schema, "cpp": cpp_header}


def emit(
    form: str,
    path: str,
    *,
    inputs: str | None = None,
    reference: str | None = None,
    model_name: str | None = None,
    environ: Mapping[str, str],
) -> str:
    """The contract of the package at ``path`` in one of ``FORMS``, or ``pbtxt``: Triton's configuration.

    Raises:
        CannotExamineError: there is no package, or it does not tell what has to be written.
    """
    if form == PBTXT:
        return _config(path, environ)
    wanted = read_contract(path, inputs=inputs, reference=reference, model_name=model_name, environ=environ)
    return FORMS[form](wanted)


def _config(path: str, environ: Mapping[str, str]) -> str:
    from aotidoctor.commands.triton_init import draw_config  # noqa: PLC0415 - for Triton only
    from aotidoctor.triton.config_writer import Wanted  # noqa: PLC0415

    drawn = draw_config(path, Wanted(), triton=None, argv=(), environ=environ)
    if drawn.text is None:
        raise CannotExamineError(f"{path}: no config.pbtxt can serve it: {'; '.join(drawn.reasons)}")
    return drawn.text
