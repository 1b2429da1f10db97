"""Family config, second half: files that the server opens, versions that it serves, content of the package."""

from __future__ import annotations

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.serving_config import TOP
from aotidoctor.triton.open_models import DEFAULT_FILE
from aotidoctor.triton.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel

RULES = Family("config")

MODEL = "model"


@RULES.rule("R4", "the model file is not there", Consequence.FAILS_TO_LOAD)
def file_is_there(model: ServedModel) -> RuleResult:
    """The version directory must contain the file that the server opens: default_model_filename, or model.pt2.

    Versions: all; 26.03 uses model.pt if the field is empty, so the field is required there.
    Consequence: the model is not loaded: 'PyTorch inductor model file "..." is unreachable or inaccessible.'
    How it was seen: run with the 26.05 backend.
    Remedy: name the file model.pt2, or set default_model_filename to its name.
    """
    config, settled = model.config, model.settled
    filename = settled.filename if settled is not None else DEFAULT_FILE
    written = config.default_model_filename if config is not None else None
    for version in (version for version in model.served if version.artifact is None):
        others = [name for name in version.files if name.endswith((".pt2", ".pt")) and name != filename]
        if written is None and filename != DEFAULT_FILE and DEFAULT_FILE in version.files:
            remedy = f'Write default_model_filename: "{DEFAULT_FILE}": {model.release.name} looks for {filename} '
            remedy += "without it."
        elif others:
            remedy = f'Rename {others[0]} to {filename}, or write default_model_filename: "{others[0]}".'
        else:
            remedy = f"Put the package into {version.directory} as {filename}."
        yield Remark(
            kind="no-file",
            message=f'the model is not loaded: PyTorch inductor model file "{version.package}" is unreachable or '
            "inaccessible.",
            observed=", ".join(others) or f"no package in {version.directory}",
            expected=f"{version.number}/{filename}",
            subject=f"version {version.number}",
            remedy=remedy,
            at=written.at if written is not None else TOP,
            file=model.config_path or model.path,
        )


@RULES.rule(
    "R5",
    "no version to serve, or folders that are not versions",
    Consequence.FAILS_TO_LOAD,
    needs=Needs.CONFIG,
    last_seen="26.06",
)
def versions_are_served(model: ServedModel) -> RuleResult:
    """Version directories have whole numbers as names, and the version policy must pick one of them.

    Versions: all. Without a policy, the server picks the latest version: the highest number.
    Consequence: a folder with a different name is ignored; if no version is left, the model is not loaded: "at least
    one version must be available under the version policy of model".
    How it was seen: run on a real server core.
    Remedy: name the folder 1, 2, ...; or change version_policy.
    """
    policy = model.config.tree.first("version_policy") if model.config is not None else None
    at = policy.at if policy is not None else TOP
    ignored = [
        Remark(
            kind="ignored-folder",
            consequence=Consequence.WASTE,
            message=f"the server ignores the folder: version directory '{name}' fails to convert to an integral "
            "number.",
            observed=name,
            expected="a whole number without zeros before it",
            subject=name,
            remedy="Rename it to its number, or move it out of the model's folder.",
            file=f"{model.path}/{name}",
        )
        for name in model.ignored
    ]
    if model.served:
        return ignored
    there = ", ".join(str(version.number) for version in model.versions)
    none = Remark(
        kind="no-version",
        message=f"the model is not loaded: at least one version must be available under the version policy of model "
        f"'{model.name}'.",
        observed=f"versions {there}" if there else "no version directory",
        expected=f"a version that the policy {model.settled.policy if model.settled else ''} picks",
        remedy="Change version_policy to what is there." if there else f"Put the package into {model.path}/1/.",
        at=at,
        file=model.config_path or model.path,
    )
    return [none, *ignored]


@RULES.rule("R7", 'the package has no model called "model"', Consequence.FAILS_TO_LOAD, needs=Needs.PACKAGE)
def inner_name_is_model(model: ServedModel) -> RuleResult:
    """The package must be an AOTInductor package whose model is called "model".

    Versions: all seen.
    Consequence: the model is not loaded: "Failed to find a generated cpp file or so file for model 'model' in the zip
    archive." The server always requests this name, regardless of the name given to package_aoti.
    How it was seen: run with PyTorch's loader, which the backend calls with the fixed name.
    Remedy: package the model alone, with aoti_compile_and_package or package_aoti(path, files).
    """
    for version in model.served:
        artifact = version.artifact
        if artifact is None:
            continue
        is_package = artifact.kind is ArtifactKind.AOTI_PACKAGE
        if is_package and version.entry is not None:
            continue
        names = ", ".join(entry.name for entry in artifact.models)
        missing = f"Failed to find a generated cpp file or so file for model '{MODEL}' in the zip archive."
        yield Remark(
            kind="other-name" if is_package else "no-package",
            message=f"the model is not loaded: {missing if is_package else 'it is not a package.'}",
            observed=f"models: {names}" if names else f"{artifact.kind.value}: {artifact.problem or ''}".rstrip(": "),
            expected=f"an AOTInductor package with a model called {MODEL}",
            subject=f"version {version.number}",
            remedy="Package this model alone, with torch._inductor.aoti_compile_and_package."
            if is_package
            else f"Look at it with: aotidoctor check {version.package}",
            file=version.package,
        )


@RULES.rule("R8", "the package has no compiled library", Consequence.FAILS_TO_LOAD, needs=Needs.PACKAGE)
def package_is_compiled(model: ServedModel) -> RuleResult:
    """The package must contain a compiled library.

    Versions: all.
    Consequence: a package that contains only sources is compiled when it is loaded; the server's image has no compiler,
    so the model is not loaded: "Failed to compile cpp file."
    How it was seen: read in PyTorch's loader.
    Remedy: package without package_cpp_only.
    """
    for version in model.served:
        if version.entry is not None and not version.entry.shared_objects:
            yield Remark(
                kind="sources-only",
                message="the server would have to compile it with the compiler it was packaged for; the image has "
                "none: Failed to compile cpp file.",
                observed="sources, and no .so",
                expected="a compiled library in the package",
                subject=f"version {version.number}",
                remedy="Package it without package_cpp_only.",
                file=version.package,
            )
