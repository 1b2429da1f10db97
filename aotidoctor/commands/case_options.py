"""The options of a case: what each takes, and its words in help. The command line and the library read this table.

A kind is ``text``, ``path``, ``paths``, ``flag``, ``count``, ``seconds``, ``bytes``, ``tolerances`` (one for each
output), ``probes``, ``values``, ``protocol`` or ``emulate``. Defaults are those of ``Options``.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.case import FIELDS, Options
from aotidoctor.model.record import record


@record(kw_only=False)
class CaseOption:
    """One option; ``panel`` is its heading in help. A count is between ``least`` and ``most``."""

    kind: str
    panel: str
    help: str
    metavar: str | None = None
    least: int = 1
    most: int | None = None


# Headings in help.
CASE, REFERENCE, LIMITS, PROBES = "Case", "Reference", "Limits", "Probes"

# In the order in which help shows them. What a seed of torch and a thread count of OpenMP can hold is bounded: beyond
# that the child would fail, not the package.
CASE_OPTIONS: Mapping[str, CaseOption] = {
    "generate": CaseOption("flag", CASE, "Generate inputs from the contract."),
    "model_name": CaseOption("text", CASE, "Name of the model inside the package.", "NAME"),
    "device": CaseOption("text", CASE, "Device to load on: cpu, cuda or cuda:1.", "DEVICE"),
    "setup": CaseOption("path", CASE, "Python file imported first in the child: registers custom ops.", "FILE"),
    "custom_op_library": CaseOption("paths", CASE, "Library of custom ops to load first; repeatable.", "LIB"),
    "reference": CaseOption(
        "path",
        REFERENCE,
        "exported.pt2 to compare with, or file.py:function: called as the package is, or returns a program.",
        "FILE",
    ),
    "model": CaseOption(
        "path",
        REFERENCE,
        "The model: called as the package is, or returns a model or (model, args). Shows whose fault it is.",
        "FILE.py:FUNCTION",
    ),
    "host": CaseOption(
        "path", CASE, "Check against a different machine: a file of `env --save`, or a built-in name.", "PROFILE"
    ),
    "weights": CaseOption(
        "paths",
        CASE,
        "Weights for the package: .safetensors, or a state dict saved by torch.save; a second file is loaded next.",
        "FILE",
    ),
    "weight_protocol": CaseOption(
        "protocol", CASE, "How the second weights replace the first: by a swap, or copied in place by their owner."
    ),
    "data": CaseOption("paths", CASE, "Data file (.ptd) of an ExecuTorch program; repeatable.", "FILE"),
    "verify_data": CaseOption(
        "flag", CASE, "Compare the checksums of all members, or the sha256 of all ExecuTorch data, however large."
    ),
    "rtol": CaseOption(
        "tolerances",
        REFERENCE,
        "Relative tolerance, for output OUT (result[0] or 0) or all; repeatable.",
        "[OUT:]VALUE",
    ),
    "atol": CaseOption(
        "tolerances", REFERENCE, "Absolute tolerance per output. Default: a few ulps of the dtype.", "[OUT:]VALUE"
    ),
    "trust_pickle": CaseOption("flag", CASE, "Unpickle the inputs file even if this runs code from it."),
    "seed": CaseOption("count", CASE, "Seed of --generate.", "N", least=0, most=2**63 - 1),
    "values": CaseOption("values", CASE, "What the report has of values: ranges, or only digests of the outputs."),
    "timeout": CaseOption("seconds", LIMITS, "Time limit of one child run.", "TIME"),
    "budget": CaseOption("seconds", LIMITS, "Time limit of the whole command.", "TIME"),
    "repeat": CaseOption("count", LIMITS, "Number of plain runs, each in a fresh process.", "N"),
    "jobs": CaseOption("count", LIMITS, "Number of child runs at a time.", "N"),
    "threads": CaseOption("count", LIMITS, "Number of threads to run with.", "N", most=2**15),
    "memory_limit": CaseOption("bytes", LIMITS, "Address-space limit of a child, such as 8G.", "SIZE"),
    "emulate": CaseOption(
        "emulate", PROBES, "Emulate a CUDA package on the CPU. auto: if no GPU can run it or explain the failure."
    ),
    "emulate_kernel": CaseOption(
        "text", PROBES, "Emulate, starting with this kernel, which a trace or core dump named.", "NAME"
    ),
    "probes": CaseOption("probes", PROBES, "Run only these probes.", "A,B"),
    "skip_probes": CaseOption("probes", PROBES, "Skip these probes.", "A,B"),
    "shrink": CaseOption("flag", PROBES, "Find the smallest inputs that still fail."),
}
_DEFAULTS = Options()


def option_words(given: Mapping[str, object]) -> tuple[str, ...]:
    """Write the options as words of the command line, for the command that a report shows."""
    found: list[str] = []
    for name, value in given.items():
        option = f"--{name.rstrip('_').replace('_', '-')}"
        is_default = name in CASE_OPTIONS and value == getattr(_DEFAULTS, FIELDS.get(name, name), None)
        if value is None or value is False or is_default:
            continue
        if value is True:
            found.append(option)
        elif isinstance(value, Mapping):
            found += [part for key, one in value.items() for part in (option, f"{key}:{one}")]
        elif isinstance(value, (tuple, list)) and name in ("probes", "skip_probes"):
            found += [option, ",".join(map(str, value))]
        elif isinstance(value, (tuple, list)):
            found += [part for one in value for part in (option, str(one))]
        else:
            found += [option, str(value)]
    return tuple(found)
