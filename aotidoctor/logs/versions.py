"""Versions that a log names: of torch, Triton, CUDA, the driver, Python and the server, wherever they stand."""

from __future__ import annotations

import re

# In each line with one of these something may be found.
HINTS = re.compile(rb"ersion|torch[=-]|triton[=-]|lib/python3|NVIDIA Release|release 1\d\.\d|\+cu1|\+cpu")
_PATTERNS = tuple(
    (name, re.compile(text))
    for name, text in (
        ("torch", r"(?i:(?:py)?torch version)\s{0,20}[:=]?\s{0,20}v?(?P<v>\d+\.\d+(?:\.\d+)?(?:[+.]?\w)*)"),
        ("torch", r"\b(?:lib)?torch(?:==|-|\s)v?(?P<v>\d+\.\d+\.\d+(?:\.?(?:dev|a|b|rc)\d+)?(?:\+\w+)?)"),
        ("torch", r"torch\.__version__\W{1,20}(?P<v>\d+\.\d+\.\d+(?:[+.]\w+)*)"),
        ("torch", r"\[?(?:pip3?|conda)\]? torch(?:==|\s{1,20})(?P<v>\d+\.\d+\.\d+(?:[+.]\w+)*)"),
        ("triton", r"\btriton(?:==|-|\s{1,20}version\s{0,20}[:=]?\s{0,20})v?(?P<v>\d+\.\d+(?:\.\d+)?(?:[+.]\w+)*)"),
        (
            "cuda",
            r"CUDA (?:used to build PyTorch|runtime version|[Vv]ersion)\s{0,20}[:=]\s{0,20}(?P<v>\d+\.\d+(?:\.\d+)?)",
        ),
        ("cuda", r"Cuda compilation tools, release (?P<v>\d+\.\d+)"),
        ("driver", r"(?i:(?:nvidia )?driver version)\s{0,20}[:=]\s{0,20}(?P<v>\d{3}\.\d+(?:\.\d+)?)"),
        ("python", r"\bPython version\s{0,20}[:=]\s{0,20}(?P<v>3\.\d+(?:\.\d+)?)"),
        ("python", r"lib/python(?P<v>3\.\d+)/"),
        ("server", r"NVIDIA Release (?P<v>\d\d\.\d\d)"),
        ("server", r"\|\s{0,20}server_version\s{0,80}\|\s{0,20}(?P<v>\d+\.\d+\.\d+)"),
        ("gcc", r"\bGCC version\s{0,20}[:=]\s{0,20}\(.{0,100}?\) (?P<v>\d+\.\d+\.\d+)"),
    )
)
_RELEASE = re.compile(r"\d+")


def versions_in(text: str, found: dict[str, str]) -> None:
    """Add to ``found`` what ``text`` names; the first mention of each stays, but a longer form of it is better."""
    for name, pattern in _PATTERNS:
        hit = pattern.search(text)
        if hit is not None and (name not in found or hit["v"].startswith(found[name])):
            found[name] = hit["v"]


def release(text: str) -> tuple[int, ...]:
    """``(2, 6, 0)`` of ``2.6.0+cu124``; empty where there is no number."""
    return tuple(int(part) for part in _RELEASE.findall(text.partition("+")[0])[:3])


def is_fixed(version: str, fixed: str) -> bool:
    """Whether ``version`` is one in which what ``fixed`` names is fixed."""
    had, first = release(version), release(fixed)
    return bool(had and first) and had[: len(first)] >= first
