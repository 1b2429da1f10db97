"""Whatever JSON stands for a call spec: parsing ends, ordinals number the names, and equal names are reported."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.triton.call_spec import find_release, input_names, output_names, parse_inputs, parse_outputs
from aotidoctor.triton.tensor_names import name_table
from tests.unit.readers.contract.conftest import artifact_of, entry_of, recorded

KEYS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["a", "a][b", "b", ""])
TYPES = st.sampled_from(["builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", None, 3])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WILD = st.recursive(
    ANY,
    lambda inner: st.fixed_dictionaries(
        {"type": TYPES, "context": ANY | ANY.map(json.dumps), "children_spec": st.lists(inner, max_size=4) | ANY}
    ),
    max_leaves=20,
)


def _dict(pairs):
    keys = [key for key, _ in pairs]
    return {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [child for _, child in pairs]}


def _sequence(kind):
    return lambda children: {"type": kind, "context": "null", "children_spec": children}


LEAF = st.just({"type": None, "context": None, "children_spec": []})
TREE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(_sequence("builtins.tuple")),
        st.lists(inner, min_size=1, max_size=3).map(_sequence("builtins.list")),
        st.lists(st.tuples(KEYS, inner), max_size=3, unique_by=lambda pair: pair[0]).map(_dict),
    ),
    max_leaves=10,
)
CALL = st.builds(
    lambda args, kwargs: [1, _sequence("builtins.tuple")([_sequence("builtins.tuple")(args), _dict(kwargs)])],
    st.lists(TREE, min_size=1, max_size=3),
    st.lists(st.tuples(KEYS, TREE), max_size=2, unique_by=lambda pair: pair[0]),
)


@lru_cache(maxsize=1)
def contract():
    entry = entry_of(recorded("joint"))
    return read_contract(artifact_of(entry), entry)


@settings(max_examples=300, deadline=None)
@given(WILD | st.tuples(st.just(1), WILD).map(list))
def test_any_json_is_read(document):
    text = json.dumps(document)
    for parsed, names in ((parse_inputs(text), input_names), (parse_outputs(text), output_names)):
        assert parsed.root is not None or parsed.failures
        if parsed.root is not None and not parsed.failures:
            names(parsed.root)
    for release in ("26.04", "26.05"):
        name_table(replace(contract(), in_spec=text, out_spec=text), find_release(release))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_read(text):
    assert parse_inputs(text).root is not None or parse_inputs(text).failures


@settings(max_examples=200, deadline=None)
@given(CALL, TREE)
def test_ordinals_number_the_names_and_equal_names_are_told(call, result):
    facts = replace(contract(), in_spec=json.dumps(call), out_spec=json.dumps([1, result]))
    table = name_table(facts, find_release("26.05"))
    for rows, side in ((table.inputs, "INPUT"), (table.outputs, "OUTPUT")):
        assert [row.ordinal for row in rows] == [f"{side}__{at}" for at in range(len(rows))]
        known = [name for row in rows for name in row.names]
        assert len(known) == len(set(known))
        forward = [row.forward for row in rows]
        assert sum(row.lost for row in rows) == len(forward) - len(set(forward))
    lost = [row.path for row in table.inputs if row.lost]
    assert lost == [item.path for item in table.obstacles if item.kind == "collision"]
