"""Load a compiled model without ``aoti_load_package``, call it as that would, and query its library.

``aoti_load_package`` swallows the first error, prints "Loading outdated pt2 file" and tries again by another way, and
it imports all of Inductor to compare host properties. The loader below it gives the real first error in some
milliseconds. The call is that of ``AOTICompiledModel``: keywords are put in order, the tree is flattened, leaves that
are no tensors are dropped.

Up to PyTorch 2.12 the loader unpacks into a folder ``/tmp/XXXXXX``, whatever TMPDIR says; a load that fails and a
process that dies leave it behind with the whole package. So the one call of ``mkdtemp`` in libtorch goes through a
function of ours, which reports each folder to the parent, to be removed after the end of the child. Later releases
unpack below TMPDIR.

PyTorch before 2.13 raises "API call failed" without the last error of the compiled code, and the reason goes to stderr
only, which a program may have closed or redirected.

The C interface gives names and counts of inputs, outputs and constants without running the model.
"""

from __future__ import annotations

import _ctypes
import ctypes
import mmap
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.model.jobs import Run
from aotidoctor.model.run import portable
from aotidoctor.model.torch_names import scalar_type
from aotidoctor.worker.call_hooks.package_calls import call_around, call_slot
from aotidoctor.worker.channel import Channel

# The folder that the loader unpacks into.
FIRST_BELOW_TMPDIR = (2, 13)
DEFAULT_TMPDIR = "/tmp"  # noqa: S108 - as the loader does
_MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_folders: list[str] = []


def follow_unpacking(channel: Channel) -> None:
    """Report each folder from now on to ``channel``, as ``unpacked``; not needed where the loader heeds TMPDIR."""

    def make(real: Any, template: int) -> int | None:
        made: int | None = real(template)
        if made:
            _folders.append(os.fsdecode(ctypes.string_at(made)))
            channel.put(unpacked=_folders)
        return made

    call_around(slot_address(), _MAKE, make, channel, "what a failed load leaves in /tmp is not removed")


def newest_unpacked() -> Path:
    """Folder of the last load; if none was reported, that of the library mapped last, else TMPDIR."""
    if _folders:
        return Path(_folders[-1])
    library = mapped_library() if torch_release() < FIRST_BELOW_TMPDIR else None
    if library is not None and "/data/" in str(library):
        return Path(str(library).rpartition("/data/")[0])
    return Path(os.environ.get("TMPDIR", DEFAULT_TMPDIR))


def mapped_library() -> Path | None:
    """Path of the compiled model that this process has loaded from a temporary directory; None when unknown."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    paths = dict.fromkeys(line[line.index("/") :] for line in lines if "/" in line and line.endswith(".so"))
    models = [path for path in paths if path.endswith(".wrapper.so") or "/aotinductor/" in path]
    return Path(models[-1]) if models else None


def torch_release() -> tuple[int, int]:
    """Major and minor number of this PyTorch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


@cache
def slot_address() -> int | None:
    """Address of libtorch's slot for ``mkdtemp``; None where it is not needed, or not found."""
    if torch_release() >= FIRST_BELOW_TMPDIR or portable(os.environ):
        return None
    return call_slot("mkdtemp")


# The last failure of the compiled code (packages of torch 2.13 and later).
_NAME = "AOTInductorGetLastError"


def last_error() -> str | None:
    """The message of the library that this thread called last; None where it has none, or no function for it."""
    path = mapped_library()
    if path is None:
        return None
    with suppress(OSError):
        # Only if it is loaded: this must not load anything of a package.
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        try:
            function, text = getattr(library, _NAME, None), ctypes.c_char_p()
            if function is None or function(ctypes.byref(text)) != 0 or not text.value:
                return None
            return text.value.decode(errors="replace")
        finally:
            _ctypes.dlclose(library._handle)
    return None


def operator_exception() -> str | None:
    """The last exception that an operator of PyTorch raised in compiled code on this thread (2.13 and later).

    It stays after it was passed on, and also where the code never looked at the status of its call.
    """
    with suppress(OSError, AttributeError):
        # It is loaded: torch is imported.
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"), mode=os.RTLD_NOLOAD)
        read = library.torch_exception_get_what_without_backtrace
        read.restype = ctypes.c_char_p
        text = read()
        return text.decode(errors="replace") if text else None
    return None


# The model's C interface.
_LARGEST = 256 * 1024 * 1024
_KINDS = {0: "unknown", 1: "parameter", 2: "buffer", 3: "tensorconstant", 4: "foldedconstant"}
_TEXT = ctypes.c_char_p
_SIZE = ctypes.c_size_t
_PREFIX = "AOTInductorModelContainer"


