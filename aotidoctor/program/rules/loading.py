"""Rules about faults that prevent a program from being loaded."""

from __future__ import annotations

from aotidoctor.model.evidence import ExportRule, error_severities

RULES: tuple[ExportRule, ...] = (
    ExportRule(
        code="VERIFY-L01",
        name="not_loadable",
        severities=error_severities("json", "node", "program"),
        page="""The program cannot be rebuilt from its archive.

What it does
    Rebuilds the program with the installed torch, without its verifier.

Why it matters
    torch.export.load fails in the same way. Rules that need the graph are not checked by the child; the archive itself
    is still checked.

Example:
    add: observed SerializeError: ..., expected a program that this torch can rebuild

When it is wrong
    The program was saved by a newer torch, or its inputs use a class that --setup must register with pytree.
""",
    ),
    ExportRule(
        code="VERIFY-L02",
        name="operator_missing",
        severities=error_severities("operator-missing"),
        names_target=True,
        page="""An operator of the program is not registered here.

What it does
    Looks up every operator that the archive names, and lists all that are missing. Each is then declared as the archive
    shows it, so that the rest can be checked.

Why it matters
    torch.export.load fails at the first: We failed to resolve ... to an operator.

Example:
    zoo::scale: observed operator zoo::scale is not registered in this process

When it is wrong
    Register it: --setup ops.py, or --custom-op-library libops.so.
""",
    ),
    ExportRule(
        code="VERIFY-L03",
        name="parts_missing",
        severities=error_severities("weights", "constants", "sample-inputs"),
        names_target=True,
        page="""Weights, constants or sample inputs are missing from the archive.

What it does
    Reads each part separately, and continues without the missing ones.

Why it matters
    torch.export.load fails.

Example:
    weights: observed AssertionError: data/weights/model_weights_config.json not found in PT2 archive

When it is wrong
    Archives of torch 2.6 and earlier have a different structure, and torch reads them as a whole.
""",
    ),
    ExportRule(
        code="VERIFY-L04",
        name="schema_version",
        title="the program was saved in a different version of the format",
        severities=error_severities("schema-version"),
        page="""The program was saved in a different version of the format.

What it does
    Compares the major version of the archive's schema with that of the installed torch, then rebuilds the program
    anyway.

Why it matters
    torch.export.load refuses it.

Example:
    observed Serialized schema version 7.1 does not match our current schema version 8.16

When it is wrong
    Verify with the torch that made the program, or export it again.
""",
    ),
    ExportRule(
        code="VERIFY-L06",
        name="setup_raised",
        severities=error_severities("setup"),
        names_target=True,
        page="""A file given with --setup or --custom-op-library could not be loaded.

What it does
    Loads operator libraries, then the setup file, before the program.

Why it matters
    Operators and classes of the program are not registered, so it cannot be rebuilt.

Example:
    ops.py: observed ModuleNotFoundError: No module named 'my_ops', expected a setup file that can be imported

When it is wrong
    The child's sys.path contains only this interpreter's packages and the folder of the setup file: an import that
    needs another path fails there.
""",
    ),
    ExportRule(
        code="VERIFY-L07",
        name="function_raised",
        severities=error_severities("function", "model", "export"),
        names_target=True,
        page="""The function that makes the program raised.

What it does
    Calls the function of `module.py:function`. If torch.export raised in it, calls the model with the same inputs in
    plain PyTorch: what raises there as well is the model's own error (kind model), else torch.export refuses the model
    (kind export). What it raised elsewhere is the function's (kind function).

Why it matters
    There is no program. No option of the exporter or the compiler helps against an error of the model.

Example:
    conv.py:7, in forward: observed RuntimeError: expected input[1, 5, 8, 8] to have 3 channels, but got 5 channels

When it is wrong
    A model that behaves differently at its second call raises for another reason.
""",
    ),
)
