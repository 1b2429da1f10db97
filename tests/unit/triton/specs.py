"""Call specs, and packages whose wrapper tells another one than was recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

from tests.artifacts.packages import archive_parts, model_parts
from tests.artifacts.zips import build_zip
from tests.unit.triton.harness import WRAPPERS

T = {"type": None, "context": None, "children_spec": []}
"""A leaf."""


def node(kind: str, children: Sequence[object], keys: object = None) -> dict[str, object]:
    return {"type": kind, "context": json.dumps(keys), "children_spec": list(children)}


def tup(*children: object) -> dict[str, object]:
    return node("builtins.tuple", children)


def lis(*children: object) -> dict[str, object]:
    return node("builtins.list", children)


def dic(items: dict[object, object]) -> dict[str, object]:
    return node("builtins.dict", list(items.values()), list(items))


def ordered(items: dict[str, object]) -> dict[str, object]:
    return node("collections.OrderedDict", list(items.values()), list(items))


def spec(tree: object) -> str:
    return json.dumps([1, tree])


def call(*args: object, **kwargs: object) -> str:
    """The spec of a call."""
    return spec(tup(tup(*args), dic(dict(kwargs))))


def respecced(wrapper: str, in_spec: str | None = None, out_spec: str | None = None) -> str:
    """The text of a recorded wrapper with another spec."""
    text = (WRAPPERS / f"{wrapper}.wrapper.cpp").read_text(encoding="utf-8")
    for name, new in (("in", in_spec), ("out", out_spec)):
        if new is not None:
            text = re.sub(rf'{name}_spec_ = R"\(.*?\)";', lambda _, n=name, s=new: f'{n}_spec_ = R"({s})";', text)
    return text


@lru_cache(maxsize=64)
def repacked(wrapper: str, in_spec: str | None = None, out_spec: str | None = None) -> bytes:
    """A package around the recorded wrapper with another spec."""
    text = respecced(wrapper, in_spec, out_spec)
    return build_zip(model_parts("model/data/aotinductor/model", wrapper=text) + archive_parts())
