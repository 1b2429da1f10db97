"""A plain value was fixed at export; the call passes a different value, which the package ignores.

What it does
    With an exported program as --reference, or a stamp in the package (`aotidoctor stamp`), it compares each plain
    value of the call with the one recorded at export. Without either it can only note that the value has no effect.

Why it matters
    k=5 gives the answer for k=3 without any message: the value is part of the compiled code.

Example:
    args[1]: observed 5, expected 3 (fixed at export)

When it is wrong
    The package itself does not record the values; only the exported program and a stamp do.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import missing_reason, overlay_of
from aotidoctor.localize.call_overlay import describe_plain
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource
from aotidoctor.model.inputs import PlainValue

FIND = Finder("AD-IN-006", "input_constant_changed")


def run(case: Case) -> Observations:
    """One finding per plain value of the call."""
    overlay = overlay_of(case)
    if overlay is None:
        yield FIND.unchecked(missing_reason(case))
        return
    known, source = case.reference, None
    if known is not None and case.options.reference:
        source = FileSource(file=case.options.reference)
    elif case.stamp is not None:
        source = FileSource(file=case.stamp.member)
    if known is None and case.stamp is not None and case.stamp.stamp is not None:
        known = case.stamp.stamp.facts
    for pair in overlay.pairs:
        value = pair.value
        if pair.spec.kind != "constant" or not isinstance(value, PlainValue):
            continue
        baked = known.constant_inputs.get(pair.spec.path) if known is not None else None
        if case.artifact.precompiled is not None and (function := case.artifact.precompiled.function) is not None:
            baked = function.baked.get(pair.spec.generated_name or "")
        if baked is None:
            text = describe_plain(value)
            yield FIND.info(
                "ignored",
                pair.path,
                observed=text,
                expected="the value at export (the package does not record it)",
                message=f"{pair.path}: {text} has no effect: the value is fixed in the compiled code",
                facts={"path": pair.path},
            )
        elif baked != value.text:
            facts = {"path": pair.path, "baked": baked, "given": value.text}
            expected = f"{baked} (fixed at export)"
            yield FIND.error("changed", pair.path, observed=value.text, expected=expected, source=source, facts=facts)


CHECK = FIND.check(run, needs=("inputs_file", "input_kwargs", "input_tree", "input_order"), facts=("call-spec",))