def library_contains(library: Path | None, text: bytes) -> bool:
    """Whether the file holds ``text`` anywhere."""
    if library is None:
        return False
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0


def exports_symbol(library: Path, what: str) -> bool:
    """Whether the C interface has ``what``: an older one lacks entry points, and PyTorch calls them without a check."""
    try:
        return hasattr(ctypes.CDLL(str(library), mode=os.RTLD_NOW), f"{_PREFIX}{what}")
    except OSError:
        return False


def describe_library(library: Path | None, device: str, problems: list[str]) -> dict[str, Any]:
    """``n_inputs``, ``n_outputs``, ``n_constants``, ``names`` of inputs, ``constants``; empty when they are not known.

    The query makes a second container, which loads the weights again: not done for large files or on other devices.
    """
    if library is None or device != "cpu" or library.stat().st_size > _LARGEST:
        return {}
    try:
        return _query_library(ctypes.CDLL(str(library), mode=os.RTLD_NOW))
    except (OSError, AttributeError, RuntimeError) as error:
        problems.append(f"the library's own interface could not be called: {error}")
        return {}


def _query_library(library: ctypes.CDLL) -> dict[str, Any]:
    handle = ctypes.c_void_p()
    create = library[f"{_PREFIX}CreateWithDevice"]
    if create(ctypes.byref(handle), _SIZE(1), b"cpu", None) != 0:
        raise RuntimeError("no container")
    try:
        counts = {
            f"n_{what.lower()}": _number(library, f"GetNum{what}", handle, _SIZE())
            for what in ("Inputs", "Outputs", "Constants")
        }
        names = [_text(library, "GetInputName", handle, at) for at in range(counts["n_inputs"])]
        # Since torch 2.8.
        sized = hasattr(library, f"{_PREFIX}GetConstantDataSize")
        constants = [
            {
                "name": _text(library, "GetConstantName", handle, at),
                "original_fqn": _text(library, "GetConstantOriginalFQN", handle, at),
                "dtype": scalar_type(_number(library, "GetConstantDtype", handle, ctypes.c_int32(), at)),
                "kind": _KINDS.get(_number(library, "GetConstantType", handle, ctypes.c_int32(), at)),
                "from_folded": bool(_number(library, "GetConstantFromFolded", handle, ctypes.c_bool(), at)),
                "data_size": _number(library, "GetConstantDataSize", handle, _SIZE(), at) if sized else None,
            }
            for at in range(counts["n_constants"])
        ]
        return {**counts, "names": names, "constants": constants}
    finally:
        library[f"{_PREFIX}Delete"](handle)


def _number(library: ctypes.CDLL, name: str, handle: ctypes.c_void_p, into: Any, at: int | None = None) -> int:
    function = library[f"{_PREFIX}{name}"]
    where = () if at is None else (_SIZE(at),)
    if function(handle, *where, ctypes.byref(into)) != 0:
        raise RuntimeError(name)
    return int(into.value)


def _text(library: ctypes.CDLL, name: str, handle: ctypes.c_void_p, at: int) -> str:
    into = _TEXT()
    if library[f"{_PREFIX}{name}"](handle, _SIZE(at), ctypes.byref(into)) != 0:
        raise RuntimeError(name)
    return (into.value or b"").decode(errors="replace")


# Loading and calling. ``self`` stands first and has no comma before it.
_SIGNATURE = re.compile(r"\(self: [^)\n]*\) ->")
_INSIDE_BRACKETS = re.compile(r"\[[^\[\]]*\]")


