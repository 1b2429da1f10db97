"""List the forms in which failures appear in logs, the most telling first, each with its ``START`` and ``read``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aotidoctor.logs.forms import crash_forms as crash
from aotidoctor.logs.forms import message_forms as message
from aotidoctor.logs.lines import LogLine
from aotidoctor.logs.patterns import LogFailure

Read = Callable[[Sequence[LogLine], int], LogFailure | None]

FORMS: tuple[tuple[re.Pattern[str], Read], ...] = (
    (crash.PYTHON_START, crash.read_python), (crash.CPP_START, crash.read_cpp),
    (crash.ASSERTION_START, crash.read_assertion), (crash.SANITIZER_START, crash.read_sanitizer),
    (crash.DEBUGGER_START, crash.read_debugger), (crash.DMESG_START, crash.read_dmesg),
    (message.SERVER_START, message.read_server), (message.COMPILER_START, message.read_compiler),
    (message.LINKER_START, message.read_linker), (message.LOADER_START, message.read_loader),
    (crash.SIGNAL_START, crash.read_signal), (message.PLAIN_START, message.read_plain),
    (message.OTHER_START, message.read_other), (message.RECORD_START, message.read_record),
)  # fmt: skip
