"""Names in the package: the words that the glossary replaces stand in none, and no two classes have the same one."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import aotidoctor

FOLDER = Path(aotidoctor.__file__).parent
GLOSSARY = (FOLDER.parent / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Glossary", 1)[1]
# In the sentence below the table, each in backquotes.
BANNED = frozenset(re.findall(r"`(\w+)`", GLOSSARY.split("No identifier contains", 1)[1].split(".", 1)[0]))
# What users and plugins have used already: options, fields of records and of JSON.
PUBLIC = {"rungs", "skip_rungs", "moot"}
# The library's report and the record that every stage shares.
TWICE = {"Report": 2}


@cache
def trees():
    return {path.relative_to(FOLDER): ast.parse(path.read_text(encoding="utf-8")) for path in FOLDER.rglob("*.py")}


def identifiers(tree):
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name


def words(name):
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()))


def test_words_that_the_glossary_replaces_stand_in_no_identifier():
    assert {"told", "said", "wish", "ladder"} <= BANNED
    found = {
        f"{path}: {name}"
        for path, tree in trees().items()
        for name in identifiers(tree)
        if name not in PUBLIC and words(name) & BANNED
    }
    assert found == set()


def test_no_two_classes_have_the_same_name():
    names = Counter(node.name for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert {name: count for name, count in names.items() if count > 1} == TWICE
