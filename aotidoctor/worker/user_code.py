"""Run the user's code in the child: operator libraries, setup module, a script.

The setup module may have ``after_load``, which gets the loaded model. Job ``setup_only`` only makes the imports that
precede a package, to check that they succeed in time. Job ``script`` executes one Python file as ``__main__``;
``torch`` is imported only if the request has that option. It serves small queries to this host's Python and the
runner's own tests: a script that dies, hangs or floods.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Job, Script
from aotidoctor.worker.channel import Channel


@contextlib.contextmanager
def users_directory(channel: Channel) -> Iterator[None]:
    """Change to the user's directory, where a setup file may open ``weights.pt``. The model itself runs elsewhere."""
    private = Path.cwd()
    os.chdir(channel.user_cwd)
    try:
        yield
    finally:
        os.chdir(private)


@contextlib.contextmanager
def attribute_replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give ``owner``, a module or class of PyTorch, another ``name`` until the end of the block."""
    # That of a class method is not what ``getattr`` gives.
    original = vars(owner).get(name, getattr(owner, name))
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def load_setup(payload: Job, channel: Channel) -> Any:
    """Load the operator libraries, then the setup module: a ``.py`` file or a module's name; None if there is none."""
    code = payload.code
    with users_directory(channel):
        for name in code.imports:
            sys.path.append(str(channel.user_cwd))
            module, _, function = name.partition(":")
            found = importlib.import_module(module)
            if function:
                getattr(found, function)()
        for library in code.custom_op_libraries:
            import torch

            torch.ops.load_library(str(channel.user_cwd / library))
        setup = code.setup
        if not setup:
            return None
        if not setup.endswith(".py"):
            sys.path.insert(0, str(channel.user_cwd))
            return importlib.import_module(setup)
        # A file is imported like a script: its folder is the first in ``sys.path``, and its name is importable.
        path = channel.user_cwd / setup
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"not a Python file: {path}")
        imported = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = imported
        spec.loader.exec_module(imported)
        return imported


def defined_operators() -> frozenset[str]:
    """Names of the operators that are defined in Python by ``torch.library.custom_op``."""
    return frozenset(getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", ()))


def after_load(module: Any, model: Any, channel: Channel) -> bool:
    """Call the setup module's ``after_load(model)``; return whether there is one."""
    function = getattr(module, "after_load", None)
    if function is None:
        return False
    with users_directory(channel):
        function(model)
    return True


def setup_only(payload: Job, channel: Channel) -> dict[str, Any]:
    """Make the imports, and nothing else."""
    channel.enter("setup")
    load_setup(payload, channel)
    return {}


def script(payload: Script, channel: Channel) -> dict[str, Any]:
    """Execute ``payload.path``; the result is the script's global ``RESULT``, an object, if it sets one."""
    channel.enter("run1")
    path = str(channel.user_cwd / payload.path)
    names = runpy.run_path(path, init_globals={"CHANNEL": channel}, run_name="__main__")
    result = names.get("RESULT", {})
    return result if isinstance(result, dict) else {"value": result}
