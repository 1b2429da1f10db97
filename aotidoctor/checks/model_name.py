"""The package has no model with the requested name.

What it does
    Compares --model-name, or the loader's default ``model``, with the models of the package.

Why it matters
    ``aoti_load_package(path)`` requests a model called ``model``. A package that was made with different names loads
    only if the name is given; otherwise the loader's message starts with "Failed to find a generated cpp file or so
    file".

Example:
    model: observed models decoder, encoder, expected a model called model

When it is wrong
    The failing program may already pass a model name; pass the same one with --model-name.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member, is_package
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import list_names

FIND = Finder("AD-ART-011", "model_name")
DEFAULT = "model"


def run(case: Case) -> Findings:
    """At most one finding."""
    program = case.artifact.executorch
    if not is_package(case) and program is None:
        return FIND.unchecked(NO_PACKAGE)
    names = [model.name for model in case.artifact.models]
    # A method is named with each call.
    wanted = case.options.model_name or (DEFAULT if program is None else next(iter(names), DEFAULT))
    if not names or wanted in names:
        return None
    choose = case.options.model_name is None and len(names) > 1
    return FIND.error(
        "several" if choose else "not-found",
        wanted,
        observed=f"models {list_names(names)}" if len(names) > 1 else f"only {names[0]!r}",
        expected=f"a model called {wanted}",
        message=f"the package has no model called {wanted}; it has {list_names(names)}: "
        f"torch._inductor.package.load_package(path, {names[0]!r}) loads one; aoti_load_package takes no name",
        source=at_member(case, None),
        facts={"wanted": wanted, "models": tuple(names), "suggestion": names[0]},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
