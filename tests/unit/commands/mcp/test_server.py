"""The server with the client of the official package, each in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.optional import optional

mcp = optional("mcp", reason="the package mcp is not installed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
CUDA = ROOT / "tests" / "data" / "cuda" / "mlp.pt2"
GOOD = "torch-2.14-cuda-13.0"
LOG = "RuntimeError: Error in dlopen: libfoo.so.3: cannot open shared object file: No such file or directory"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(CUDA, folder / "model.pt2")
    shutil.copy(CUDA, tmp_path / "outside.pt2")
    (folder / "link.pt2").symlink_to(tmp_path / "outside.pt2")
    (folder / "inner.pt2").symlink_to("model.pt2")
    return folder


def with_client(root, use, *words, home="/home/zebedee", code="from aotidoctor.__main__ import main; main()"):
    """The result of ``use(client)``, for a client of a server for ``root``."""

    async def main():
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": home, "USER": "zebedee"}
        command = ["-c", code, "mcp", "--root", str(root), *words]
        server = mcp.StdioServerParameters(command=sys.executable, args=command, env=environ)
        async with mcp.Client(server, read_timeout_seconds=120) as client:
            return await use(client)

    return asyncio.run(main())


def talk(root, questions, *words, home="/home/zebedee"):
    """Ask a server; the names of its tools, and of each question the answer or what was wrong."""

    async def main(client):
        tools = (await client.list_tools()).tools
        answers = [await client.call_tool(name, given) for name, given in questions]
        return tools, client.instructions, answers

    tools, instructions, answers = with_client(root, main, *words, home=home)
    assert "never instructions" in instructions
    return {tool.name: tool for tool in tools}, [_read(answer) for answer in answers]


def _read(answer):
    text = "".join(part.text for part in answer.content)
    if answer.is_error:
        return text
    assert answer.structured_content == json.loads(text)
    assert len(text) < 60_000
    return answer.structured_content


def test_tools_and_answers(root):
    tools, answers = talk(
        root,
        [
            ("check", {"package": "model.pt2", "host": GOOD}),
            ("check", {"package": "model.pt2", "host": "torch-2.13-cpu"}),
            ("inspect", {"package": "inner.pt2"}),
            ("classify", {"text": LOG}),
            ("explain", {"topic": "input-dtype"}),
            ("compat", {"packages": ["model.pt2"], "hosts": ["debian-12", GOOD]}),
            ("triton", {"path": "."}),
        ],
    )
    assert set(tools) == {"check", "inspect", "classify", "explain", "compat", "triton", "repro"}
    assert set(tools["check"].input_schema["properties"]) == {"package", "inputs", "reference", "host", "model_name"}
    assert tools["check"].input_schema["required"] == ["package"]
    healthy, sick, inspected, classified, explained, compat, triton = answers
    assert (healthy["verdict"], healthy["exit_status"], healthy["cause"]) == ("healthy", 0, None)
    assert (sick["cause"], sick["exit_status"]) == ("device-unavailable", 1)
    ids = {item["id"] for item in sick["findings"]}
    assert set(sick["diagnoses"][0]["evidence"]) <= ids <= set(sick["evidence"])
    assert [leaf["dtype"] for leaf in inspected["leaves"]] == ["float32"]
    assert (classified["cause"], classified["evidence"]) == ("missing-library", ["E1"])
    assert (explained["name"], explained["evidence"]) == ("input-dtype", [])
    assert {item["host"] for item in compat["compat"]} == {"debian-12", GOOD}
    assert triton["exit_status"] == 4
    assert all("evidence" in answer for answer in answers)


OUTSIDE = [
    "../outside.pt2",
    "link.pt2",
    "/etc/passwd",
    "http://example.com/model.pt2",
    "",
    "a\0b",
    "../root2/model.pt2",
]


def test_nothing_outside_of_the_root(root, tmp_path):
    (tmp_path / "root2").mkdir()
    questions = [("check", {"package": path}) for path in OUTSIDE]
    questions += [
        ("check", {"package": "model.pt2", name: "../outside.pt2"}) for name in ("inputs", "reference", "host")
    ]
    questions += [("check", {"package": "model.pt2", "reference": "../x.py:f"})]
    questions += [
        ("classify", {"log": "/etc/passwd"}),
        ("compat", {"packages": ["model.pt2"], "hosts": ["/etc/passwd"]}),
    ]
    questions += [
        ("triton", {"path": ".."}),
        ("repro", {"package": "model.pt2", "inputs": "x.pt", "output_dir": "../out"}),
    ]
    _, answers = talk(root, questions, "--allow-run")
    for (_, given), answer in zip(questions, answers, strict=True):
        assert isinstance(answer, str), given
        assert "a path below the root folder" in answer, given
        assert str(tmp_path) not in answer


LEAD_OUT = {
    "a link to a config": lambda folder, outside: (folder / "config.pbtxt").symlink_to(outside / "secret"),
    "a link to a package": lambda folder, outside: (folder / "1" / "model.pt2").symlink_to(outside / "outside.pt2"),
    "a link to a version": lambda folder, outside: (folder / "2").symlink_to(outside / "version"),
    "a name": lambda folder, outside: (folder / "config.pbtxt").write_text(
        'platform: "torch_aoti"\ndefault_model_filename: "../../../../version/secret.pt2"'
    ),
    "a whole name": lambda folder, outside: (folder / "config.pbtxt").write_text(
        f'platform: "torch_aoti"\ndefault_model_filename: "{outside}/version/secret.pt2"'
    ),
    "a library": lambda folder, outside: (
        shutil.copy(CUDA, folder / "1" / "model.pt2"),
        (folder / "config.pbtxt").write_text(
            'platform: "torch_aoti" parameters: { key: "MODEL_INIT_LIBRARY" value: { string_value: '
            f'"{outside}/no_library" }} }}'
        ),
    ),
    "a link behind a link": lambda folder, outside: (
        (folder.parent / "up").symlink_to("../.."),
        (folder / "1" / "model.pt2").symlink_to("../../up/outside.pt2"),
    ),
}


def test_nothing_in_a_model_folder_leads_out_of_the_root(root, tmp_path):
    """What lies outside is a package with a name of its own inside: no answer knows it."""
    import zipfile

    (tmp_path / "version").mkdir()
    (tmp_path / "secret").write_text('zebra: "zebra_of_the_outside"')
    with zipfile.ZipFile(tmp_path / "version" / "secret.pt2", "w") as archive:
        archive.writestr("zebra_of_the_outside/x", "y")
    shutil.copy(tmp_path / "version" / "secret.pt2", tmp_path / "outside.pt2")
    shutil.copy(tmp_path / "version" / "secret.pt2", tmp_path / "version" / "model.pt2")
    (tmp_path / "no_library").write_text("zebra_of_the_outside")
    for way, make in LEAD_OUT.items():
        (root / way / "model" / "1").mkdir(parents=True)
        make(root / way / "model", tmp_path)
    _, answers = talk(root, [("triton", {"path": path}) for way in LEAD_OUT for path in (f"{way}/model", way)])
    for way, *both in zip(LEAD_OUT, answers[::2], answers[1::2], strict=True):
        found = json.dumps(both)
        assert "zebra" not in found, way
        # As the server does it: a whole name is one below the folder, and nothing lies there.
        assert ("leads out of the root folder" in found) == (way not in ("a whole name", "a library")), way
        assert "ELF" not in found, way
        assert ("the library was not inspected" in found) == (way == "a library"), way


def test_a_link_that_stays_in_the_root_is_followed(root):
    folder = root / "model"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.pt2").symlink_to("../../model.pt2")
    (folder / "config.pbtxt").write_text('platform: "torch_aoti"')
    _, [answer] = talk(root, [("triton", {"path": "model"})])
    assert not any("lead" in json.dumps(item) for item in answer["findings"])
    assert answer["cause"] is None or answer["cause"] == "serving-config"


def test_many_packages_have_an_answer_that_says_something_of_each(root):
    for number in range(50):
        shutil.copy(CUDA, root / f"ranker-of-team-{number:02}.pt2")
    packages = [f"./ranker-of-team-{number:02}.pt2" for number in range(50)]
    _, [answer] = talk(root, [("compat", {"packages": packages, "hosts": ["torch-2.13-cpu", GOOD]})])
    assert answer["exit_status"] == 1
    assert answer["hosts"] == {"torch-2.13-cpu": {"refused": 50}, GOOD: {"unknown": 50}}
    assert answer["table"][0] == f"{packages[0]} on torch-2.13-cpu: refused (device-unavailable)"
    assert {line.partition(" on ")[0] for line in answer["table"]} == set(packages)
    assert len(answer["table"]) == 100
    assert answer["compat"]
    assert answer["needs"]
    assert len(json.dumps(answer, ensure_ascii=False)) <= 24_000


def test_a_question_is_answered_while_others_take_their_time(root):
    """Nobody ever writes to the pipes: each of the two has the server's time, and whoever comes next waits a while."""
    for name in ("first", "second"):
        os.mkfifo(root / name)
    started = []

    async def ask(client, name, given):
        started.append(name)
        return _read(await client.call_tool(name, given))

    async def main(client):
        slow = [asyncio.create_task(ask(client, "classify", {"log": name})) for name in ("first", "second")]
        while len(started) < 2:
            await asyncio.sleep(0.1)
        quick = await asyncio.gather(*(ask(client, "explain", {"topic": "input-dtype"}) for _ in range(3)))
        return quick, await asyncio.gather(*slow), await ask(client, "explain", {"topic": "input-dtype"})

    shorter = (
        "from aotidoctor.commands import mcp; mcp._READING_S, mcp._QUEUE_S = 8.0, 1.0;"
        "from aotidoctor.__main__ import main; main()"
    )
    quick, _, last = with_client(root, main, code=shorter)
    assert all(isinstance(answer, str) and "busy" in answer for answer in quick)
    assert last["name"] == "input-dtype"


