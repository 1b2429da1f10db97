"""What a real server core said of configs, recorded: we accept what it accepts, and refuse at its line what it refuses."""

from __future__ import annotations

import json
import re

import pytest

from aotidoctor.triton.config_schema import TextFormatError
from aotidoctor.triton.text_format import parse_config
from tests.every import every
from tests.oracle.configs import CONFIGS, Config
from tests.oracle.server import VERDICTS

SAID = json.loads(VERDICTS.read_text())
UNREADABLE = re.compile(r"failed to read text proto: (\d+):\d+: ")
# What is named here is where the mistake is; the server goes on, and stumbles over what comes next.
OTHER_LINE = {"newline_in_string", "unclosed_string", "number_then_letters", "integer_10", "integer_14"}


def test_every_config_has_a_verdict() -> None:
    assert [config.name for config in CONFIGS] == list(SAID)
    assert len(CONFIGS) >= 40


@every("config", CONFIGS, ids=lambda config: config.name)
def test_the_text(config: Config) -> None:
    found = UNREADABLE.match(SAID[config.name] or "")
    if found is None:
        parse_config(config.for_the_oracle)
        return
    with pytest.raises(TextFormatError) as caught:
        parse_config(config.for_the_oracle)
    if config.name not in OTHER_LINE:
        assert caught.value.at.line == int(found[1])
