"""Treatments of the call around the model: threads, model name, weights, temporary directory, device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.diagnosis.treat_plan import Plan, exported, found
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.json_types import JsonObject, JsonValue

_MISFITS = ("name", "dtype", "shape", "stride")


def model_name(case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """The only model there is. Which of several is meant, only the user knows."""
    names = [model.name for model in case.artifact.models]
    if len(names) != 1:
        return None
    return Plan(
        text=f"load the model called {names[0]!r}",
        steps=({"op": "model_name", "name": names[0]},),
        command=f"torch._inductor.package.load_package(path, model_name={names[0]!r})",
    )


def threads(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """As many threads as the narrowest kernel was compiled for."""
    baked = case.needs.baked_threads.values()
    facts = [item.facts.get("baked") for item in found(findings, "AD-HOST-010")]
    known = [number for number in (*baked, *facts) if isinstance(number, int) and number > 0]
    return _with_threads(min(known)) if known else None


def one_thread(_case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """No second thread, no race."""
    return _with_threads(1)


def _with_threads(number: int) -> Plan:
    plural = "thread" if number == 1 else "threads"
    return Plan(
        text=f"run with {number} {plural}",
        steps=({"op": "threads", "n": number},),
        command=f"torch.set_num_threads({number})",
    )


def load_weights(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The weights that lie in the package, or those of the exported program given as reference."""
    items = found(findings, "AD-LOAD-005", "missing") or found(findings, "AD-LOAD-002")
    if any(item.kind == "on-disk" for item in items):
        return Plan(
            text="load the weights that the package stores next to the code",
            steps=({"op": "load_weights", "from": "disk"},),
            command=(
                "from torch.export.pt2_archive._package import load_pt2\n"
                "model = load_pt2(path, load_weights_from_disk=True).aoti_runners['model']"
            ),
        )
    reference = exported(case)
    if not items:
        return None
    if reference is None:
        return _zeros(case, items)
    return Plan(
        text=f"load the weights of {reference}",
        steps=({"op": "load_weights", "from": reference},),
        command=(
            f"model.load_constants(torch.export.load({reference!r}).state_dict, "
            "check_full_update=True, user_managed=False)"
        ),
    )


