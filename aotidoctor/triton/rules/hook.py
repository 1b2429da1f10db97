"""Family hook: the init library, which runs before the package is loaded, and weights beside the package."""

from __future__ import annotations

from aotidoctor.model.serving_config import (
    INIT_FUNCTION,
    OLD_RELEASE,
    PARAMETER,
    RELEASE,
    SYMBOL_PART,
    HookLibrary,
    ParameterConfig,
    written_text,
)
from aotidoctor.triton.init_library import INIT_LIBRARY_SINCE, check_sidecars, init_library, init_remark
from aotidoctor.triton.serving import Consequence, Family, NotJudged, Remark, RuleResult, ServedModel

RULES = Family("hook")

LOADED_BY_BACKEND = ("libtorch", "libc10", "libtriton", "libaoti_")
_SIGNATURES = {
    INIT_FUNCTION: 'extern "C" void* triton_pytorch_model_init(const char* model_dir, int device_index)',
    RELEASE: 'extern "C" void triton_pytorch_model_release(void* handle)',
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@RULES.rule("R46", "the init library can be loaded and called", Consequence.FAILS_TO_LOAD, last_seen=INIT_LIBRARY_SINCE)
def check_init_library(model: ServedModel) -> RuleResult:
    """MODEL_INIT_LIBRARY must name a library that the server can load and call.

    Versions: 26.07 and later; before that the parameter is ignored.
    Consequence: any fault of the library fails the load; without the cleanup function, whatever the library allocated
    remains. A release that ignores the parameter loads the model, and the first inference fails.
    How it was seen: the pull request that brought it, and the release notes; a NULL from init is not a failure.
    Remedy: give an absolute path to a library for this machine that exports triton_pytorch_model_init and
    triton_pytorch_model_release with C linkage, writable only by its owner. ``--load-hook`` calls both.
    """
    given = init_library(model)
    if given is None:
        return
    if model.release.before(INIT_LIBRARY_SINCE):
        yield init_remark(
            "ignored",
            given,
            f"Triton {model.release.name} ignores {PARAMETER}: the model loads, and the first inference fails because "
            "what the library prepares is missing.",
            f"serve with {INIT_LIBRARY_SINCE} or later",
            seen=f"Triton {model.release.name}",
            wanted=f"{INIT_LIBRARY_SINCE} or later",
            consequence=Consequence.REQUESTS_FAIL,
        )
        return
    hook = model.hook
    broken = _unusable_path(given) or (_file(model, hook, given) if hook is not None else None)
    if broken is not None:
        yield broken
        return
    if hook is None:
        yield NotJudged(reason="the library was not inspected")
        return
    yield from _symbols(hook, given)
    yield from _libraries(hook, given)
    yield from _access(hook, given)
    count = sum(group.instances for group in model.instance_groups)
    if count > 1:
        message = f"each of the {count} instances loads the model, and calls {INIT_FUNCTION} again for the same folder."
        remedy, note = "count: 1, or a function that may be called more than once", Consequence.NOTE
        several = f"{count} instances"
        yield init_remark("several-instances", given, message, remedy, seen=several, wanted="one", consequence=note)


def _unusable_path(given: ParameterConfig) -> Remark | None:
    value = written_text(given.value)
    if not value:
        remedy = f'value: {{ string_value: "/path/to/library.so" }} for {PARAMETER}, or leave it out'
        return init_remark(
            "empty",
            given,
            "names no library: nothing is prepared.",
            remedy,
            seen="no path",
            wanted="an absolute path",
            consequence=Consequence.WASTE,
        )
    if not value.startswith("/"):
        how = "in the folder that the server was started in" if "/" in value else "only in the search path of libraries"
        message = f"the dynamic loader looks for {value} {how}: whether it finds one, and which, depends on the server."
        return init_remark(
            "relative",
            given,
            message,
            "write the absolute path",
            seen=value,
            wanted="an absolute path",
            consequence=Consequence.WASTE,
        )
    return None


def _file(model: ServedModel, hook: HookLibrary, given: ParameterConfig) -> Remark | None:
    """What keeps the file from being a library of this host at all."""
    if not hook.exists:
        where = f"{hook.path} (a link to {hook.target})" if hook.target else hook.path
        remedy = "mount or copy the library to that path where the server runs, or correct the path"
        return init_remark(
            "missing", given, f"{where} is not there", remedy, seen="no such file", wanted="a shared library"
        )
    if hook.format not in (None, "elf") or hook.problem:
        problem = hook.problem or f"an object of a different system ({hook.format})"
        remedy = "build it again as a shared library for Linux"
        return init_remark(
            "unreadable", given, f"{hook.path}: {problem}", remedy, seen=problem, wanted="an ELF shared library"
        )
    machine, here = _machine(hook.machine or ""), _machine(model.host.machine)
    if hook.bits not in (None, 64) or (machine and machine != here):
        observed = machine if machine != here else f"{hook.bits} bit"
        message = f"{hook.path} is code for {observed}, this host is {here}"
        return init_remark("machine", given, message, f"build it for {here}", seen=observed, wanted=here)
    return None


def _machine(name: str) -> str:
    return _MACHINES.get(name.lower(), name.lower())


def _symbols(hook: HookLibrary, given: ParameterConfig) -> RuleResult:
    if INIT_FUNCTION not in hook.symbols:
        how, remedy = _why_absent(hook, INIT_FUNCTION)
        kind = {"mangled": "mangled", "hidden": "hidden"}.get(how, "no-init")
        message = f"{hook.path} does not export {INIT_FUNCTION}{_WHY[how]}"
        yield init_remark(kind, given, message, remedy, seen=_symbol_names(hook), wanted=INIT_FUNCTION)
    if RELEASE not in hook.symbols:
        how, remedy = _why_absent(hook, RELEASE)
        kind, seen = "no-release", _symbol_names(hook)
        message = f"{hook.path} does not export {RELEASE}{_WHY[how]}; whether the server then refuses the library is "
        message += "unknown, and what init allocated is never freed."
        if how == "absent" and OLD_RELEASE in hook.symbols:
            kind, seen, remedy = "old-abi", OLD_RELEASE, f"rename it: {_SIGNATURES[RELEASE]}"
            message = f"{hook.path} exports {OLD_RELEASE}, the name from before the feature was merged, and not "
            message += f"{RELEASE}: its cleanup is never called, so a reload finds leftovers of the last load."
        waste = Consequence.WASTE
        yield init_remark(kind, given, message, remedy, seen=seen, wanted=RELEASE, consequence=waste)


_WHY = {
    "mangled": ': its name is mangled, as C++ does without extern "C"',
    "hidden": ": it is there, and hidden",
    "absent": "",
}


def _why_absent(hook: HookLibrary, name: str) -> tuple[str, str]:
    """``mangled``, ``hidden`` or ``absent``, and what helps."""
    mangled = f"_Z{len(name)}{name}"
    if any(symbol.startswith(mangled) for symbol in hook.symbols):
        return "mangled", f"declare it {_SIGNATURES[name]}"
    if name in hook.hidden or any(symbol.startswith(mangled) for symbol in hook.hidden):
        return "hidden", f'declare it __attribute__((visibility("default"))) {_SIGNATURES[name]}'
    return "absent", f"define {_SIGNATURES[name]}"


def _symbol_names(hook: HookLibrary) -> str:
    return ", ".join(hook.symbols) or f"no {SYMBOL_PART}*"


def _libraries(hook: HookLibrary, given: ParameterConfig) -> RuleResult:
    missing = [name for name, file in hook.libraries.items() if file is None and not name.startswith(LOADED_BY_BACKEND)]
    if missing:
        names = ", ".join(missing)
        message = f"{hook.path} needs {names}, which the dynamic loader does not find on this host"
        remedy = "install it where the server runs, or link with -Wl,-rpath"
        yield init_remark(
            "needed", given, message, remedy, seen=f"not found: {names}", wanted="libraries that are found"
        )


def _access(hook: HookLibrary, given: ParameterConfig) -> RuleResult:
    if hook.writable:
        paths = ", ".join(hook.writable)
        message = f"the server executes it, and users other than its owner can change it: {paths}."
        remedy = f"chmod go-w {' '.join(hook.writable)}"
        yield init_remark(
            "writable",
            given,
            message,
            remedy,
            seen="writable by group or others",
            wanted="writable only by its owner",
            consequence=Consequence.WASTE,
        )
    if hook.target is not None:
        message = (
            f"{hook.path} leads to {hook.target}: anyone who can change the link controls what the server executes."
        )
        remedy = f'string_value: "{hook.target}"'
        yield init_remark(
            "link", given, message, remedy, seen=hook.target, wanted=hook.path, consequence=Consequence.NOTE
        )


RULES.rule("R47", "weights next to the package are loaded", Consequence.REQUESTS_FAIL, last_seen=INIT_LIBRARY_SINCE)(
    check_sidecars
)