class LoadedModel:
    """A loaded model, with the methods of torch's ``AOTICompiledModel`` (``after_load`` of a setup file gets it).

    ``directory`` holds its files: unpacked, or as they were given.
    """

    def __init__(self, loader: Any, *, directory: Path) -> None:
        self.loader = loader
        self.directory = directory
        self._user_managed: list[Any] = []
        self.given: dict[str, Any] = {}
        self.on_constants: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, on the caller's tensors themselves."""
        out_spec = pytree.treespec_loads(self.loader.get_call_spec()[1])
        run = getattr(self.loader, "boxed_run", None) or self.loader.run
        return pytree.tree_unflatten(run(self.flat(args, kwargs)), out_spec)

    def flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call in the order of the compiled code's inputs."""
        from torch.export._tree_utils import reorder_kwargs

        in_spec = pytree.treespec_loads(self.loader.get_call_spec()[0])
        leaves = pytree.tree_flatten((args, reorder_kwargs(kwargs, in_spec)))[0]
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def get_metadata(self) -> dict[str, str]:
        """The package's metadata; empty for a bare library."""
        return dict(self.loader.get_metadata()) if hasattr(self.loader, "get_metadata") else {}

    def get_constant_fqns(self) -> list[str]:
        """Original names of the constants."""
        if hasattr(self.loader, "get_constant_fqns"):
            return list(self.loader.get_constant_fqns())
        return list(self.loader.get_constant_names_to_original_fqns().values())

    def load_constants(
        self,
        constants_map: dict[str, Any],
        *,
        check_full_update: bool,
        user_managed: bool = False,
        allow_h2d_copy: bool = False,
        inactive: bool = False,
    ) -> None:
        """Load constants by original name, as torch's own method does, which checks nothing but the names.

        ``on_constants`` gets what is given and returns what is loaded in its stead. ``inactive``: into the buffer that
        is not in use until it is swapped in.
        """
        constants_map = self.on_constants(constants_map)
        if user_managed:
            self._user_managed.append(constants_map)
        load = getattr(self.loader, "load_constants", None)
        if load is None:
            # A bare library knows the compiler's names, and drops every other one without a word.
            load, own = self.loader.update_constant_buffer, self.loader.get_constant_names_to_original_fqns()
            names = {original: name for name, original in own.items()}
            constants_map = {names.get(name, name): value for name, value in constants_map.items()}
        options = [inactive, check_full_update, user_managed, *([True] if allow_h2d_copy else [])]
        # 2.6 and 2.7 know no ``user_managed``: the weights are copied.
        accepted = accepted_arguments(load)
        load(constants_map, *(options if accepted is None else options[: accepted - 1]))

    def close(self) -> None:
        """Unload the model: this closes the library and removes its directory."""
        self.loader = None
        self._user_managed.clear()


def load_model(payload: Run, path: Path) -> LoadedModel:
    """Load ``path`` as ``payload.kind``; errors of the loader are not caught."""
    device, index = payload.device, payload.device_index
    if payload.kind == "bare-so":
        return LoadedModel(load_library(path, device, index), directory=path.parent)
    from torch._C._aoti import AOTIModelPackageLoader

    # The constructor got its arguments one after the other: 2.6 has two, 2.7 four, 2.8 five.
    arguments: tuple[Any, ...] = (str(path), payload.model_name, False, 1, index)
    loader = AOTIModelPackageLoader(*arguments[: accepted_arguments(AOTIModelPackageLoader.__init__)])
    return LoadedModel(loader, directory=path if path.is_dir() else newest_unpacked())


def load_compiled(path: Path, setup: Any, grad_mode: bool | None, folder: Path) -> Callable[..., Any]:
    """The function of an artifact of torch.compile, called with gradients on or off as its guards want.

    What it closes over is ``external_data`` of the setup file, the module of a module's functions is ``model``.
    """
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(64)
    call: Callable[..., Any]
    if path.is_dir():
        # Its loader makes the folder its cache, and writes into it.
        copy = Path(shutil.copytree(path, folder / "artifact", symlinks=True))
        call = torch._inductor.CompiledArtifact.load(path=str(copy), format="unpacked")
    elif b"CompiledArtifact" in head[:40]:
        call = torch._inductor.CompiledArtifact.load(path=str(path), format="binary")
    elif head[11:12] == b"]":
        if not hasattr(setup, "model"):
            raise RuntimeError(
                "the file holds a module's functions: --setup FILE.py with the module as `model` loads it"
            )
        call = torch.compile(setup.model, fullgraph=True)
        call._load_aot_compiled_module(path.read_bytes())  # type: ignore[attr-defined]
    else:
        with path.open("rb") as file:
            call = torch.compiler.load_compiled_function(file, external_data=getattr(setup, "external_data", None))

    def compiled(*args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(torch.is_grad_enabled() if grad_mode is None else grad_mode):
            return call(*args, **kwargs)

    return compiled


def load_library(path: Path, device: str, index: int | None = None, cubins: Path | None = None) -> Any:
    """Container runner of a bare library."""
    from torch._C import _aoti

    if device == "cpu":
        return _aoti.AOTIModelContainerRunnerCpu(str(path), 1)
    kind, _, number = device.partition(":")
    where = device if number or index in (None, -1) else f"{kind}:{index}"
    runner = getattr(_aoti, f"AOTIModelContainerRunner{kind.capitalize()}", None)
    if runner is None:
        raise RuntimeError(f"Unsupported device {device}")
    return runner(str(path), 1, where, *([str(cubins)] if cubins else []))


def accepted_arguments(function: Any) -> int | None:
    """Number of arguments of a function of PyTorch's C++ side, without ``self``; None where it is not documented.

    Its documentation holds the signature; of an overloaded one there are several, and the longest counts.
    """
    signatures = _SIGNATURE.findall(_INSIDE_BRACKETS.sub("", function.__doc__ or ""))
    return max((signature.count(",") for signature in signatures), default=None)
