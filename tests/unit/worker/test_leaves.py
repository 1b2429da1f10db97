"""Structures rebuilt leaf by leaf, with container classes of libraries. They need torch, no package and no process."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict, defaultdict
from typing import Any

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.tensors import iterate_leaves, rebuild, rebuild_result

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


class Answer(OrderedDict):  # type: ignore[type-arg]
    """As output classes of transformers are: a mapping that forbids ``update``."""

    def update(self, *_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError("You cannot use update on an Answer instance.")


class Broken(Answer):
    """Cannot be put together from values."""


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    from torch.utils import _pytree

    def refuse(_values: Any, _names: Any) -> Any:
        raise TypeError("cannot be made from values")

    def put_together(values: Any, names: Any) -> Answer:
        made = Answer()
        for name, value in zip(names, values, strict=True):
            made[name] = value
        return made

    def flatten(answer: Answer) -> tuple[list[Any], list[str]]:
        return list(answer.values()), list(answer)

    _pytree.register_pytree_node(Answer, flatten, put_together)
    _pytree.register_pytree_node(Broken, flatten, refuse)


def _filled(kind: type[Answer]) -> Answer:
    made = kind()
    made["logits"] = 1
    made["states"] = (2, [3])
    return made


def double(_path: str, leaf: Any) -> Any:
    return leaf * 2


def test_a_mapping_that_forbids_update_is_rebuilt_as_pytree_does() -> None:
    new = rebuild(_filled(Answer), "result", double)
    assert type(new) is Answer
    assert dict(new) == {"logits": 2, "states": (4, [6])}


def test_leaves_of_a_mapping_are_named_by_key() -> None:
    assert [path for path, _ in iterate_leaves(_filled(Answer), "result")] == [
        "result['logits']",
        "result['states'][0]",
        "result['states'][1][0]",
    ]


def test_a_result_that_cannot_be_rebuilt_is_kept_leaf_by_leaf() -> None:
    with pytest.raises(TypeError):
        rebuild(_filled(Broken), "result", double)
    assert rebuild_result(_filled(Broken), double) == [2, 4, 6]


def test_plain_mappings_keep_their_type() -> None:
    for value in ({"a": 1}, OrderedDict(a=1), defaultdict(int, a=1)):
        new = rebuild(value, "args", double)
        assert type(new) is type(value)
        assert new == {"a": 2}
