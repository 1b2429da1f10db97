"""Job ``verify``: load the program without its verifier, list every violation, then ask the verifier itself.

The verifier's answer is part of the result: what it refuses and none of our rules names is a record too (G12).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.fault import failure
from aotidoctor.model.jobs import Job, UserCode, Verify
from aotidoctor.model.user_function import user_function
from aotidoctor.program.signature import check_signature
from aotidoctor.program.symbols import check_symbols
from aotidoctor.program.values import check_devices, check_dtypes
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.setup_module import load_setup
from aotidoctor.worker.verify.ahead_operators import check_operators, check_shims
from aotidoctor.worker.verify.ahead_specialized import check_specialized
from aotidoctor.worker.verify.graph import check_graph
from aotidoctor.worker.verify.load import Loaded, load_programs
from aotidoctor.worker.verify.records import Records, first_line
from aotidoctor.worker.verify.signature import check_output_node, signature
from aotidoctor.worker.verify.state import check_state
from aotidoctor.worker.verify.values import nameless, places, ranges, values


def verify(payload: Verify, channel: Channel) -> dict[str, Any]:
    """``payload.program`` is an archive, or ``module.py:function`` that returns a program.

    ``programs`` are the fields of ``JudgedProgram``.
    """
    load_setup(payload, channel)
    channel.enter("load")
    records = Records()
    loaded = _load(payload.program, records, channel)
    channel.enter("judge")
    found: list[dict[str, Any]] = []
    for at, item in enumerate(loaded):
        mine = records if at == 0 else Records()
        found.append(judge(item, mine, payload.dynamic_shapes, tell=partial(_tell, channel, tuple(found))))
    return {"programs": found}


def _tell(channel: Channel, known: tuple[dict[str, Any], ...], partial_result: dict[str, Any]) -> None:
    channel.put(programs=[*known, partial_result])


def _load(spec: str, records: Records, channel: Channel) -> list[Loaded]:
    if (named := user_function(spec)) is not None:
        path, function = named
        program = getattr(load_setup(Job(code=UserCode(setup=path)), channel), function)()
        return [Loaded(name=function, program=program, verifiers=[kind() for kind in program.verifiers])]
    return load_programs(Path(channel.user_cwd / spec), records)


def judge(
    loaded: Loaded, records: Records, declared: Any = None, *, tell: Callable[[dict[str, Any]], object] | None = None
) -> dict[str, Any]:
    """Everything that can be said of one program. ``tell`` gets what is known before the part that may take long."""
    result: dict[str, Any] = {"name": loaded.name, "problem": loaded.problem, "verifier": "not-asked", "skipped": {}}
    program = loaded.program
    if program is not None:
        _guarded("G", lambda: check_graph(program, loaded.verifiers, records), result)
        _guarded("S", lambda: check_signature(signature(program), records), result)
        _guarded("S", lambda: check_output_node(program, records), result)
        if loaded.dialect_known:
            _ask_verifier(program, loaded.verifiers, records, result)
        _look_ahead(program, loaded.missing, declared, records, result)
        if loaded.missing or _lacks(records, "no-fake"):
            result["skipped"]["A02"] = "operators that cannot be traced: the program cannot be decomposed"
        elif records.broken():
            result["skipped"]["A02"] = "the program breaks rules of its verifier, and is not decomposed"
        else:
            if tell is not None:
                unfinished = {**result["skipped"], "A02": "decomposing the program did not finish"}
                tell({**result, "skipped": unfinished, "records": records.items, "cut": records.cut()})
            _guarded("A02", lambda: _check_shims(program, records, result), result)
    return result | {"records": records.items, "cut": records.cut()}


def _check_shims(program: Any, records: Records, result: dict[str, Any]) -> None:
    problem = check_shims(program, records)
    if problem is not None:
        result["skipped"]["A02"] = f"torch cannot decompose the program here: {problem}"


def _lacks(records: Records, kind: str) -> bool:
    return any(item.kind == kind for item in records.items)


def _look_ahead(program: Any, missing: list[str], declared: Any, records: Records, result: dict[str, Any]) -> None:
    _guarded("A01", lambda: _check_values(program, records), result)
    _guarded("A03", lambda: check_operators(program, missing, records), result)
    _guarded("A04", lambda: check_symbols(ranges(program), places(program), list(values(program)), records), result)
    _guarded("A08", lambda: check_state(program, records), result)

    def specialized() -> None:
        result["unknown_inputs"] = check_specialized(program, declared, records)

    _guarded("A05", specialized, result)


def _check_values(program: Any, records: Records) -> None:
    everything, said = list(values(program)), signature(program)
    pairs = zip(said.placeholders, said.inputs, strict=False)
    check_devices(everything, records)
    check_dtypes(everything, {place.name for place, spec in pairs if spec.kind == "user_input"}, nameless(), records)


def _guarded(what: str, check: Callable[[], object], result: dict[str, Any]) -> None:
    """A program that breaks one rule may break our own assumptions as well: that costs the one check."""
    try:
        check()
    except Exception:
        result["skipped"][what] = failure(3)


def _ask_verifier(program: Any, verifiers: list[Any], records: Records, result: dict[str, Any]) -> None:
    result["verifier"] = "passes"
    for verifier in verifiers:
        try:
            type(verifier)().check(program)
        except Exception as error:  # noqa: PERF203 - each verifier has its own answer
            result["verifier"] = "refuses"
            result["verifier_says"] = f"{type(error).__name__}: {first_line(error)}"
            if not records.broken():
                records.add(
                    "G12",
                    "verifier-refuses",
                    observed=result["verifier_says"],
                    expected=f"what dialect {verifier.dialect} allows",
                    dialect=verifier.dialect,
                )
            return
