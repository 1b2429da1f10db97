"""What of a wrapper was read as far as it went, but not in full: parts that do not fit together.

A statement may have the form of a known one and yet say less than is needed: a call whose tensors cannot be told, a
kernel without a launch, a check of an input that nobody knows. That is noted beside the statements that fit no rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.readers.contract.body_records import Body
from aotidoctor.readers.contract.checks_section import Checks
from aotidoctor.readers.contract.constructor import Constructor
from aotidoctor.readers.contract.kernels import is_complete, kind_of
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.symbols import SymbolTable, known
from aotidoctor.readers.contract.text import Wrapper

_EXTERN = re.compile(r'extern "C"\s+(?:[\w*]+\s+)+?(\w+)\(')


class Declared:
    """Functions that the sources declare as ``extern "C"``, looked up only when a call has an unfamiliar name."""

    def __init__(self, model: ModelEntry) -> None:
        self._model = model
        self._names: frozenset[str] | None = None

    def __contains__(self, name: object) -> bool:
        """Whether a source declares ``name``."""
        if self._names is None:
            texts = (self._model.wrapper_cpp or "", *self._model.kernel_sources.values())
            self._names = frozenset(found[1] for text in texts for found in _EXTERN.finditer(text))
        return name in self._names


def note_incomplete(
    wrapper: Wrapper,
    constructor: Constructor,
    checks: Checks,
    body: Body,
    *,
    symbols: SymbolTable,
    launches: Mapping[str, Launch],
) -> None:
    """Note it in the losses of the part concerned."""
    if not wrapper.closed:
        body.losses.note("statement", wrapper.body.line, "the end of run_impl is not marked")
    _note_inputs(wrapper, constructor, checks, body)
    for call in body.calls:
        if not is_complete(call, launches):
            fact = "launch" if kind_of(call) == "triton" else "call"
            body.losses.note(fact, call.line, f"{call.function}({call.arguments})")
    for item in body.assertions:
        if item.operator == "input" and any(known(symbols.read(size)) is None for size in item.sizes):
            body.losses.note("symbol", item.line, f"{item.name}: {{{', '.join(item.sizes)}}}")


def _note_inputs(wrapper: Wrapper, constructor: Constructor, checks: Checks, body: Body) -> None:
    """Each input has a name, a check where there are any, and is unpacked. Before 2.7 there are no checks."""
    names = set(constructor.input_names)
    if len(constructor.input_names) != constructor.n_inputs:
        constructor.losses.note("input", 0, f"{len(names)} names for {constructor.n_inputs} inputs")
    checked = {name for name, check in checks.inputs.items() if check.line is not None}
    asked = bool(checks.inputs) or "__check_inputs_outputs(" in wrapper.body.text
    for name in sorted(names ^ checked if asked else ()):
        checks.losses.note("input-check", 0, f"{name}: its check and its name do not belong together")
    for name in sorted(names - body.unpacked.keys() if body.unpacked else ()):
        body.losses.note("input", 0, f"{name}: it is not unpacked")
