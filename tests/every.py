"""A table of small cases in one test, or in a few: each is tried, and all that fail are named together.

What ``pytest.mark.parametrize`` makes a test of each, with an id, a set-up and a report of its own, costs more than the
cases themselves where a table has hundreds.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import wraps
from itertools import zip_longest
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Of a case's own words: what stands in the summary of all.
LONGEST = 1500


def every(
    names: str | tuple[str, ...],
    cases: Iterable[object],
    *,
    ids: Callable[[object], object] | Iterable[str] | None = None,
    chunks: int = 1,
) -> Callable[[Callable], Callable]:
    """As ``pytest.mark.parametrize``, and one test for all cases; ``chunks``: so many, for several workers to share.

    Each case has a ``tmp_path`` and a ``monkeypatch`` of its own; other fixtures are those of the test.
    """
    keys = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)
    single = isinstance(names, str) and len(keys) == 1
    table = [(name, dict(zip(keys, (case,) if single else case, strict=True))) for name, case in _named(cases, ids)]
    if not table:
        raise ValueError(f"no cases for {keys}: a test of none passes whatever the code does")

    def decorate(test: Callable) -> Callable:
        @wraps(test)
        def all_of_them(*args: object, **fixtures: object) -> None:
            part = table[fixtures.pop("chunk") :: chunks] if chunks > 1 else table
            failed = [(name, said) for name, case in part if (said := _try(test, args, fixtures, case)) is not None]
            if failed:
                told = "\n".join(f"[{name}] {said}" for name, said in failed)
                pytest.fail(f"{len(failed)} of {len(part)} fail:\n{told}", pytrace=False)

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in keys]
        if chunks > 1:
            kept.append(inspect.Parameter("chunk", inspect.Parameter.KEYWORD_ONLY))
        all_of_them.__signature__ = signature.replace(parameters=kept)
        return pytest.mark.parametrize("chunk", range(chunks))(all_of_them) if chunks > 1 else all_of_them

    return decorate


def _named(cases: Iterable[object], ids: Callable[[object], object] | Iterable[str] | None) -> list[tuple[str, object]]:
    known = list(cases)
    given = [ids(case) for case in known] if callable(ids) else list(ids or ())
    return [(str(name) if name else ascii(case)[:100], case) for case, name in zip_longest(known, given)]


def _try(test: Callable, args: tuple, fixtures: dict[str, object], case: dict[str, object]) -> str | None:
    """What a case says where it fails, with the place; None where it holds."""
    with ExitStack() as own:
        given = fixtures | case
        if isinstance(path := fixtures.get("tmp_path"), Path):
            given["tmp_path"] = path / str(sum(1 for _ in path.iterdir()))
            given["tmp_path"].mkdir()
        if isinstance(patch := fixtures.get("monkeypatch"), pytest.MonkeyPatch):
            given["monkeypatch"] = own.enter_context(patch.context())
        try:
            test(*args, **given)
        except pytest.skip.Exception as error:
            # It would skip the cases after it, too, and nobody would see that.
            return f"skips, which a case among others cannot: {error}"
        except (Exception, pytest.fail.Exception) as error:
            frames = traceback.extract_tb(error.__traceback__)
            places = [
                frame for frame in frames if Path(frame.filename).is_relative_to(HERE) and frame.filename != __file__
            ]
            place = (places or frames)[-1]
            kind = "" if isinstance(error, AssertionError | pytest.fail.Exception) else f"{type(error).__name__}: "
            return f"{Path(place.filename).name}:{place.lineno}: {kind}{error}"[:LONGEST]
    return None
