"""What calling an init library showed."""

from __future__ import annotations

from aotidoctor.model.answers import told
from aotidoctor.model.answers.made import HookCalled
from aotidoctor.model.evidence import Evidence, FileSource
from aotidoctor.model.run import Outcome
from aotidoctor.model.serving import Consequence, ServedModel
from aotidoctor.model.serving_hook import INIT, PARAMETER
from aotidoctor.triton.init_parameter import init_library
from aotidoctor.triton.rehearsal_words import ending_words

CODE = "TRITON-R46"
_STAGES = {
    "dlopen": ("load", "the model does not load: the library cannot be loaded"),
    "symbols": ("load", "the model does not load: the library cannot be loaded"),
    "init": ("init", f"the server crashes or hangs while the model loads, in {INIT}"),
    "release": ("release", "the server crashes or hangs while the model is unloaded, in the library's release"),
    "dlclose": ("unload", "the server crashes or hangs while the model is unloaded, in the library's destructors"),
}


def read_hook_run(model: ServedModel, outcome: Outcome) -> Evidence:
    """One finding. A library without the function that cleans up has been told of by the rule; NULL is no failure."""
    called = told(HookCalled, outcome.result)
    if outcome.succeeded and INIT in called.found:
        gave = "NULL, which may mean that there was nothing to load" if called.handle == 0 else "a handle"
        released = " and the handle was released" if called.released else ""
        words = f"{INIT} ran here and gave {gave}{released}."
        return _finding(model, outcome, "hook-ran", Consequence.NOTE, words, observed="ran")
    if outcome.succeeded:
        words = f"the model does not load: the library has no {INIT}."
        return _finding(model, outcome, "hook-no-init", Consequence.FAILS_TO_LOAD, words, observed="no function")
    how = ending_words(outcome)
    kind, words = _STAGES.get(outcome.stage, ("not-run", "the library was not tried"))
    consequence = Consequence.NOTE if kind == "not-run" else Consequence.FAILS_TO_LOAD
    return _finding(model, outcome, f"hook-{kind}", consequence, f"{words} ({how}).", observed=how)


def _finding(
    model: ServedModel,
    outcome: Outcome,
    kind: str,
    consequence: Consequence,
    message: str,
    *,
    observed: str,
) -> Evidence:
    given = init_library(model)
    at = None if given is None else (given.value or given.key).at
    quiet = consequence is Consequence.NOTE
    return Evidence(
        code=CODE,
        kind=kind,
        severity=consequence.severity,
        subject=f"{model.name}: {PARAMETER}",
        observed=observed,
        expected="both functions to return",
        message=message,
        source=FileSource(file=model.config_path, line=at.line if at else None) if model.config_path else None,
        facts={
            "consequence": consequence.value,
            "release": model.release.name,
            "remedy": "" if quiet else "run the library's functions under a debugger, in this folder",
            "model": model.name,
            "run": outcome.id,
        },
    )
