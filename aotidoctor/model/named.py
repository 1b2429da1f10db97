"""Flat names, as .npz and .safetensors have them: ``arr_0``, ``args[1]['a']``, ``kwargs.mask``, ``input_ids``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.model.tree import Container, Leaf, Tree

Place = tuple[int, ...]
Key = str | int
Steps = tuple[Key, ...]

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[(\w+)\]")
_ARRAY = re.compile(r"arr_(\d{1,6})|(\d{1,6})")


def is_argument_name(name: str) -> bool:
    """Whether a name says which argument it is: ``arr_0``, ``args[0]``, ``args.0``, ``kwargs['x']``, ``kwargs.x``."""
    return argument_steps(name) is not None


def argument_steps(name: str) -> tuple[str, Steps] | None:
    """``("args", (1, "a"))`` for ``args[1]['a']``; None for a name that is no path."""
    array = _ARRAY.fullmatch(name)
    if array is not None:
        return "args", (int(array[1] or array[2]),)
    head = next((word for word in ("args", "kwargs") if name.startswith((f"{word}.", f"{word}["))), None)
    steps = None if head is None else _steps(name[len(head) :])
    if head is None or not steps or isinstance(steps[0], int) != (head == "args"):
        return None
    return head, steps


def _steps(text: str) -> Steps | None:
    steps: list[Key] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        word = match[1] or match[2] or match[3] or match[4] or match[5] or ""
        quoted = match[3] is not None or match[4] is not None
        steps.append(int(word) if word.isdecimal() and len(word) < 7 and not quoted else word)
        position = match.end()
    return tuple(steps)


def arrange_names(
    names: Sequence[str], *, flat: bool, expected: tuple[Container[int], Container[int]] | None
) -> tuple[Container[Place], Container[Place], tuple[str, ...]]:
    """Args, kwargs (leaves: ``(index of the name,)``) and notes. ``flat`` as in ``forms.arrange``."""
    args: dict[Steps, Place] = {}
    kwargs: dict[Steps, Place] = {}
    rest: list[int] = []
    for index, name in enumerate(names):
        path = argument_steps(name)
        if path is None:
            rest.append(index)
        else:
            (args if path[0] == "args" else kwargs)[path[1]] = (index,)
    keywords, positional, notes = _assign(names, rest, len({steps[0] for steps in args}), expected)
    start = 1 + max((steps[0] for steps in args if isinstance(steps[0], int)), default=-1)
    args.update({(start + offset,): (index,) for offset, index in enumerate(positional)})
    kwargs.update({(names[index],): (index,) for index in keywords})
    want_args, want_kwargs = expected or (None, None)
    return (
        _nest(args, "tuple", want_args),
        _nest(kwargs, "dict", want_kwargs),
        (*notes, *_gap_notes(args)) if flat else notes,
    )


def _assign(
    names: Sequence[str], rest: list[int], given: int, expected: tuple[Container[int], Container[int]] | None
) -> tuple[list[int], list[int], tuple[str, ...]]:
    """Which of the names without a path are keywords and which are positional, and what was assumed."""
    if expected is None or not rest:
        return rest, [], ()
    wanted = set(expected[1].keys)
    keywords = [index for index in rest if names[index] in wanted]
    others = [index for index in rest if names[index] not in wanted]
    open_places = len(expected[0].children) - given
    if not others or open_places <= 0:
        return rest, [], ()
    if not wanted:
        positional, surplus = others, []
    else:
        positional, surplus = others[:open_places], others[open_places:]
    if len(others) == 1 and open_places == 1:
        return keywords, positional, (f"{names[others[0]]!r} taken as the one positional argument",)
    order = ", ".join(names[index] for index in positional)
    note = f"positional arguments taken in file order: {order}; name them args[0], args[1]... to be sure"
    return keywords + surplus, positional, (note,)


def _gap_notes(args: dict[Steps, Place]) -> tuple[str, ...]:
    indices = sorted({steps[0] for steps in args if isinstance(steps[0], int)})
    if indices == list(range(len(indices))):
        return ()
    return (f"positions without a gap were assumed: the file names {', '.join(map(str, indices[:10]))}",)


def _nest(entries: dict[Steps, Place], kind: str, expected: Tree[int] | None) -> Container[Place]:
    """The container of ``entries``; inner ones are of the expected type, else a list for numbers and a dict for names.

    A name that is both a leaf and a prefix of another (``args[0]``, ``args[0]['a']``) keeps its leaf.
    """
    groups: dict[Key, dict[Steps, Place]] = {}
    for steps, place in entries.items():
        groups.setdefault(steps[0], {})[steps[1:]] = place
    order: list[Key] = [*groups] if kind == "dict" else sorted(groups, key=lambda key: (isinstance(key, str), key))
    children = tuple(_child(groups[key], _expected_child(expected, key)) for key in order)
    return Container(type=kind, children=children, keys=tuple(order) if kind == "dict" else ())


def _child(group: dict[Steps, Place], expected: Tree[int] | None) -> Tree[Place]:
    if () in group:
        return Leaf(value=group[()])
    kind = "list" if all(isinstance(steps[0], int) for steps in group) else "dict"
    if kind == "list" and isinstance(expected, Container) and expected.type in ("tuple", "dict"):
        kind = expected.type
    return _nest(group, kind, expected)


def _expected_child(expected: Tree[int] | None, key: Key) -> Tree[int] | None:
    if not isinstance(expected, Container):
        return None
    if expected.keys:
        return expected.children[expected.keys.index(key)] if key in expected.keys else None
    return expected.children[key] if isinstance(key, int) and key < len(expected.children) else None
