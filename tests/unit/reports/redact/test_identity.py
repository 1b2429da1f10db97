"""Redaction knows the names of the documents' fields: it reads them off the sources, wherever these are."""

from __future__ import annotations

import pytest

from aotidoctor.reports.redact import ordinary_words


# Of the vocabulary; of the JSON writer; of a bundle.
@pytest.mark.parametrize("name", ["not_checked", "took_effect", "environment"])
def test_the_name_of_a_field_is_structural(name):
    assert ordinary_words.is_structural(name)


def test_a_name_that_no_field_has_is_not():
    assert not ordinary_words.is_structural("zaphod")
