"""Write a short script that makes the failing call with torch alone: recipe, tensors, surroundings, readme.

Tensors are Python expressions with the same shape, dtype, strides, device, layout and lazy bits. Values are made up:
floating point in [0, 1), integers and booleans one. No value of the user's is copied.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from aotidoctor.model import load_toml
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import MAPPINGS, Leaf, LeafValue, PlainValue, TensorDesc, Tree, child_path
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis
from aotidoctor.model.torch_names import VARIABLES, contiguous_stride
from aotidoctor.probes.payload import device_index_of, model_name_of
from aotidoctor.triage.compile_cache import open_cache
from aotidoctor.version import __version__

NAME = "repro.py"
WIDTH = 110
_TEXTS = load_toml(Path(__file__).with_name("script_texts.toml").read_text(encoding="utf-8"))
VERDICTS: Mapping[str, Sequence[str]] = _TEXTS["verdicts"]


def quote_text(text: str) -> str:
    """A string literal, in double quotes if that needs no escapes."""
    return f'"{text}"' if text.isprintable() and not set(text) & {'"', "\\"} else repr(text)


@record
class Recipe:
    """The parts of a script.

    ``args`` and ``kwargs`` are expressions, or None if the package is only loaded. ``patches`` are statements that
    set single values; ``values`` is the file of whole tensors, called ``given``. ``verdict`` is a key of
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
    """The text of the script, and the number of the line that loads the package."""
    lines = [f'"""{recipe.title}"""', ""]
    needed = {"copy": recipe.verdict == "unchanged", "os": bool(recipe.environment), "runpy": recipe.setup is not None}
    lines += [f"import {name}" for name, used in needed.items() if used]
    lines += [
        "from pathlib import Path",
        "",
        "import torch",
        *(["from torch._inductor.package import load_package"] if recipe.model_name is not None else []),
        "",
    ]
    lines += [f"os.environ[{quote_text(name)}] = {quote_text(value)}" for name, value in recipe.environment]
    lines += ["HERE = Path(__file__).parent", *_preparation_lines(recipe)]
    path = f"str(HERE / {quote_text(recipe.package)})"
    index = f", device_index={recipe.device_index}" if recipe.device_index > 0 else ""
    if recipe.model_name is not None:
        lines.append(f"model = load_package({path}, {quote_text(recipe.model_name)}{index})")
    else:
        lines.append(f"model = torch._inductor.aoti_load_package({path}{index})")
    loaded = len(lines)
    lines += ['setup["after_load"](model)'] if recipe.has_after_load else []
    if recipe.args is not None:
        verdict = VERDICTS.get(recipe.verdict, ("print(result)",))
        lines.append("result = model(*args, **kwargs)")
        lines += [one.format(treated=recipe.treated, tolerance=recipe.tolerance) for one in verdict]
    return "\n".join(lines) + "\n", loaded


def _preparation_lines(recipe: Recipe) -> list[str]:
    lines = [f"torch.set_num_threads({recipe.threads})"] if recipe.threads is not None else []
    lines += [f"torch.ops.load_library(str(HERE / {quote_text(name)}))" for name in recipe.libraries]
    if recipe.setup is not None:
        run = f"runpy.run_path(str(HERE / {quote_text(recipe.setup)}))"
        lines.append(f"setup = {run}" if recipe.has_after_load else run)
    if recipe.args is None:
        return lines
    lines += ["torch.manual_seed(0)"] if "rand(" in recipe.args + recipe.kwargs else []
    lines += [f"given = torch.load(HERE / {quote_text(recipe.values)})"] if recipe.values is not None else []
    lines += [*_assignment_lines("args", recipe.args), *_assignment_lines("kwargs", recipe.kwargs), *recipe.patches]
    return [*lines, "before = copy.deepcopy((args, kwargs))"] if recipe.verdict == "unchanged" else lines


def _assignment_lines(name: str, text: str) -> list[str]:
    """An assignment; a long tuple, list or dict has one line for each part between its commas."""
    if len(text) <= WIDTH or text[:1] + text[-1:] not in ("()", "{}", "[]"):
        return [f"{name} = {text}"]
    parts, depth, start = [], 0, 1
    quote = ""
    for at, char in enumerate(text[1:-1], 1):
        quote = ("" if char == quote else quote) if quote else (char if char in "'\"" else "")
        depth += 0 if quote else (char in "([{") - (char in ")]}")
        if char == "," and depth == 0 and not quote:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:-1].strip())
    return [f"{name} = {text[0]}", *(f"    {part}," for part in parts if part), text[-1]]


