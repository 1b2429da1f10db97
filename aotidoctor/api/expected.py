"""``contract``: what the compiled code expects of its caller and of its host, as a value."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, TextIO, cast

from aotidoctor.api.arguments import PathLike, path, text
from aotidoctor.model import contract as records
from aotidoctor.model.errors import CannotExamineError, LimitReachedError
from aotidoctor.model.evidence import NotChecked
from aotidoctor.triage.open_case import open_package

if TYPE_CHECKING:
    from aotidoctor.model.json_types import JsonObject


class Contract(records.Contract):
    """What the compiled code expects: ``leaves`` of the call, ``outputs``, ``constants``, ``symbols``, ``needs``.

    Of a leaf: ``path`` (``kwargs['ids']``), ``dtype`` (``int64``), ``dims`` (each ``static`` or ``min``..``max``),
    ``strides`` in elements, ``device_type``; None where the package does not say. ``unread`` and ``problems`` say
    what was not understood.

    >>> [(leaf.path, leaf.dtype) for leaf in aotidoctor.contract("model.pt2").leaves][-1]
    ("kwargs['ids']", 'int64')
    """

    __slots__ = ()

    def show(self, *, file: TextIO | None = None) -> None:
        """Print inputs and outputs with what they were compiled for, to ``file`` or ``sys.stdout``.

        >>> aotidoctor.contract("model.pt2").show()
        args[0]           float32[s23:2..64, 16] (16, 1) cpu
        args[1]['scale']  float32[16] (1) cpu
        args[1]['shift']  float32[16] (1) cpu
        kwargs['ids']     int64[s23:2..64] (1) cpu
        result            float32[s23, 4] cpu
        """
        stream = file if file is not None else sys.stdout
        stream.write(f"{self._lines()}\n")
        stream.flush()

    def to_dict(self, *, redact: bool = True) -> JsonObject:
        """The contract as the JSON report has it, whole, as plain values.

        >>> aotidoctor.contract("model.pt2").to_dict()["n_inputs"]
        4
        """
        # Who only reads the fields needs no format.
        from aotidoctor.reports.json.case import contract as document  # noqa: PLC0415
        from aotidoctor.reports.json.render import dumps  # noqa: PLC0415
        from aotidoctor.reports.redact import redacted  # noqa: PLC0415 - for who looks at it

        found = redacted(self, os.environ) if redact else self
        return cast("JsonObject", json.loads(dumps(document(found, whole=True) or {})))

    def __repr__(self) -> str:
        """How many inputs and outputs."""
        return f"<aotidoctor.Contract {len(self.leaves)} inputs, {len(self.outputs)} outputs>"

    def _repr_html_(self) -> str:
        from aotidoctor.reports.notebook import contract_piece  # noqa: PLC0415 - for a notebook only

        return contract_piece(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        return {"text/plain": self._lines(), "text/html": self._repr_html_()}

    def _lines(self) -> str:
        from aotidoctor.reports.notebook import contract_lines  # noqa: PLC0415 - for who looks at it

        return contract_lines(self)


def contract(package: PathLike, *, model_name: str | None = None) -> Contract:
    """What the compiled code of ``package`` expects. Executes nothing, and needs no torch.

    Raises:
        ArgumentError: a value of the wrong type, with ``where``, ``observed`` and ``expected``.
        CannotExamineError: no such file, or no contract can be read from it; the message says why.

    >>> aotidoctor.contract("model.pt2")
    <aotidoctor.Contract 4 inputs, 1 outputs>
    """
    place = path("package", package)
    name = None if model_name is None else text("model_name", model_name)
    failed: list[NotChecked] = []
    try:
        artifact, model, found = open_package(place, name, failed)
    except LimitReachedError as reached:
        raise CannotExamineError(f"{place}: {reached}") from reached
    if found is None:
        reason = failed[0].reason if failed else artifact.problem
        named = f"no model {name!r}" if model is None and name is not None and artifact.models else artifact.kind.value
        raise CannotExamineError(f"{place}: observed {reason or named}, expected a package with a contract")
    return Contract(**{item.name: getattr(found, item.name) for item in fields(found)})
