"""The weights of an ExecuTorch program are in no data file that is given.

What it does
    Lists the keys of the data that the methods of a ``.pte`` need and that it does not hold, and looks for each in the
    ``.ptd`` files of ``--data``. Tensors whose dtype a file states are looked through for NaN: 16 MiB, all with
    ``--verify-data``.

Why it matters
    With the ``.ptd`` of another model, or with none, ExecuTorch runs code of AOTInductor without an error and without
    weights. XNNPACK's delegate ends the process.

Example:
    275cfd4a_weights_blob: observed other_model.ptd without this key, expected the weights of the program

When it is wrong
    A program that hands the data over from memory needs no file. Without ``--data`` nothing is found.
"""

from __future__ import annotations

import shlex

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FileSource, list_names, plural, shorten
from aotidoctor.model.other_artifacts import ExecutorchFile, NamedBlob

FIND = Finder("AD-PTE-001", "executorch_data")


def run(case: Case) -> Findings:
    """At most one finding about missing data, and one per tensor with NaN."""
    program = case.artifact.executorch
    if program is None or not program.program:
        return FIND.unchecked("--data is for an ExecuTorch program (.pte) only") if case.options.data else []
    if program.problem is not None and not program.methods:
        return FIND.unchecked("the methods of the program cannot be read")
    needed = program.needed_data
    found = [_not_a_number(item.path, blob) for item in (program, *case.data) for blob in item.named if blob.nan]
    if not needed:
        return found
    names = list_names([shorten(key, 90) for key in needed], 3)
    if not case.options.data:
        what = f"the data that the program needs and does not hold ({names}) were not looked for"
        return FIND.unchecked(f"{what}: add --data with the .ptd file that the export wrote beside it")
    # What cannot be read is another finding.
    unread = [item for item in case.data if item.problem is not None and not item.named]
    if unread or len(case.data) < len(case.options.data):
        return FIND.unchecked(f"{list_names([item.path for item in unread]) or 'the data'}: the keys cannot be read")
    missing = [key for key in needed if not any(key in item.keys for item in case.data)]
    if not missing:
        return found
    files = list_names([item.path for item in case.data])
    which = f"with only {len(needed) - len(missing)} of" if len(missing) < len(needed) else "without"
    observed = f"{files} {which} the {plural(len(needed), 'key')} that the program needs"
    return [
        *found,
        FIND.error(
            "no-weights",
            shorten(missing[0], 90),
            observed=observed,
            expected="the .ptd file that the export of this program wrote",
            message=f"{observed}; missing: {list_names([shorten(key, 90) for key in missing], 3)}; {_outcome(program)}",
            source=FileSource(file=program.path),
            facts={
                "missing": tuple(missing[:50]),
                "needed": len(needed),
                "outcome": _outcome(program),
                "step": "Give ExecuTorch the .ptd file that the export of this program wrote.",
                "remedy": f"aotidoctor check {shlex.quote(program.path)} --data the.ptd  # that of the same export",
            },
        ),
    ]


def _not_a_number(path: str, blob: NamedBlob) -> Evidence:
    return FIND.warn(
        "nan",
        shorten(blob.key, 90),
        observed=f"{blob.nan} NaN in {blob.size:,} bytes of {blob.tensor.dtype if blob.tensor is not None else '?'}",
        expected="finite weights",
        source=FileSource(file=path),
        facts={"key": blob.key, "nan": blob.nan},
    )


def _not_read(case: Case) -> str | None:
    """Weights of AOTInductor code have no dtypes in any of the files."""
    keys = {delegate.weights_key for item in (case.artifact.executorch,) if item for delegate in item.delegates}
    named = [blob for item in case.data for blob in item.named if blob.key in keys and blob.size]
    if not named:
        return None
    count = plural(sum(blob.size for blob in named), "byte")
    return f"{count} of weights of AOTInductor code: no file has their dtypes, so NaN is not looked for"


def _outcome(program: ExecutorchFile) -> str:
    """What ExecuTorch does without the data."""
    if any(delegate.weights_key is not None for delegate in program.delegates):
        return "ExecuTorch runs the code of AOTInductor nevertheless, without weights and without an error"
    if any(delegate.other_keys for delegate in program.delegates):
        return "ExecuTorch refuses the program or its process ends in SIGSEGV"
    return "ExecuTorch refuses to load the method"


CHECK = FIND.check(run, cause="weights-not-loaded", needs=("artifact_missing", "artifact_wrong_kind"), partly=_not_read)
