"""Causes, codes and the other words of documents stay what they are, whatever the user and the machine are called."""

from __future__ import annotations

import json
import pkgutil
import re
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

import aotidoctor.model
import aotidoctor.probes
from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import COMMANDS
from aotidoctor.commands.explain import name_and_text
from aotidoctor.model.report import playbook_files
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.reports.json.json_report import render_json
from aotidoctor.reports.redact.ordinary_words import is_ordinary
from aotidoctor.reports.redact.private_words import Identity
from aotidoctor.reports.redact.redactor import Redactor
from aotidoctor.reports.sarif import render_sarif
from tests.unit.reports import builders

PARTS = {"cause", "causes", "code", "verdict", "stage", "status", "severity", "kind", "command", "probe", "name", "id"}


def schema_texts():
    yield from (path.stem for path in playbook_files())
    for check in CHECKS:
        yield from (check.code, check.name)
    yield from (*COMMANDS, *ITEMSIZE, "healthy", "problem", "unknown")
    for source in Path(aotidoctor.__file__).parent.rglob("*.py"):
        yield from re.findall(r'"(AD-[A-Z0-9-]+)"', source.read_text(encoding="utf-8"))
    yield from (one.name for one in pkgutil.iter_modules(aotidoctor.probes.__path__))
    for found in pkgutil.iter_modules(aotidoctor.model.__path__):
        for value in vars(import_module(f"aotidoctor.model.{found.name}")).values():
            if isinstance(value, type) and issubclass(value, Enum):
                yield from (str(one.value) for one in value)


def test_no_word_of_a_document_is_taken_for_a_name():
    texts = {text.casefold() for text in schema_texts()}
    words = {word for text in texts for word in re.split(r"[^a-z0-9]+", text) if not word.isdigit()}
    assert sorted(word for word in words if not is_ordinary(word)) == []
    assert is_ordinary("input-dtype")
    assert not is_ordinary("zaphod")
    assert not is_ordinary("input-zaphod")
    assert not is_ordinary("jo.lee")


def schema_parts(value, path=""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}", None
            if key in PARTS and isinstance(item, str):
                yield f"{path}.{key}", item
            yield from schema_parts(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from schema_parts(item, path)


@pytest.mark.parametrize("user", ["dtype", "input", "confirmed", "problem", "float32", "limit", "input-dtype", "error"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["misleading", "unknown"])
def test_a_user_of_any_name_has_the_same_document(user, strict, name):
    report = builders.GOLDEN[name]()
    hidden = Redactor(Identity.of({"HOME": f"/home/{user}", "USER": user}, user), strict=strict).value(report)
    plain = Redactor(Identity.of({"HOME": "/home/zaphod", "USER": "zaphod"}, "zaphod"), strict=strict).value(report)
    for render in (render_json, lambda one: render_sarif(one, "error", name_and_text)):
        before, after = ([*schema_parts(json.loads(render(one)))] for one in (plain, hidden))
        assert after == before


def test_such_a_name_is_hidden_where_a_person_is_meant():
    hide = Redactor(Identity.of({"HOME": "/home/dtype", "USER": "dtype"}, "limit"))
    assert hide.text("/home/dtype/m.pt2 of dtype@limit: AD-LIMIT, input-dtype") == (
        "<home>/m.pt2 of <user>@<host>: AD-LIMIT, input-dtype"
    )


def test_a_variable_named_like_a_secret_that_holds_a_word_of_ours_hides_nothing():
    hide = Redactor(Identity.of({"SECRET_STORE": "confirmed", "API_TOKEN": "zaphod-beeblebrox"}, "here"))
    assert hide.text("confirmed zaphod-beeblebrox") == "confirmed <secret-1>"