# Tensor descriptions as Python expressions.
_LITERALS = ("int", "float", "bool", "str", "None", "NoneType")
_CUT = 80
_SPARSE = {"sparse_coo": "to_sparse", "sparse_csr": "to_sparse_csr", "sparse_csc": "to_sparse_csc"}
_BLOCKS = {"sparse_bsr": "to_sparse_bsr", "sparse_bsc": "to_sparse_bsc"}


class UnmadeError(Exception):
    """There is no expression for a leaf; the text names it and the reason."""


def tree_text(tree: Tree[LeafValue], path: str, given: Mapping[str, str]) -> str:
    """The expression of a tree of arguments; ``given`` has expressions of leaves that are not made up."""
    if isinstance(tree, Leaf):
        return given[path] if path in given else leaf_text(tree.value, path)
    parts = [tree_text(child, child_path(path, tree, at), given) for at, child in enumerate(tree.children)]
    if tree.type in MAPPINGS:
        return "{" + ", ".join(f"{key_text(key)}: {part}" for key, part in zip(tree.keys, parts, strict=True)) + "}"
    if tree.type == "tuple":
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if tree.type == "list":
        return f"[{', '.join(parts)}]"
    raise UnmadeError(f"{path} is a {tree.type.removeprefix('namedtuple:')}")


def leaf_text(value: LeafValue, path: str) -> str:
    """The expression of one leaf."""
    if not isinstance(value, PlainValue):
        return _tensor(value, path)
    if value.type == "ndarray" and value.shape is not None and value.dtype is not None:
        return f"torch.ones({value.shape}, dtype=torch.{value.dtype}).numpy()"
    if value.type in _LITERALS and len(value.text) < _CUT:
        return f'float("{value.text}")' if value.text in ("nan", "inf", "-inf") else value.text
    if value.type in ("dtype", "device") and len(value.text) < _CUT:
        return value.text if value.text.startswith("torch.") else f"torch.{value.text}"
    raise UnmadeError(f"{path} is a {value.type}")


def _tensor(tensor: TensorDesc, path: str) -> str:
    if tensor.quantized:
        return f"torch.quantize_per_tensor(torch.rand({tensor.shape}), 0.1, 10, torch.{tensor.dtype})"
    text, stride = _fill_expression(tensor.shape, tensor), tensor.stride
    if stride is not None and stride != contiguous_stride(tensor.shape) and 0 not in tensor.shape:
        # A view of memory that is large enough.
        span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, stride, strict=True))
        text = f"{_fill_expression((span,), tensor)}.as_strided({tensor.shape}, {stride})"
    if tensor.layout in _SPARSE:
        text = f"{_fill_expression(tensor.shape, tensor)}.{_SPARSE[tensor.layout]}()"
    elif tensor.layout in _BLOCKS:
        text = f"{_fill_expression(tensor.shape, tensor)}.{_BLOCKS[tensor.layout]}((2, 2))"
    elif tensor.layout == "mkldnn":
        text = f"{_fill_expression(tensor.shape, tensor)}.to_mkldnn()"
    elif tensor.layout == "nested":
        rows = (
            ", ".join(_fill_expression(tensor.shape[1:], tensor) for _ in range(tensor.shape[0]))
            if tensor.shape
            else ""
        )
        text = f"torch.nested.nested_tensor([{rows}])"
    elif tensor.layout != "strided":
        raise UnmadeError(f"{path} is {tensor.layout}")
    text += ".conj()" if tensor.conj else ""
    text = f"torch._neg_view({text})" if tensor.neg else text
    if tensor.subclass == "Parameter":
        return f"torch.nn.Parameter({text}, requires_grad={tensor.requires_grad})"
    return f"{text}.requires_grad_()" if tensor.requires_grad else text


def _fill_expression(shape: tuple[int, ...], tensor: TensorDesc) -> str:
    dtype, device = tensor.dtype, "" if tensor.device == "cpu" else f', device="{tensor.device}"'
    if dtype.startswith("float8"):
        return f"torch.rand({shape}{device}).to(torch.{dtype})"
    if dtype == "float32":
        return f"torch.rand({shape}{device})"
    maker = "rand" if dtype.startswith(("float", "bfloat", "complex")) else "ones"
    return f"torch.{maker}({shape}, dtype=torch.{dtype}{device})"


def key_text(key: str | int) -> str:
    """The expression of a key of a dict."""
    return quote_text(key) if isinstance(key, str) else repr(key)


