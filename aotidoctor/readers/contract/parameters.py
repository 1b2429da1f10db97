"""Signatures of generated kernels: what each parameter is, so that a call's arguments can be matched with them."""

from __future__ import annotations

import re

from aotidoctor.model.contract import KernelBody, Parameter
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.text import split_list

# The type may hold spaces, and ends where the star or the name begins.
_NAME = re.compile(r"\w+$")
_CPP_TYPE = re.compile(r"[\w:<>, ]+")
_DEFINITION = re.compile(r"^[ \t]*def (\w+)\(([^()]*)\)", re.MULTILINE)
_SIGNATURE = re.compile(r"'signature': \{([^{}]*)\}")
_TYPE = re.compile(r"'(\w+)': '(\*?)(\w+)'")
_LONGEST = 20_000


def cpp_body(name: str, text: str, line: int, member: str) -> KernelBody:
    """The function that begins with ``text``, which is all of it; no parameters where one was not understood."""
    opened = text.find("(")
    closed = text.find(")", opened, opened + _LONGEST)
    found = [_parameter(part) for part in split_list(text[opened + 1 : closed])] if closed > 0 else []
    parameters = tuple(one for one in found if one is not None)
    return KernelBody(
        name=name,
        kind="cpp",
        member=member,
        line=line,
        lines=text.count("\n") + 1,
        parameters=parameters if len(parameters) == len(found) else (),
    )


def _parameter(text: str) -> Parameter | None:
    """``const float* __restrict__ in_ptr0``; None where it is written otherwise."""
    # Searched from its end, a word costs no more than its length.
    start = len(text) - len(text[::-1].partition(" ")[0].partition("*")[0])
    name = _NAME.fullmatch(text, start)
    if name is None:
        return None
    const, kind = text.startswith("const "), text[:start].removesuffix("__restrict__ ").rstrip()
    pointer = kind.endswith("*")
    kind = kind.removeprefix("const ").removesuffix("*").strip()
    if _CPP_TYPE.fullmatch(kind) is None:
        return None
    return Parameter(name=name[0], type=kind, pointer=pointer, const=const)


def triton_body(launch: Launch, member: str) -> KernelBody:
    """The Triton kernel of ``launch``. Its parameters are those that the launch passes: no compile-time constants."""
    signature = _SIGNATURE.search(launch.source)
    # Helper functions of scans stand before the kernel.
    listed = next((one[2] for one in _DEFINITION.finditer(launch.source) if one[1] == launch.name), "")
    types = {one[1]: one for one in _TYPE.finditer(signature[1])} if signature is not None else {}
    names = [part.partition(":")[0].strip() for part in split_list(listed)]
    return KernelBody(
        name=launch.name,
        kind="triton",
        member=member,
        line=launch.line,
        lines=launch.source.count("\n") + 1,
        parameters=tuple(
            Parameter(name=name, type=types[name][3], pointer=bool(types[name][2]), const=name.startswith("in_ptr"))
            for name in names
            if name in types and types[name][3] != "constexpr"
        ),
    )
