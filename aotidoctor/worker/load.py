"""Load a compiled model without ``aoti_load_package``, and call it as that would.

``aoti_load_package`` swallows the first error, prints "Loading outdated pt2 file" and tries again by another way, and
it imports all of Inductor to compare host properties. The loader below it gives the real first error in some
milliseconds.
The call is that of ``AOTICompiledModel``: keywords put in order, the tree flattened, whatever is no tensor dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.unpacked import newest

# ``self`` stands first and has no comma before it.
_SIGNATURE = re.compile(r"\(self: [^)\n]*\) ->")
_INSIDE_BRACKETS = re.compile(r"\[[^\[\]]*\]")


class LoadedModel:
    """A loaded model, with the methods of torch's ``AOTICompiledModel`` (``after_load`` of a setup file gets it).

    ``directory`` is where its files lie: unpacked, or as they were given.
    """

    def __init__(self, loader: Any, *, directory: Path) -> None:
        self.loader = loader
        self.directory = directory
        self._kept: list[Any] = []
        self.given: dict[str, Any] = {}
        self.on_constants: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, on the caller's tensors themselves."""
        from torch.utils import _pytree as pytree

        out_spec = pytree.treespec_loads(self.loader.get_call_spec()[1])
        run = getattr(self.loader, "boxed_run", None) or self.loader.run
        return pytree.tree_unflatten(run(self.flat(args, kwargs)), out_spec)

    def flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call in the order of the compiled code's inputs."""
        import torch
        from torch.export._tree_utils import reorder_kwargs
        from torch.utils import _pytree as pytree

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
    ) -> None:
        """Load constants by original name, as torch's own method does, which checks nothing but the names.

        ``on_constants`` gets what is given and returns what is loaded in its stead.
        """
        constants_map = self.on_constants(constants_map)
        if user_managed:
            self._kept.append(constants_map)
        load = getattr(self.loader, "load_constants", None) or self.loader.update_constant_buffer
        options = [False, check_full_update, user_managed, *([True] if allow_h2d_copy else [])]
        # 2.6 and 2.7 know no ``user_managed``: the weights are copied.
        accepted = accepted_arguments(load)
        load(constants_map, *(options if accepted is None else options[: accepted - 1]))

    def close(self) -> None:
        """Unload: the library is closed and its directory removed."""
        self.loader = None
        self._kept.clear()


def load_model(payload: Run, path: Path) -> LoadedModel:
    """Load ``path`` as ``payload.kind``; whatever the loader raises is the answer."""
    device, index = payload.device, payload.device_index
    if payload.kind == "bare-so":
        return LoadedModel(load_library(path, device, index), directory=path.parent)
    loader = _package_loader(str(path), payload.model_name, index)
    return LoadedModel(loader, directory=path if path.is_dir() else newest())


def load_library(path: Path, device: str, index: int | None = None, cubins: Path | None = None) -> Any:
    """The container runner of a bare library."""
    from torch._C import _aoti

    if device == "cpu":
        return _aoti.AOTIModelContainerRunnerCpu(str(path), 1)
    kind, _, number = device.partition(":")
    where = device if number or index in (None, -1) else f"{kind}:{index}"
    runner = getattr(_aoti, f"AOTIModelContainerRunner{kind.capitalize()}", None)
    if runner is None:
        raise RuntimeError(f"Unsupported device {device}")
    return runner(str(path), 1, where, *([str(cubins)] if cubins else []))


def _package_loader(path: str, name: str, index: int) -> Any:
    """The constructor got its arguments one after the other: 2.6 has two, 2.7 four, 2.8 five."""
    from torch._C._aoti import AOTIModelPackageLoader

    arguments: tuple[Any, ...] = (path, name, False, 1, index)
    return AOTIModelPackageLoader(*arguments[: accepted_arguments(AOTIModelPackageLoader.__init__)])


def accepted_arguments(function: Any) -> int | None:
    """How many arguments a function of PyTorch's C++ side takes, ``self`` not counted; None where it does not say.

    Its documentation holds the signature; of an overloaded one there are several, and the longest counts.
    """
    signatures = _SIGNATURE.findall(_INSIDE_BRACKETS.sub("", function.__doc__ or ""))
    return max((signature.count(",") for signature in signatures), default=None)
