"""How failures look in logs: one file per form, each with ``START`` and ``read``. The most telling forms come first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aotidoctor.logs.forms import (
    assertion,
    compiler,
    cpp,
    debugger,
    kernel,
    linker,
    loader,
    other,
    plain,
    python,
    record,
    sanitizer,
    server,
    signal,
)
from aotidoctor.logs.found import Found
from aotidoctor.logs.line import Line

Read = Callable[[Sequence[Line], int], Found | None]

_IN_ORDER = (
    python, cpp, assertion, sanitizer, debugger, kernel, server, compiler, linker, loader, signal, plain, other, record,
)  # fmt: skip
FORMS: tuple[tuple[re.Pattern[str], Read], ...] = tuple((form.START, form.read) for form in _IN_ORDER)

__all__ = ["FORMS", "Read"]
