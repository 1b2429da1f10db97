"""How loud a record is, in clothes of loggers that nobody has listed; and words of levels that are none."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.lines import level_of, level_of_priority
from aotidoctor.logs.prefilter import SMALL
from tests.unit.logs.reading import read

LEVELS = (
    ("[Sun Jan 04 05:06:07 2026] [{}] pump 3", ("error", "warn", "info")),
    ("2026-01-04 05:06:07,890 - {}  [main:18] - pump 3", ("ERROR", "WARN", "INFO")),
    ("2026-01-04 05:06:07, {}      CBS   pump 3", ("Error", "Warning", "Info")),
    ("26/01/04 05:06:07 {} pump.Cache: pump 3", ("FATAL", "WARN", "INFO")),
    ('{{"ts": "2026", "lvl": "{}", "msg": "pump 3"}}', ("CRITICAL", "WARNING", "DEBUG")),
    ('{{"level":{},"time":1,"msg":"pump 3"}}', ("50", "40", "30")),
    ('{{"PRIORITY":"{}","MESSAGE":"pump 3"}}', ("3", "4", "6")),
    ('time="2026-01-04" level={} msg="pump 3"', ("error", "warning", "info")),
    ("01-04 05:06:07.890: {}/Pump(3388): pump 3", ("E", "W", "I")),
    ("01-04 05:06:07.890  3388  3388 {} Pump: pump 3", ("E", "W", "I")),
    ("{}1122 05:06:07.123 33 pump.cc:7] pump 3", ("E", "W", "I")),
    ("- 1117838570 2026.01.04 R02 2026-01-04-05.06.07.1 R02 RAS KERNEL {} pump 3", ("SEVERE", "WARNING", "INFO")),
    ("<{}>pump 3", ("27", "28", "30")),
)


@pytest.mark.parametrize(("record", "words"), LEVELS)
def test_a_level_is_seen_where_levels_stand(record, words):
    assert [level_of(record.format(word)) for word in words] == ["error", "warning", "info"]


@pytest.mark.parametrize(
    "text",
    ["log_level=error", "--log-level error", "level: error", "the error is small", "max_error = 3", "FAILED_LOGINS=3"],
)
def test_a_word_of_a_level_alone_is_none(text):
    assert level_of(text) == ""


def test_a_number_of_syslog_has_a_facility_or_none():
    assert [level_of_priority(number) for number in (3, 27, 4, 28, 6, 30)] == [
        "error",
        "error",
        "warning",
        "warning",
        "info",
        "info",
    ]


def test_a_record_in_a_record_keeps_its_level():
    assert read('{"level": "error", "fields": {"message": "pump 3"}}\n').unknown
    assert not read('{"level": "info", "fields": {"message": "pump 3 failed over"}}\n').unknown


@pytest.mark.parametrize(
    "line", ["2026-01-01 10:00:00 CRITICAL pump 3 says no", "2026-01-01 10:00:00 SEVERE pump 3 says no"]
)
def test_a_level_is_seen_in_a_log_that_is_not_read_line_by_line(line):
    news = "".join(f"2026-01-01 10:00:00 INFO step {number} fine\n" for number in range(9000))
    assert len(news) > SMALL
    assert read(f"{news}{line}\n{news}").unknown


NEWS = "2026-10-10 10:10:10 INFO worker: RuntimeError: CUDA error: an illegal memory access was encountered\n"


def test_a_known_failure_that_was_logged_as_news_comes_before_what_follows_from_it():
    dead = "2026-10-10 10:10:11 ERROR engine: EngineDeadError: EngineCore encountered an issue\n"
    _, diagnoses, reading = classify_text((NEWS + dead).encode(), "log")
    assert (diagnoses[0].cause, diagnoses[0].looked_like[:6]) == ("cuda-illegal-access", "line 1")
    assert [(event.level, event.echo_of) for event in reading.events] == [("error", None), ("error", 1)]


def test_it_stays_news_where_nothing_failed_after_it():
    _, diagnoses, reading = classify_text(f"{NEWS}2026-10-10 10:10:11 INFO worker: retried, all done\n".encode(), "log")
    assert diagnoses == ()
    assert [event.level for event in reading.events] == ["mention"]
