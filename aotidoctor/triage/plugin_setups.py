"""Setups of plugins: modules that every child imports before the package, each tried alone first.

One that raises, hangs or crashes would end every run in its own way, and look like a fault of the model: it is left out
and named.
"""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model import extensions
from aotidoctor.model.jobs import Job, UserCode
from aotidoctor.model.run import Exited, Outcome, Request
from aotidoctor.triage.session import Session

CODE = "AD-PLUGIN"
_LIMIT_S = 30.0


def admit(session: Session) -> None:
    """Put the setups that can be imported into the options of the case."""
    if session.runner is None:
        return
    good = []
    for module in extensions.current().setups:
        request = Request(
            probe="plugin_setup", job="setup_only", payload=Job(code=UserCode(imports=(module,))), timeout=_LIMIT_S
        )
        problem = _problem(session.runner.run(request))
        if problem is None:
            good.append(module)
        else:
            reason = f"the plugin cannot be used: {problem}"
            session.leave_out(CODE, f"setup {module}", reason)
    if good:
        options = replace(session.case.options, imports=tuple(good))
        session.case = replace(session.case, options=options)


def _problem(outcome: Outcome) -> str | None:
    if outcome.error is not None:
        return f"{outcome.error.type}: {outcome.error.message[:500]}"
    match outcome.ending:
        case Exited(done=True):
            return None
        case ending:
            return f"importing it ended in {type(ending).__name__}"
