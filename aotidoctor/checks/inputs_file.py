"""The inputs file cannot be read as inputs.

What it does
    Reports why the file given with --inputs was refused: it does not exist (inputs-file-missing), is damaged
    (inputs-file-corrupt), can only be read by executing code from it (inputs-file-unsafe), or does not contain inputs
    but, for example, a state dict (inputs-file-format).

Why it matters
    Without inputs nothing can be compared, and a pickle that needs foreign globals may run any code when it is loaded.

Example:
    sample.pt: observed the global os.system, expected tensors and plain containers

When it is wrong
    Your own file is also refused if it needs custom classes: --trust-pickle reads it (and executes it).
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource

FIND = Finder("AD-IN-001", "inputs_file")


def run(case: Case) -> Findings:
    """Turn the reader's error into a finding."""
    error = case.inputs_error
    if error is None:
        return () if case.inputs is not None else FIND.unchecked("no inputs were given (--inputs or --generate)")
    if error.kind == "unreadable":
        # What it holds is not known, and the report says why it cannot be examined.
        return FIND.unchecked(str(error))
    return FIND.error(
        error.kind,
        error.subject,
        observed=error.observed or str(error),
        expected=error.expected or "tensors in tuples, lists and dicts",
        message=str(error),
        source=FileSource(file=case.inputs_path) if case.inputs_path else None,
        facts={"cause": error.cause},
    )


CHECK = FIND.check(run, cause="inputs-file-format")
