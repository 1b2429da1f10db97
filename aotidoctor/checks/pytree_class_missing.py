"""The call spec names container classes of a library, which must be registered before the package is called.

What it does
    Lists the classes of inputs and outputs in the call spec that PyTorch does not register itself, and checks whether
    --setup is given. Only a run shows whether the setup registers them.

Why it matters
    Output classes and caches of libraries (``ModelOutput``, ``DynamicCache``) are rebuilt by name. If the class was not
    registered, usually by importing its library, the call fails with "Deserializing ... in pytree is not registered".

Example:
    zoo_out.Answer: observed no --setup, expected import zoo_out

When it is wrong
    Your program may import the library anyway; name that import in --setup. Without a run this is only a warning. Some
    libraries register a class in a different module from the one that defines it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import at_member
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import list_names

FIND = Finder("AD-LOAD-007", "pytree_class_missing")
# Names of types as torch writes them; a context may hold the same key, but in escaped quotes.
_TYPE = re.compile(r'"type": ?"([A-Za-z_][\w.]{0,300})"')
# Classes that an import alone does not register, and the functions that do.
_EXECUTORCH = "transformers.integrations.executorch"
_REGISTRARS = {"transformers.cache_utils.DynamicCache": f"{_EXECUTORCH}:register_dynamic_cache_export_support"}
# The modules of classes that importing torch registers.
_OWN = ("builtins", "collections", "torch")


def run(case: Case) -> Findings:
    """At most one finding, about all classes."""
    if case.contract is None:
        return FIND.unchecked("the contract is not known")
    names = foreign_classes(case.contract)
    if not names:
        return None
    state = FIND.info if case.options.setup else FIND.warn
    steps = registrations(names)
    lines = tuple(import_line(step) for step in steps)
    return state(
        "needs",
        names[0],
        observed=case.options.setup or "no --setup",
        expected="; ".join(lines),
        message=f"the call spec names {list_names(names)}: the calling process must have registered the class",
        source=at_member(case, case.contract.member),
        facts={"classes": tuple(names), "registrations": steps, "register": "\n".join(lines)},
    )


def foreign_classes(contract: ModelContract) -> list[str]:
    """Names of the classes in both specs that importing torch does not register, in order, each once."""
    names = [name for spec in (contract.in_spec, contract.out_spec) for name in _TYPE.findall(spec or "")]
    return [name for name in dict.fromkeys(names) if name.partition(".")[0] not in _OWN and "." in name]


def registrations(names: Sequence[str]) -> tuple[str, ...]:
    """The steps that register the classes, in order, each once: ``module`` to import or ``module:function`` to call."""
    return tuple(dict.fromkeys(_REGISTRARS.get(name) or name.rpartition(".")[0] for name in names))


def import_line(registration: str) -> str:
    """A registration as a line of Python."""
    module, _, function = registration.partition(":")
    return f"from {module} import {function}; {function}()" if function else f"import {module}"


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
