"""Weights that lie beside the package, and who loads them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from aotidoctor.model.phrases import listed
from aotidoctor.model.serving import Consequence, Remark, ServedModel, ServedVersion
from aotidoctor.model.serving_config import ParameterConfig
from aotidoctor.model.serving_hook import INIT, PARAMETER
from aotidoctor.triton.init_parameter import SINCE, init_library, said


def check_sidecars(model: ServedModel) -> Sequence[Remark]:
    """Weights next to the package must be where an init library looks for them, and a library must load them.

    Versions: 26.07 and later have init libraries, which receive the version's folder; earlier releases have none.
    Consequence: the model loads, and the first inference fails because embedding tables (``*.nve``) are missing, or
    crashes because weights are not in the shared object.
    How it was seen: the pull request that brought init libraries; weights outside the shared object were run with
    torch's loader.
    Remedy: name the init library of such files in MODEL_INIT_LIBRARY, and keep them in the version's folder.
    """
    given = init_library(model)
    acts = given is not None and model.release.since(SINCE)
    return (
        *(remark for version in model.served for remark in _beside(model, version, acts=acts)),
        *(() if given is None else _misplaced(model, given)),
        *(remark for version in model.served for remark in _unshipped(version)),
    )


def _beside(model: ServedModel, version: ServedVersion, *, acts: bool) -> Iterator[Remark]:
    """Sidecar files without, and an init library with nothing, in the version's folder."""
    tables = _tables(version.files)
    if tables and not acts:
        since = "" if model.release.since(SINCE) else f", which Triton {model.release.name} does not know"
        yield Remark(
            kind="not-loaded",
            consequence=Consequence.REQUESTS_FAIL,
            message=f"the model loads, and the first inference fails: nothing loads {listed(tables, 2)}; that takes an "
            f"init library ({PARAMETER}){since}.",
            remedy=f"serve with {SINCE} or later, and name the init library of these files in {PARAMETER}",
            observed=listed(tables, 2),
            expected="a library that loads them",
            subject=f"version {version.number}",
            file=posixpath.join(version.directory, tables[0]),
        )
    if acts and version.artifact is not None and len(version.files) == 1:
        yield Remark(
            kind="nothing-to-load",
            consequence=Consequence.NOTE,
            message=f"{INIT} gets {version.directory}, which contains only the package: weights in any other place "
            "are not found.",
            remedy="copy what the library loads into the version's folder",
            observed="the package alone",
            expected="what the library loads",
            subject=f"version {version.number}",
            file=version.directory,
        )


def _misplaced(model: ServedModel, given: ParameterConfig) -> Iterator[Remark]:
    tables = _tables(model.loose)
    if tables and not any(_tables(version.files) for version in model.served):
        yield said(
            "misplaced",
            given,
            f"{listed(tables, 2)} are outside the folder of a version, and {INIT} receives only that folder: the first "
            "inference fails.",
            "move them into the version's folder",
            seen=f"{model.name}/{tables[0]}",
            wanted=f"{model.name}/<version>/{tables[0]}",
            consequence=Consequence.REQUESTS_FAIL,
        )


def _unshipped(version: ServedVersion) -> Iterator[Remark]:
    contract = version.contract
    if contract is None or contract.weights not in ("external", "disk") or contract.n_constants == 0:
        return
    where = "on disk in the package" if contract.weights == "disk" else "not in the package"
    yield Remark(
        kind="unset-weights",
        consequence=Consequence.REQUESTS_FAIL,
        message=f"the model loads, and the first inference crashes: its weights are {where}, and the server loads none "
        "but those of the shared object.",
        remedy="compile again with the weights in the package (aot_inductor.package_constants_in_so=True)",
        observed=f"weights {where}",
        expected="weights in the shared object",
        subject=f"version {version.number}",
        file=version.package,
    )


def _tables(files: Sequence[str]) -> list[str]:
    return [name for name in files if name.endswith(".nve")]
