"""The words that every match of a regular expression must contain, read off its text.

A small reader of the syntax, many times faster than compiling it: it knows plain characters, escapes, classes, groups
and quantifiers, and gives up (no words) where it does not. Giving up costs time, never a match.
"""

from __future__ import annotations

import re

# In letters: what else a word is made of tells little.
LEAST = 4
_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\]){0,400}\])|(?P<open>\((?:\?(?:P<\w+>|:|[^)P:]))?)|(?P<close>\))"
    r"|(?P<repeat>[*+?]\??|\{\d{0,9},?\d{0,9}\}\??)|(?P<bar>\|)|(?P<anchor>[\^$.])|(?P<plain>.)",
    re.DOTALL,
)
_GROUPS = ("(?:", "(?P<", "(?<!", "(?<=", "(?!", "(?=")
_OTHERS = re.compile(r"[^a-zA-Z]")
# Escapes that stand for one character of their own.
_SELF = re.compile(r"\\[^a-zA-Z0-9]")


def literals_of(regex: str) -> tuple[str, ...]:
    """The longest word of each alternative; empty where one of them has none."""
    if regex.startswith("(?") and not regex.startswith(_GROUPS):
        # Flags: not for this reader.
        return ()
    best = [max(words, key=_letters, default="") for words in _alternatives(regex)]
    return tuple(dict.fromkeys(best)) if all(_letters(word) >= LEAST for word in best) else ()


def may_match(words: tuple[str, ...], text: str) -> bool:
    """Whether ``text`` is worth a search for the expression whose words these are."""
    return not words or any(word in text for word in words)


def _letters(word: str) -> int:
    return len(_OTHERS.sub("", word))


def _alternatives(regex: str) -> list[list[str]]:
    """The runs of plain characters outside of groups, for each alternative of the whole expression."""
    found: list[list[str]] = [[""]]
    depth = 0
    for token in _TOKEN.finditer(regex):
        words = found[-1]
        match token.lastgroup:
            case "open":
                depth += 1
                words.append("")
            case "close":
                depth -= 1
            case _ if depth:
                continue
            case "bar":
                found.append([""])
            case "plain":
                words[-1] += token[0]
            case "escape" if _SELF.match(token[0]):
                words[-1] += token[0][1]
            case "repeat":
                # What may be missing, or comes several times, ends the word before it.
                words[-1] = words[-1][:-1] if token[0][0] != "+" else words[-1]
                words.append("")
            case _:
                words.append("")
    return found
