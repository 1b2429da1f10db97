"""The script: what is tried as data, and how it is written."""

from __future__ import annotations

from aotidoctor.model.record import record

NAME = "repro.py"
WIDTH = 110
_LEAVES = "torch.utils._pytree.tree_leaves"
# What a silent fault shows as: lines after ``result = model(*args, **kwargs)``.
VERDICTS = {
    "finite": (f'assert all(one.isfinite().all() for one in {_LEAVES}(result)), "NaN or Inf in the result"',),
    "again": (
        "again = model(*args, **kwargs)",
        "torch.testing.assert_close(again, result, rtol=0, atol=0, equal_nan=True)",
    ),
    "treated": (
        "expected = model({treated})",
        "torch.testing.assert_close(result, expected, equal_nan=True)",
    ),
    "reference": (
        'expected = torch.export.load(HERE / "exported.pt2").module()(*args, **kwargs)',
        "torch.testing.assert_close(result, expected{tolerance})",
    ),
    "unchanged": ("torch.testing.assert_close((args, kwargs), before, rtol=0, atol=0, equal_nan=True)",),
    "separate": (
        f"places = [one.untyped_storage().data_ptr() for one in {_LEAVES}(result)]",
        'assert len({{*places}}) == len(places), "results share memory"',
    ),
}


def quoted(text: str) -> str:
    """A string literal, in double quotes where that needs no escapes."""
    return f'"{text}"' if text.isprintable() and not set(text) & {'"', "\\"} else repr(text)


@record
class Recipe:
    """All that a script is made of.

    ``args`` and ``kwargs`` are expressions, or None where the package is only loaded. ``patches`` are statements that
    put single values in; ``values`` is the file that whole tensors come from, as ``given``. ``verdict`` is a key of
    ``VERDICTS`` for a call that returns. ``setup`` is a Python file of the folder, with ``after_load`` to be called
    with the model; ``libraries`` are operator libraries of the folder.
    """

    title: str
    args: str | None = None
    kwargs: str = "{}"
    patches: tuple[str, ...] = ()
    values: str | None = None
    verdict: str = ""
    treated: str = ""
    tolerance: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    model_name: str | None = None
    device_index: int = -1
    threads: int | None = None
    setup: str | None = None
    has_after_load: bool = False
    libraries: tuple[str, ...] = ()
    package: str = "model.pt2"


def script_text(recipe: Recipe) -> tuple[str, int]:
    """The text, and the number of the line that loads the package."""
    lines = [f'"""{recipe.title}"""', ""]
    lines += [f"import {name}" for name in _modules(recipe)]
    lines += ["from pathlib import Path", "", "import torch", *_loader_import(recipe), ""]
    lines += [f"os.environ[{quoted(name)}] = {quoted(value)}" for name, value in recipe.environment]
    lines += ["HERE = Path(__file__).parent", *_prepared(recipe), *_inputs(recipe), _load(recipe)]
    loaded = len(lines)
    lines += ['setup["after_load"](model)'] if recipe.has_after_load else []
    lines += _call(recipe)
    return "\n".join(lines) + "\n", loaded


def _modules(recipe: Recipe) -> list[str]:
    needed = {"copy": recipe.verdict == "unchanged", "os": bool(recipe.environment), "runpy": recipe.setup is not None}
    return [name for name, wanted in needed.items() if wanted]


def _loader_import(recipe: Recipe) -> list[str]:
    return ["from torch._inductor.package import load_package"] if recipe.model_name is not None else []


def _prepared(recipe: Recipe) -> list[str]:
    lines = [f"torch.set_num_threads({recipe.threads})"] if recipe.threads is not None else []
    lines += [f"torch.ops.load_library(str(HERE / {quoted(name)}))" for name in recipe.libraries]
    if recipe.setup is None:
        return lines
    run = f"runpy.run_path(str(HERE / {quoted(recipe.setup)}))"
    return [*lines, f"setup = {run}" if recipe.has_after_load else run]


def _inputs(recipe: Recipe) -> list[str]:
    if recipe.args is None:
        return []
    made = "rand(" in recipe.args + recipe.kwargs
    lines = ["torch.manual_seed(0)"] if made else []
    lines += [f"given = torch.load(HERE / {quoted(recipe.values)})"] if recipe.values is not None else []
    lines += [*_assigned("args", recipe.args), *_assigned("kwargs", recipe.kwargs), *recipe.patches]
    return [*lines, "before = copy.deepcopy((args, kwargs))"] if recipe.verdict == "unchanged" else lines


def _assigned(name: str, text: str) -> list[str]:
    """An assignment; a long tuple or dict has one argument per line."""
    parts = _split(text)
    if len(text) <= WIDTH or parts is None:
        return [f"{name} = {text}"]
    return [f"{name} = {text[0]}", *(f"    {part}," for part in parts), text[-1]]


def _split(text: str) -> list[str] | None:
    """The parts of a tuple or dict at its commas of depth one; None for anything else."""
    if text[:1] + text[-1:] not in ("()", "{}", "[]"):
        return None
    parts, depth, start = [], 0, 1
    quote = ""
    for at, char in enumerate(text[1:-1], 1):
        quote = ("" if char == quote else quote) if quote else (char if char in "'\"" else "")
        depth += 0 if quote else (char in "([{") - (char in ")]}")
        if char == "," and depth == 0 and not quote:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:-1].strip()) if part]


def _load(recipe: Recipe) -> str:
    path = f"str(HERE / {quoted(recipe.package)})"
    index = f", device_index={recipe.device_index}" if recipe.device_index > 0 else ""
    if recipe.model_name is not None:
        return f"model = load_package({path}, {quoted(recipe.model_name)}{index})"
    return f"model = torch._inductor.aoti_load_package({path}{index})"


def _call(recipe: Recipe) -> list[str]:
    if recipe.args is None:
        return []
    lines = ["result = model(*args, **kwargs)"]
    if not recipe.verdict:
        return [*lines, "print(result)"]
    filled = [one.format(treated=recipe.treated, tolerance=recipe.tolerance) for one in VERDICTS[recipe.verdict]]
    return lines + filled
