"""Signatures of generated kernels: what each parameter is, so that a call's arguments can be matched with them."""

from __future__ import annotations

import re

from aotidoctor.model.contract import KernelBody, Parameter
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.text import split_list

_PARAMETER = re.compile(r"(const )?([\w:<>, ]+?)\s*(\*?)\s*(?:__restrict__ )?(\w+)$")
_DEFINITION = re.compile(r"^\s*def (\w+)\(([^()]*)\)", re.MULTILINE)
_SIGNATURE = re.compile(r"'signature': \{([^{}]*)\}")
_TYPE = re.compile(r"'(\w+)': '(\*?)(\w+)'")
_LONGEST = 20_000


def cpp_body(name: str, text: str, line: int, member: str) -> KernelBody:
    """The function that begins with ``text``, which is all of it; no parameters where one was not understood."""
    opened = text.find("(")
    closed = text.find(")", opened, opened + _LONGEST)
    found = [_PARAMETER.fullmatch(part) for part in split_list(text[opened + 1 : closed])] if closed > 0 else []
    parameters = tuple(
        Parameter(name=one[4], type=one[2].strip(), pointer=one[3] == "*", const=one[1] is not None)
        for one in found
        if one is not None
    )
    return KernelBody(
        name=name,
        kind="cpp",
        member=member,
        line=line,
        lines=text.count("\n") + 1,
        parameters=parameters if len(parameters) == len(found) else (),
    )


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