def value_text(value: float | bool) -> str:
    """The expression of a number."""
    text = repr(value)
    return f'float("{text}")' if text in ("nan", "inf", "-inf") else text


# Operator libraries, setup file, threads, variables.
PROGRAM, SETUP = "exported.pt2", "setup_ops.py"
# Variables that a process of the user needs to start.
_BARE = re.compile(
    r"PATH$|HOME$|USER$|LOGNAME$|LANG$|LC_|LD_LIBRARY_PATH$|PYTHONPATH$|VIRTUAL_ENV$|CUDA_VISIBLE_DEVICES$"
)
_FURTHER = (*VARIABLES, "TMPDIR")
# The caller's own folders, which differ on other machines.
_CACHES = re.compile(r"CACHE|_DIR$|_HOME$|_PATH$")


def bare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a script, which has to set all other variables itself.

    PyTorch queries the compiler about the CPU when it loads a package, and caches the answer in a folder.
    """
    bare = {name: value for name, value in environ.items() if _BARE.match(name)}
    return {**bare, "TORCHINDUCTOR_CACHE_DIR": str(open_cache(environ).compiler)}


def further_environment(environ: Mapping[str, str], case: Case) -> tuple[tuple[str, str], ...]:
    """Variables that PyTorch or its libraries read, if the report contains them."""
    public = case.host.environment
    return tuple(
        (name, environ[name])
        for name in sorted(environ)
        if name.startswith(_FURTHER) and (name in public or name == "TMPDIR") and not _CACHES.search(name)
    )


def base_recipe(case: Case, folder: Path, title: str) -> Recipe:
    """The recipe without inputs; files that it names are copied to ``folder``.

    Raises:
        OSError: one cannot be read.
    """
    options = case.options
    name = model_name_of(case)
    setup_text = ""
    if options.setup is not None:
        shutil.copyfile(options.setup, folder / SETUP)
        setup_text = (folder / SETUP).read_text(encoding="utf-8")
    libraries = tuple(Path(shutil.copy(one, folder)).name for one in options.custom_op_libraries)
    if options.reference is not None and case.reference is not None:
        shutil.copyfile(options.reference, folder / PROGRAM)
    return Recipe(
        title=title,
        model_name=options.model_name if name != "model" else None,
        device_index=device_index_of(case) or -1,
        threads=options.threads,
        setup=None if options.setup is None else SETUP,
        has_after_load=re.search(r"^def after_load\b", setup_text, re.MULTILINE) is not None,
        libraries=libraries,
    )


# The known failure, and the finished repro.
@record
class Repro:
    """A finished repro. ``files`` are the names in the folder, the script first; empty if nothing was written.

    ``certified`` is what was certified, or empty; then ``problem`` is the reason. ``inputs``, ``weights`` and
    ``environment`` describe the user's data in the folder; ``tried`` lists the attempts.
    """

    certified: str = ""
    problem: str = ""
    ending: str = ""
    inputs: str = ""
    weights: str = ""
    environment: str = ""
    files: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()


@record
class KnownFailure:
    """The failure to reproduce, from a new or a saved report."""

    signature: str | None
    diagnoses: tuple[Diagnosis, ...]
    findings: tuple[Evidence, ...]

    @property
    def cause(self) -> str:
        """The first cause."""
        return self.diagnoses[0].cause if self.diagnoses else "unknown"


# The note beside the script.
README = "README.md"
MARK = "<!-- aotidoctor repro -->"


def readme(made: Repro, cause: str) -> str:
    """The text of the note beside the script."""
    lines = [MARK, f"# A script that shows {cause}", "", f"    python {NAME}", ""]
    lines += [f"It ends with (N is any number): {made.ending}.", ""]
    lines += [
        f"- `{name}`: {_TEXTS['files'].get(name, 'an operator library')}" for name in made.files if name not in _OWN
    ]
    lines += [f"- Inputs: {made.inputs}.", f"- Weights: {made.weights}."]
    lines += [f"- Environment set by the script: `{made.environment}`."] if made.environment else []
    lines += ["", f"Certified: {made.certified}. The script was run unchanged in a fresh interpreter, without the"]
    lines += ["caller's variables, and its package and inputs were diagnosed once more.", ""]
    lines += [f"Made by aotidoctor {__version__}; about the cause: `aotidoctor explain {cause}`."]
    return "\n".join(lines) + "\n"


_OWN = (NAME, README)
