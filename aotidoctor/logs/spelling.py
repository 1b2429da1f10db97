"""A line as the program printed it: undoes what web pages, editors and translated tools do to its spelling.

Entities of HTML become characters, the quotes of editors and of other languages those of ASCII. Compilers, linkers,
loaders and shells print in the language of their user: their fixed phrases are put back into English, so that one
pattern knows them all.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache, partial
from pathlib import Path

from aotidoctor.model import toml

_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#[xX][0-9a-fA-F]{1,5});")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02\u300c\u300d", '"'),
        **dict.fromkeys("\u00a0\u2007\u202f\u2009\u3000", " "),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060", ""),
        "\uff1a": ":",
        "\u2026": "...",
    }
)
# The level of a diagnostic, behind a place or the name of a tool.
_LEVEL = re.compile(
    r"(?P<before>(?::\d+|\(\d+(?:,\d+)?\)|(?:\+\+|gcc|clang|ld|cc1plus|collect2|nvcc|cl)(?:\.\w+)?) ?:\s?)"
    r"(?P<fatal>fataler |fatal |schwerwiegender |致命|致命的な)?"
    r"(?:erreur(?: fatale)?|Fehler|errore(?: fatale| irreversibile)?|erro(?: fatal)?|fout|error fatal|ошибка|错误|錯誤"
    r"|エラー|오류|błąd|помилка|hata|fel) ?: ?"
)
# ASCII words of which one is in every phrase that may come without another sign.
_FOREIGN = re.compile(
    r"rreur|ehler|erro(?:re)?\b|\bfout\b|\bfel ?:|nicht|keine|Abgebrochen|Abandon|Abortado|Speicher|Permi|introuvable|"
    r"encontra|sin definir|Aucun|ne peut|No existe|No queda|esist|inexist|trova|angegeben|fehlgeschlagen|di paging|"
    r"application Win32|insuffi|insuficiente"
)


def plain(text: str) -> str:
    """``text`` in ASCII's quotes and, where it is a tool's fixed phrase, in English."""
    if "&" in text and _ENTITY.search(text) is not None:
        text = html.unescape(text)
    if text.isascii():
        return _english(text) if _FOREIGN.search(text) is not None else text
    return _english(text.translate(_SIGNS))


def _english(text: str) -> str:
    text = _LEVEL.sub(_error, text)
    for phrase, meant in _phrases():
        if phrase.search(text) is not None:
            # French has a space before its colons.
            text = phrase.sub(partial(_meant, meant), text).replace(" : ", ": ")
    return text


@lru_cache(maxsize=1)
def _phrases() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = toml.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
    return tuple((re.compile(said), entry["meant"]) for entry in table["phrase"] for said in entry["said"])


def _meant(words: str, hit: re.Match[str]) -> str:
    return words.format(hit.groupdict().get("name") or "")


def _error(hit: re.Match[str]) -> str:
    fatal = "fatal " if hit["fatal"] or "fatal" in hit[0] or "schwer" in hit[0] or "irrevers" in hit[0] else ""
    return f"{hit['before']}{fatal}error: "