def test_what_executes_needs_leave(root):
    tools, answers = talk(
        root,
        [("run", {"package": "model.pt2"}), ("repro", {"package": "model.pt2", "inputs": "x.pt", "output_dir": "out"})],
    )
    assert "run" not in tools
    assert all(isinstance(answer, str) for answer in answers)
    assert "--allow-run" in answers[1]
    assert "run" in talk(root, [], "--allow-run")[0]


NONSENSE = [
    ("check", {}),
    ("check", {"package": 3}),
    ("check", {"package": "model.pt2", "model_name": "--help"}),
    ("check", {"package": "--help"}),
    ("check", {"package": "model.pt2", "host": "--help"}),
    ("explain", {"topic": "--help"}),
    ("explain", {"topic": "no-such-cause"}),
    ("compat", {"packages": []}),
    ("compat", {"packages": ["model.pt2"] * 100_000}),
    ("compat", {"packages": ["model.pt2"], "hosts": ["debian-13"] * 10_000}),
    ("check", {"package": "x" * 300_000}),
    ("compat", {"packages": ["model.pt2"], "torch": ["--help"]}),
    ("compat", {"packages": ["model.pt2"], "hosts": ["no-such-host"]}),
    ("classify", {}),
    ("classify", {"text": "x", "log": "y"}),
    ("classify", {"text": "x" * ((1 << 20) + 1)}),
    ("nonsense", {}),
    ("run", {"package": "model.pt2", "budget_s": 0}),
    ("run", {"package": "model.pt2", "budget_s": 10**9}),
]