def register_classes(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Import the modules that define the container classes, or call what registers them."""
    items = found(findings, "AD-LOAD-007", "needs")
    named = items[0].facts.get("registrations") if items else None
    if not isinstance(named, tuple) or not named:
        return None
    return Plan(
        text=f"import {', '.join(map(str, named))} first",
        steps=({"op": "import", "modules": [str(name) for name in named]},),
        command=str(items[0].facts.get("register") or ""),
    )


def _zeros(case: Case, items: Sequence[Evidence]) -> Plan | None:
    """Zeros for what is missing: they show whose absence ended the call, and are no remedy."""
    named = [item.facts.get("constants") for item in items if item.kind == "missing"]
    missing = {name for names in named if isinstance(names, tuple) for name in names}
    contract = case.contract
    if contract is None or contract.needs.device_type not in (None, "cpu"):
        return None
    wanted = [one for one in contract.constants if not one.from_folded]
    wanted = [one for one in wanted if not missing or one.fqn in missing]
    if not wanted or any(None in (one.dtype, one.shape) for one in wanted):
        return None
    constants: list[JsonValue] = [
        {"name": one.fqn, "dtype": one.dtype, "shape": [*(one.shape or ())]} for one in wanted
    ]
    return Plan(
        text=f"load zeros for {len(wanted)} missing constant{'s' if len(wanted) > 1 else ''}, to see the call return",
        steps=({"op": "fill_weights", "constants": constants},),
    )


def differing_weights(case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """The weights of the exported program in place of those in the package."""
    reference = exported(case)
    if reference is None:
        return None
    return Plan(text=f"load the weights of {reference}", steps=({"op": "load_weights", "from": reference},))


def fit_weights(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Weights as the code wants them: names it does not know left out, others cast or taken from the reference."""
    misfits = {kind: [item for item in found(findings, "AD-LOAD-005") if item.kind == kind] for kind in _MISFITS}
    names = {kind: [str(item.facts["constant"]) for item in items] for kind, items in misfits.items()}
    if not any(names.values()):
        return None
    reference = exported(case)
    if reference is not None:
        wrong = [*names["dtype"], *names["shape"], *names["stride"]]
        wanted = [one.fqn for one in case.contract.constants] if case.contract else []
        # A constant that was given under another name is missing under its own.
        take: list[JsonValue] = [*(wanted if names["name"] else wrong)]
        step: JsonObject = {"op": "fit_weights", "drop": [*names["name"]], "take": take, "from": reference}
        return Plan(text=f"load the weights of {reference} instead of those that do not fit", steps=(step,))
    if names["shape"] or any("tied_to" not in item.facts for item in misfits["name"]):
        return None
    return _fitted(names, {str(item.facts["constant"]): item.facts.get("expected_dtype") for item in misfits["dtype"]})


def _fitted(names: Mapping[str, Sequence[str]], dtypes: Mapping[str, FactValue]) -> Plan:
    """Without a reference: what can be done to the very tensors that were given."""
    step: JsonObject = {
        "op": "fit_weights",
        "drop": [*names["name"]],
        "cast": {name: str(dtype) for name, dtype in dtypes.items()},
        "contiguous": [*names["stride"]],
    }
    told = [f"cast {name} to {dtype}" for name, dtype in dtypes.items()]
    told += [f"leave out {name}" for name in names["name"]]
    told += [f"make {name} contiguous" for name in names["stride"]]
    return Plan(text="; ".join(told), steps=(step,))


def tmpdir(case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """A directory that exists, has room and allows execution; none where the loader does not ask for one."""
    if case.host.tmpdir is not None and case.host.tmpdir.fixed:
        return None
    return Plan(
        text="load with a temporary directory that can be used",
        steps=({"op": "tmpdir"},),
        command="export TMPDIR=/path/with/room",
    )


def headers(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The headers and libraries of the PyTorch of this host, for a package that names those of another one."""
    items = found(findings, "AD-HOST-007", "headers")
    if not items:
        return None
    return Plan(
        text="compile it with the headers and libraries of the PyTorch that is installed here",
        steps=({"op": "headers"},),
        command=str(items[0].facts.get("command") or ""),
    )


def clear_execstack(_case: Case, _findings: Sequence[Evidence]) -> Plan:
    """A copy of the package that does not ask for an executable stack."""
    return Plan(
        text="load a copy of the package without the flag for an executable stack",
        steps=({"op": "clear_execstack"},),
        command="aotidoctor fix execstack model.pt2 -o fixed.pt2",
    )


def global_libtorch(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The symbols of libtorch for a package that names no library of it."""
    items = found(findings, "AD-HOST-006", "unlinked")
    if not items:
        return None
    return Plan(
        text="make libtorch's symbols global before the package is loaded",
        steps=({"op": "global_libtorch"},),
        command=str(items[0].facts.get("command") or ""),
    )


def repack(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """A copy of the package in the layout of the compiler, with the members that are there."""
    # What the loader minds about the archive; its marks it does not ask for.
    if not any(
        item.kind in ("no-prefix", "mixed-prefix", "directory-entries") for item in found(findings, "AD-ART-007")
    ):
        return None
    return Plan(
        text="load a copy of the package with one top folder, files only, and the marks of the format",
        steps=({"op": "repack"},),
    )


def load_device(case: Case, _findings: Sequence[Evidence]) -> Plan | None:
    """The device type that the package was compiled for, without an index."""
    wanted = case.needs.device_type
    if wanted is None:
        return None
    return Plan(
        text=f"load for {wanted}",
        steps=({"op": "device", "device": wanted},),
        command="torch._inductor.aoti_load_package(path, device_index=-1)",
    )
