"""Draw the map of a package: from its files, and with inputs from runs in a child (``aotidoctor map``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.commands.diagnose_package import early_modules, runner_or_new
from aotidoctor.commands.map.hints import find_hints
from aotidoctor.commands.map.static_map import draw_static_map
from aotidoctor.commands.map.timed_calls import measure_calls
from aotidoctor.interruption import interruptible
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.package_map import PackageMap
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import unread_reason
from aotidoctor.triage.state import Session

if TYPE_CHECKING:
    from aotidoctor.runner.runner import Runner

_GPU = "calls of a package for a GPU are only queued by the code that is traced: they were not timed"


def draw_map(
    package: str, inputs: str | None, options: Options, *, environ: Mapping[str, str], runner: Runner | None = None
) -> PackageMap:
    """The map of one call; without inputs nothing is executed.

    Raises:
        CannotExamineError: there is nothing to map, or the inputs or the reference cannot be read.
    """
    open_case.check_reference(options.reference)
    with interruptible():
        case, _ = open_case.open_case(package, inputs, options, environ)
        if (reason := unread_reason(case)) is not None:
            raise CannotExamineError(reason)
        open_case.refuse_damaged(case.artifact, executed=case.inputs is not None)
        if case.artifact.problem is not None:
            raise CannotExamineError(f"{package}: {case.artifact.problem}")
        if case.inputs_error is not None:
            raise CannotExamineError(str(case.inputs_error))
        drawn = draw_static_map(case)
    if case.inputs is None or drawn.device != "cpu":
        notes = drawn.notes if case.inputs is None else (*drawn.notes, _GPU)
        return replace(drawn, notes=notes, hints=find_hints(case, drawn))
    deadline = None if options.budget is None else time.monotonic() + options.budget
    with runner_or_new(runner, environ, early_modules(options, package)) as runs:
        session = Session(case=case, runner=runs, deadline=deadline)
        try:
            with interruptible():
                drawn = measure_calls(session, drawn)
        except KeyboardInterrupt:
            drawn = replace(drawn, notes=(*drawn.notes, "interrupted: what had been measured until then is missing"))
        finally:
            runs.forget()
    return replace(drawn, hints=find_hints(case, drawn))
