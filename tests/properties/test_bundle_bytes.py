"""Whatever a file holds, ``analyze`` gives a report or says that it cannot; and redacting twice is once."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aotidoctor.commands.analyze.analyze import analyze
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.redact.redactor import Redactor
from tests.unit.commands.bundle.conftest import identity, made, members, packed
from tests.unit.reports import builders

WHOLE = made(builders.bad_inputs()).data
PARTS = {name: data for name, data in members(WHOLE).items() if name != "bundle.json"}
REPORT, CASE = (json.loads(PARTS[name]) for name in ("report.json", "case.json"))
SLOW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("int64"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def survives(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b.zip"
        path.write_bytes(data)
        try:
            report = analyze(str(path))
        except CannotExamineError:
            return
        json_.render_json(report)
        assert list(Path(folder).iterdir()) == [path]


@SLOW
@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda tail: b"PK\3\4" + tail + b"PK\5\6" + b"\0" * 18))
def test_any_bytes(data):
    survives(data)


@SLOW
@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 99)
)
def test_a_damaged_bundle(changes, cut):
    data = bytearray(WHOLE)
    for place, value in changes:
        data[place] = value
    survives(bytes(data[: len(data) - cut]))


def paths(document, prefix=()):
    found = [prefix] if prefix else []
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, item in items:
        found += paths(item, (*prefix, key))
    return found


def changed(document, path, value):
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(copy).encode()


@SLOW
@given(st.sampled_from(paths(CASE)), JUNK)
def test_any_value_in_the_case(path, value):
    survives(packed(PARTS | {"case.json": changed(CASE, path, value)}))


@SLOW
@given(st.sampled_from(paths(REPORT)), JUNK)
def test_any_value_in_the_report(path, value):
    survives(packed(PARTS | {"report.json": changed(REPORT, path, value)}))


@SLOW
@given(st.sampled_from(sorted(PARTS)), st.binary(max_size=200))
def test_any_member(name, data):
    survives(packed(PARTS | {name: data}))


NAMES = ["/home/marianne", "marianne", "BLUEBIRD", "/home/someone/x", "password=Xk29fj2k", "Xk29fj2k", "someone"]
FORMS = ["10.1.2.3:80", "%2Fhome%2Fmarianne", "bWFyaWFubmU", "a@corp.example.com", "tensor([1.5])"]
GLUE = ["<user>", "<", ">", "_", "/", " ", "\n", "Net", '"']
WORDS = st.sampled_from([*NAMES, *FORMS, *GLUE])


@settings(deadline=None)
@given(st.lists(st.lists(WORDS, max_size=8).map("".join), max_size=4))
def test_redacting_twice_is_once(texts):
    once = Redactor(identity(), strict=True).value(texts)
    assert Redactor(identity(), strict=True).value(once) == once
