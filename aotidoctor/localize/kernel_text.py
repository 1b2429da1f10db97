"""The source text of a kernel, and what its first line about a parameter does.

A buffer that is reused in place is named ``in_out_ptr0`` whether the kernel reads what is there or only its memory is
taken: then the first use is a store, and what it held before is nobody's business.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelBody

_ALIAS = r"\bauto\s*\*?\s*(\w+)\s*=\s*{name}\s*;"


def text_of(model: ModelEntry | None, body: KernelBody) -> str | None:
    """The lines of ``body``; None where the package does not bring that source."""
    if model is None:
        return None
    whole = model.wrapper_cpp if body.member == model.wrapper_member else model.kernel_sources.get(body.member)
    if whole is None:
        return None
    return "\n".join(_lines(whole)[body.line - 1 : body.line - 1 + body.lines])


@lru_cache(maxsize=4)
def _lines(source: str) -> list[str]:
    """Split once, though a file of generated code holds hundreds of kernels."""
    return source.split("\n")


def is_overwritten(case: Case, kernel: str, parameter: str) -> bool:
    """True when the kernel stores to ``parameter`` before it reads it; False where the source does not tell."""
    bodies = case.contract.bodies if case.contract is not None else ()
    body = next((one for one in bodies if one.name == kernel), None)
    text = text_of(case.model, body) if body is not None else None
    return body is not None and text is not None and stores_first(text, parameter, triton=body.kind == "triton")


def stores_first(text: str, parameter: str, *, triton: bool) -> bool:
    """True when the first use of ``parameter`` in the kernel ``text`` is a store."""
    code = text.partition("\ndef ")[2].partition("):")[2] if triton else text.partition("{")[2]
    alias = re.compile(_ALIAS.format(name=re.escape(parameter)))
    names = "|".join(map(re.escape, (parameter, *alias.findall(code))))
    used = re.compile(rf"\b(?:{names})\b")
    line = next((one for one in code.split("\n") if used.search(one) and not alias.search(one)), "")
    store = rf"^\s*(?:{names})\[.*\]\s*=(?!=)|\.store\(\s*(?:{names})\b|\btl\.store\(\s*(?:{names})\b"
    return re.search(store, line) is not None
