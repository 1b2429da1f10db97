"""The public surface: what programs, scripts and plugins of others rely on, compared with the record in ``surface.json``.

Commands and their options, codes and names of checks and probes, rules, causes, formats, schemas of JSON documents, the
names of the library with their parameters, the pytest plugin, and what plugins import. A name that is missing breaks
somebody; a new one is a promise. ``AOTIDOCTOR_UPDATE_SURFACE=1 pytest tests/unit/test_surface.py`` writes the record.

Everything is collected the way that a user gets at it, so that modules can move without a change here.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import json
import os
import re
from importlib import import_module
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

import aotidoctor
import aotidoctor.pytest_plugin
from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import COMMANDS, build_app
from aotidoctor.probes import LATER, PROBES
from aotidoctor.program.rules import BY_CODE
from aotidoctor.triton.rules import RULES

ROOT = Path(__file__).parents[2]
PACKAGE = Path(aotidoctor.__file__).parent
RECORD = ROOT / "tests" / "data" / "surface.json"
LIBRARY = ("aotidoctor", "aotidoctor.api", "aotidoctor.testing")
# What plugins are told to copy.
EXAMPLE = ROOT / "examples" / "plugin"
# Parts of the record that are lists of names.
LISTS = ("causes", "documents", "plugins imports")
# Names of types in one release of click or another.
TYPES = {
    "text": "str",
    "string": "str",
    "integer": "int",
    "boolean": "flag",
    "integer range": "int",
    "int range": "int",
}


def test_the_surface_is_the_recorded_one():
    found = surface()
    if os.environ.get("AOTIDOCTOR_UPDATE_SURFACE"):
        RECORD.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    recorded, now = flat(json.loads(RECORD.read_text(encoding="utf-8"))), flat(found)
    missing = [f"{name}: {recorded[name]}" for name in recorded if name not in now]
    new = [f"{name}: {now[name]}" for name in now if name not in recorded]
    changed = [f"{name}: {recorded[name]} -> {now[name]}" for name in now if recorded.get(name, now[name]) != now[name]]
    told = "".join(
        f"\n{title}:\n  " + "\n  ".join(names)
        for title, names in (("missing", missing), ("new", new), ("changed", changed))
        if names
    )
    assert not told, f"the public surface differs from {RECORD.name}:{told}"


def test_plugins_can_import_what_the_example_imported():
    """Also where the example itself has changed: copies of it have not."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))["plugins"]["imports"]
    gone = [place for place in recorded if not _importable(*place.split(":"))]
    assert not gone


def surface() -> dict:
    """The surface of this source."""
    return {
        "commands": {name: _command(command) for name, command in _commands()},
        "formats": _formats(),
        "checks": {item.code: [item.name, item.cause, item.stage] for item in CHECKS},
        "probes": {item.code: item.name for item in (*PROBES, *LATER)},
        "rules": _rules(),
        "causes": sorted(path.stem for path in (ROOT / "playbooks").glob("*.md")),
        "documents": _documents(),
        "schemas": {kind: _schema(json.loads(_asked("schema", kind))) for kind in ("report", "diff")},
        "library": {module: _library(module) for module in LIBRARY},
        "pytest": _pytest(),
        "plugins": _plugins(),
    }


def flat(value: object, name: str = "") -> dict[str, str]:
    """One line per name."""
    if isinstance(value, dict):
        return {key: text for part, item in value.items() for key, text in flat(item, f"{name} {part}".strip()).items()}
    if name in LISTS:
        return {f"{name} {item}": "" for item in value}
    return {name: json.dumps(value, ensure_ascii=False)}


# --- the command line


