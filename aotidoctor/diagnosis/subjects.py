"""What a diagnosis is about, without what changes from machine to machine and from build to build."""

from __future__ import annotations

import re

from aotidoctor.diagnosis.frames import BUILD, plain_kernel

_LEAF = re.compile(r"(?:args|kwargs)\b")
_RESULT = re.compile(r"result\b")
_OPERATOR = re.compile(r"[A-Za-z_]\w*(?:::\w+)+(?:\.\w+)?$|(?:aten|prims|torch)\.\w")
_KERNEL = re.compile(r"(?:cpp|triton)_\w+|aoti_torch_\w+ \(")
_KEY = re.compile(r"[A-Z][A-Z0-9_]*$")
_LIBRARY = re.compile(r"lib[\w+-]+\.so")
_MEMBER = re.compile(r"(?:^|/)data/(?:aotinductor|weights|constants|sample_inputs)(?:/|$)")
_PATH = re.compile(r"/|\\|\.(?:pt2|pt|pth|py|so|npz|npy|json|safetensors|zip|onnx|dll|dylib)$")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
# Buffers are numbered through in each build.
_BUFFER = re.compile(r"\b(buf)\d+\b")
# GLIBC_2.38, CXXABI_1.3.15, libcudart.so.12, sm_90a stays: an architecture is no version.
_SYMBOL_VERSION = re.compile(r"\b((?:GLIBC(?:XX)?|CXXABI|GCC|GOMP|OMP|LIBC))_[\d.]+")
_LIBRARY_VERSION = re.compile(r"(\.so)(?:\.\d+)*\.?(?=\W|$)")


def subject_kind(subject: str | None) -> str:
    """``input``, ``size``, ``output``, ``operator``, ``kernel``, ``library``, ``member``, ``file``, ``key``..."""
    if not subject:
        return "none"
    if _LEAF.match(subject):
        return "size" if ".shape[" in subject else "input"
    kinds = (
        ("output", _RESULT.match(subject)),
        ("operator", _OPERATOR.match(subject)),
        ("kernel", _KERNEL.match(subject)),
        ("member", _MEMBER.search(subject)),
        ("library", _LIBRARY.match(subject)),
        ("file", _PATH.search(subject)),
        ("key", _KEY.match(subject)),
    )
    return next((kind for kind, found in kinds if found), "name")


def normal_subject(subject: str | None) -> str:
    """The subject itself, where it is a name that means the same elsewhere; nothing for a file of this machine."""
    kind = subject_kind(subject)
    if subject is None or kind == "file":
        return ""
    if kind in ("input", "size", "output"):
        return subject
    if kind == "member":
        return _member(subject)
    text = _BUFFER.sub(r"\1", _ADDRESS.sub("<address>", BUILD.sub("<hash>", subject)))
    return plain_kernel(_LIBRARY_VERSION.sub(r"\1", _SYMBOL_VERSION.sub(r"\1", text)))


def _member(subject: str) -> str:
    """The member's own name: the folders are named after the package and the model."""
    rest = subject[(found.end() if (found := _MEMBER.search(subject)) else 0) :]
    name = rest.rpartition("/")[2]
    return BUILD.sub("<hash>", name) if "/" in rest and name else "model"