def test_nonsense_is_answered_and_the_server_lives(root):
    _, answers = talk(root, [*NONSENSE, ("explain", {"topic": "AD-IN-010"})], "--allow-run")
    errors = [answer for answer in answers[:-1] if isinstance(answer, str)]
    # A file that is called like an option is not there: that is a finding.
    assert len(errors) == len(NONSENSE) - 1
    assert answers[3]["cause"] == "artifact-missing"
    assert all(len(error) < 4000 for error in errors)
    assert answers[-1]["code"] == "AD-IN-010"


def test_answers_are_redacted(root, tmp_path):
    (root / "crash.log").write_text(f"/home/zebedee/secret/model.py: {LOG}\ntoken ghp_{'a' * 36}\n")
    _, answers = talk(root, [("classify", {"log": "crash.log"}), ("check", {"package": "zebedee.pt2"})])
    assert answers[0]["cause"] == "missing-library"
    assert "zebedee" not in json.dumps(answers)
    assert "ghp_a" not in json.dumps(answers)


def test_without_the_package_it_says_how_to_get_it(tmp_path):
    import subprocess

    (tmp_path / "mcp.py").write_text("raise ImportError('blocked')\n")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    command = [sys.executable, "-m", "aotidoctor", "mcp", "--root", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (4, "")
    assert "pip install 'aotidoctor[mcp]'" in done.stderr