def _asked(*words: str) -> str:
    result = CliRunner().invoke(build_app(), list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def _commands():
    group = get_command(build_app())
    yield "", group
    for name, command in group.commands.items():
        yield name, command
        for word in COMMANDS[name].words:
            with command.make_context(name, [word], resilient_parsing=True) as context:
                yield f"{name} {word}", context.command


def _command(command) -> dict[str, str]:
    return {_name(item): _described(item) for item in command.params}


def _name(item) -> str:
    return item.opts[0] if item.param_type_name == "option" else item.name


def _described(item) -> str:
    names = [*item.opts[1:], *item.secondary_opts] if item.param_type_name == "option" else []
    repeated = getattr(item, "multiple", False) or item.nargs != 1 or getattr(item, "count", False)
    flag = getattr(item, "is_flag", False)
    words = [
        *names,
        "flag" if flag else _type(item.type),
        "repeatable" if repeated else "",
        "required" if item.required else "",
        "hidden" if getattr(item, "hidden", False) else "",
        f"default {_default(item.default, flag=flag)}",
    ]
    return " ".join(word for word in words if word)


def _type(kind) -> str:
    choices = getattr(kind, "choices", None)
    if choices is not None:
        return "|".join(item.value if isinstance(item, enum.Enum) else str(item) for item in choices)
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    limits = f" {'' if low is None else low}..{'' if high is None else high}" if (low, high) != (None, None) else ""
    return TYPES.get(kind.name, kind.name) + limits


def _default(value: object, *, flag: bool = False) -> str:
    if isinstance(value, enum.Enum) and isinstance(value, str):
        value = value.value
    if flag:
        return str(value is True)
    # Nothing is given: None, an empty list, or the mark of one release of click or another.
    return json.dumps(value) if isinstance(value, (str, int, float)) and not isinstance(value, enum.Enum) else "none"


def _formats() -> dict[str, str]:
    def choices(command: str, option: str) -> str:
        (found,) = [item for item in get_command(build_app()).commands[command].params if option in item.opts]
        return _type(found.type)

    return {
        "of a report": choices("run", "--format"),
        "of an issue form": choices("run", "--for"),
        "of a page": choices("explain", "--format"),
    }


# --- codes, documents, schemas


def _rules() -> dict[str, str]:
    """Rules about exported programs and about Triton: code and name."""
    programs = {rule.code: rule.name for rule in sorted(BY_CODE.values(), key=lambda rule: rule.code)}
    return programs | {rule.code: rule.check.__name__ for rule in RULES}


def _documents() -> list[str]:
    """The ``schema`` of every kind of JSON document, as the source has it."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))]
    return sorted({name for text in sources for name in re.findall(r"[\"'](aotidoctor\.[a-z-]+/\d+)[\"']", text)})


def _schema(node: dict, name: str = "") -> dict[str, str]:
    """Every place of a JSON schema with what may stand there; optional fields have a question mark."""
    found = {}
    inner = ("properties", "items", "additionalProperties", "$defs", "anyOf", "oneOf", "allOf", "prefixItems")
    own = {key: value for key, value in node.items() if key not in (*inner, "required", "title", "description")}
    found[name or "."] = json.dumps(own, sort_keys=True)
    for part, item in node.get("properties", {}).items():
        optional = "" if part in node.get("required", ()) else "?"
        found |= _schema(item, f"{name}.{part}{optional}")
    for part, item in node.get("$defs", {}).items():
        found |= _schema(item, f"{name}#{part}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        match node.get(key):
            case dict() as item:
                found |= _schema(item, f"{name}{mark}")
            case None:
                pass
            case other:
                found[f"{name}{mark}"] = json.dumps(other)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for at, item in enumerate(node.get(key, ())):
            found |= _schema(item, f"{name}|{key}{at}")
    return found


# --- the library


def _library(module: str) -> dict[str, object]:
    exported = import_module(module)
    return {name: _exported(getattr(exported, name)) for name in sorted(exported.__all__) if name != "__version__"}


def _exported(value: object) -> object:
    if not isinstance(value, type):
        return _parameters(value)
    common = set(dir(Exception if issubclass(value, Exception) else object))
    return {
        "parameters": _parameters(value),
        "attributes": " ".join(sorted(name for name in dir(value) if name[0] != "_" and name not in common)),
    }


def _parameters(value) -> str:
    """Names with their defaults; an asterisk before those that are given by name."""
    shown = []
    if isinstance(value, type) and dataclasses.is_dataclass(value):
        # The constructor of a record is made when it is first called.
        for item in dataclasses.fields(value):
            missing = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
            plain = item.default is None or isinstance(item.default, (str, int, float, tuple, bool))
            shown.append(f"*{item.name}" + ("" if missing else f"={item.default!r}" if plain else "=…"))
        return ", ".join(shown)
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:  # an exception without a constructor of its own
        return "*args"
    for item in parameters.values():
        mark = {item.KEYWORD_ONLY: "*", item.VAR_POSITIONAL: "*args ", item.VAR_KEYWORD: "**"}.get(item.kind, "")
        plain = item.default is None or isinstance(item.default, (str, int, float, tuple, bool))
        default = "" if item.default is item.empty else f"={item.default!r}" if plain else "=…"
        shown.append(f"{mark}{item.name}{default}")
    return ", ".join(shown)


def _pytest() -> dict[str, object]:
    """What the plugin adds to pytest: read, because a plugin that is loaded has hidden it in pytest's own tables."""
    tree = ast.parse(Path(aotidoctor.pytest_plugin.__file__).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    added = [call.args[0].value for call in calls if getattr(call.func, "attr", "") == "addoption"]
    public = [node for node in functions if not node.name.startswith("_")]
    fixtures = [node.name for node in public if any("fixture" in ast.unparse(one) for one in node.decorator_list)]
    markers = [
        ast.literal_eval(node.value).partition(":")[0]
        for node in tree.body
        if isinstance(node, ast.Assign) and "MARKER" in ast.unparse(node.targets[0])
    ]
    return {"options": " ".join(added), "fixtures": " ".join(fixtures), "markers": " ".join(markers)}


# --- plugins


def _plugins() -> dict[str, object]:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    listed = json.loads(_asked("plugins", "--json"))
    return {
        "version": listed["api"],
        "groups": " ".join(re.findall(r"^\| `(aotidoctor\.\w+)` \|", page, re.MULTILINE)),
        "imports": sorted(_imports()),
    }


def _imports() -> set[str]:
    """``module:name`` of all that the example plugin imports of aotidoctor."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLE.rglob("*.py"))]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        f"{node.module}:{alias.name}"
        for node in found
        if (node.module or "").partition(".")[0] == "aotidoctor"
        for alias in node.names
    }


def _importable(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False
