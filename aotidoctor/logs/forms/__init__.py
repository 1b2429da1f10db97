"""List the forms in which failures appear in logs, the most telling first, each with its ``START`` and ``read``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aotidoctor.logs.forms.crash_forms import (
    ASSERTION_START,
    CPP_START,
    DEBUGGER_START,
    DMESG_START,
    PYTHON_START,
    SANITIZER_START,
    SIGNAL_START,
    read_assertion,
    read_cpp,
    read_debugger,
    read_dmesg,
    read_python,
    read_sanitizer,
    read_signal,
)
from aotidoctor.logs.forms.message_forms import (
    COMPILER_START,
    LINKER_START,
    LOADER_START,
    OTHER_START,
    PLAIN_START,
    RECORD_START,
    SERVER_START,
    read_compiler,
    read_linker,
    read_loader,
    read_other,
    read_plain,
    read_record,
    read_server,
)
from aotidoctor.logs.lines import LogLine
from aotidoctor.logs.patterns import LogFailure

Read = Callable[[Sequence[LogLine], int], LogFailure | None]

FORMS: tuple[tuple[re.Pattern[str], Read], ...] = (
    (PYTHON_START, read_python), (CPP_START, read_cpp), (ASSERTION_START, read_assertion),
    (SANITIZER_START, read_sanitizer), (DEBUGGER_START, read_debugger), (DMESG_START, read_dmesg),
    (SERVER_START, read_server), (COMPILER_START, read_compiler), (LINKER_START, read_linker),
    (LOADER_START, read_loader), (SIGNAL_START, read_signal), (PLAIN_START, read_plain),
    (OTHER_START, read_other), (RECORD_START, read_record),
)  # fmt: skip

__all__ = ["FORMS", "Read"]
