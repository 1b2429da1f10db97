"""``@pytest.mark.aoti("models/*.pt2")``: one test per package."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.testing.healthy import assert_aoti_healthy

if TYPE_CHECKING:
    import pytest

FIXTURE = "aoti_package"
# Of the marker and not of ``assert_aoti_healthy``.
_PLACED = ("inputs", "reference")


def parametrize(metafunc: pytest.Metafunc) -> None:
    """A test for every file that matches. Raises UsageError of pytest where none does: it would pass unseen."""
    import pytest  # noqa: PLC0415 - who gets here has it

    root = metafunc.config.rootpath
    markers = list(metafunc.definition.iter_markers("aoti"))
    patterns = [pattern for marker in markers for pattern in marker.args]
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise pytest.UsageError(f'{metafunc.definition.nodeid}: observed aoti{patterns}, expected aoti("models/*.pt2")')
    found = sorted({path for pattern in patterns for path in _matching(root, pattern)})
    if not found:
        shown = ", ".join(patterns)
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: no file below {root} matches {shown}")
    metafunc.parametrize(FIXTURE, found, indirect=True, ids=[_id(root, path) for path in found])


def _matching(root: Path, pattern: str) -> list[Path]:
    absolute = Path(pattern)
    if absolute.is_absolute():
        return list(Path(absolute.anchor).glob(str(absolute.relative_to(absolute.anchor))))
    return list(root.glob(pattern))


def _id(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def package_of(request: pytest.FixtureRequest) -> Path:
    """The package of the test; examined first where the test's function does not ask for it."""
    __tracebackhide__ = True
    import pytest  # noqa: PLC0415 - who gets here has it

    if not hasattr(request, "param"):
        raise pytest.UsageError(f'{request.node.nodeid}: aoti_package needs @pytest.mark.aoti("models/*.pt2")')
    package: Path = request.param
    if FIXTURE not in inspect.signature(request.function).parameters:
        options = {name: value for marker in request.node.iter_markers("aoti") for name, value in marker.kwargs.items()}
        placed = {name: _place(request, package, options[name]) for name in _PLACED if name in options}
        assert_aoti_healthy(package, **{**options, **placed})
    return package


def _place(request: pytest.FixtureRequest, package: Path, value: object) -> object:
    """``samples/{stem}.pt``: the file that belongs to this package, from the root folder."""
    if not isinstance(value, str):
        return value
    text = value.replace("{stem}", package.stem).replace("{name}", package.name).replace("{dir}", str(package.parent))
    return str(request.config.rootpath / text)
