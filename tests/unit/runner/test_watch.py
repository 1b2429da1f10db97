"""A program under watch notices nothing, and whoever started it sees what they would have seen without."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.waiting import soon

pytestmark = pytest.mark.slow

WATCH = (sys.executable, "-m", "aotidoctor", "watch")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "tmp").mkdir()
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path / "tmp")}


@pytest.fixture
def run(tmp_path, environ):
    def run(*words, **more):
        command = words if words[0] == sys.executable else (*WATCH, "--", *words)
        more.setdefault("capture_output", True)
        return subprocess.run(command, env=environ, cwd=tmp_path, check=False, timeout=120, **more)

    return run


def shell(script):
    return ("sh", "-c", script)


def python(script):
    return (sys.executable, "-c", script)


def test_a_program_that_ends_well_is_not_talked_about(run, tmp_path):
    done = run(*shell("echo out; echo err >&2"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_always_talks(run):
    done = run(*WATCH, "--always", "--", "true")
    assert done.returncode == 0
    assert b"HEALTHY" in done.stderr


@pytest.mark.parametrize("status", [1, 3, 77, 255])
def test_the_exit_status_is_the_programs(run, status):
    done = run(*shell(f"echo out; exit {status}"))
    assert (done.returncode, done.stdout) == (status, b"out\n")
    assert f"exit status {status}".encode() in done.stderr


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGPIPE"])
def test_it_dies_of_the_same_signal_and_leaves_no_core_of_its_own(run, name, tmp_path):
    number = getattr(signal, name)
    done = run(*shell(f"kill -{int(number)} $$"), preexec_fn=_cores_allowed)
    assert done.returncode == -number
    assert name.encode() in done.stderr
    assert all("python" not in _made_by(path) for path in tmp_path.glob("core*"))


def _cores_allowed():
    import resource

    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def _made_by(core):
    return subprocess.run(["file", str(core)], capture_output=True, text=True, check=False).stdout


def test_no_report_overwrites_what_is_run(run, tmp_path):
    script = tmp_path / "app.sh"
    script.write_text("exit 3\n")
    done = run(*WATCH, "--report", "json:app.sh", "--", "sh", "app.sh")
    assert (done.returncode, script.read_text()) == (2, "exit 3\n")


def test_a_program_that_is_not_there_or_not_executable(run, tmp_path):
    (tmp_path / "text").write_text("no program")
    (tmp_path / "script").write_text("exit 9\n")
    (tmp_path / "script").chmod(0o755)
    assert run("./nowhere").returncode == 127
    assert run("no-such-program-anywhere").returncode == 127
    assert run("./text").returncode == 126
    assert run(".").returncode == 126
    assert run("./script").returncode == 9, "a script without its first line is one for the shell"
    assert b"nowhere" in run("./nowhere").stderr


def test_what_begins_with_a_dash_after_the_program_is_the_programs(run):
    done = run(*WATCH, "echo", "--rerun", "-q")
    assert (done.returncode, done.stdout) == (0, b"--rerun -q\n")


def test_stdin_is_the_programs(run):
    assert run("cat", input=b"some bytes \x00\xff").stdout == b"some bytes \x00\xff"


def test_a_hundred_megabytes_pass_through_and_little_is_kept(run, tmp_path):
    size = 100 * 1024 * 1024
    script = f"head -c {size} /dev/zero; echo the end >&2; exit 5"
    report = tmp_path / "report.json"
    done = run(*WATCH, "--report", f"json:{report}", "--", *shell(script))
    assert (done.returncode, len(done.stdout)) == (5, size)
    told = json.loads(report.read_text())
    assert told["runs"][0]["stdout_bytes"] == size
    assert any("were not kept" in item["reason"] for item in told["not_checked"])


def test_bytes_pass_as_they_are(run):
    data = bytes(range(256)) * 100
    assert run(*python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)")).stdout == data


def test_what_is_written_is_there_at_once(environ, tmp_path):
    script = "echo first; read answer; echo $answer"
    with subprocess.Popen(
        (*WATCH, "--", *shell(script)), env=environ, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"first\n"
        process.stdin.write(b"second\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"second\n"
        assert process.wait(30) == 0


def test_a_reader_that_goes_away_ends_the_program_as_without_us(run):
    script = f"{' '.join(WATCH)} -- yes | head -1; echo ${{PIPESTATUS[0]}}"
    done = run(sys.executable, "-c", f"import subprocess; subprocess.run(['bash', '-c', {script!r}])")
    assert done.stdout.split() == [b"y", str(128 + signal.SIGPIPE).encode()]
    assert done.stderr == b""


def test_a_broken_pipe_of_its_own_is_a_failure(run):
    done = run(*shell("kill -PIPE $$"))
    assert done.returncode == -signal.SIGPIPE
    assert b"SIGPIPE" in done.stderr


def test_both_streams_in_one_pipe_keep_their_order(run):
    done = run(
        *shell("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"), capture_output=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.stdout.split(b"\n")[:-1] == [f"{name} {i}".encode() for i in range(1, 6) for name in ("out", "err")]


def test_a_file_is_handed_on_as_it_is_and_read_from_where_it_stood(run, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"Traceback (most recent call last):\n  of yesterday\nOldError: no\n")
    script = "import os, sys; s = os.fstat(2); print(s.st_ino, file=sys.stdout, flush=True); raise KeyError('new')"
    report = tmp_path / "report.json"
    with log.open("ab") as stream:
        done = run(
            *WATCH, "-q", "--report", f"json:{report}", "--", *python(script), capture_output=False,
            stdout=subprocess.PIPE, stderr=stream,
        )  # fmt: skip
    assert int(done.stdout) == log.stat().st_ino
    assert b"KeyError: 'new'" in log.read_bytes()
    error = json.loads(report.read_text())["runs"][0]["error"]
    assert (error["type"], error["message"]) == ("KeyError", "'new'")


def test_a_closed_stream_stays_closed(run, environ, tmp_path):
    script = "import os, sys\ntry:\n    os.fstat(2)\nexcept OSError:\n    sys.exit(7)"
    assert run(*python(script), preexec_fn=lambda: os.close(2), capture_output=False).returncode == 7
    script = "import os, sys\ntry:\n    os.fstat(0)\nexcept OSError:\n    sys.exit(8)"
    assert run(*python(script), preexec_fn=lambda: os.close(0), capture_output=False).returncode == 8


def test_other_descriptors_go_on_to_the_program(run, tmp_path):
    with (tmp_path / "more").open("w") as stream:
        done = run(*python(f"import os; os.write({stream.fileno()}, b'here')"), pass_fds=(stream.fileno(),))
    assert done.returncode == 0
    assert (tmp_path / "more").read_text() == "here"


def test_no_descriptor_of_ours_goes_on(run):
    done = run(*python("import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"))
    # The last is the listing's own.
    assert done.stdout == b"['0', '1', '2', '3']\n"


def test_the_environment_the_folder_and_the_signals_are_the_users(run):
    script = (
        "import os, signal; print(os.environ.get('AOTIDOCTOR_RUN'), os.getcwd(), signal.pthread_sigmask(0, []), "
        "signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
    )
    done = run(*python(script), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert done.stdout.decode().split()[0] == "None"
    assert done.stdout.decode().split()[2:] == ["set()", "True", "True"]


def test_a_broken_pipe_is_a_signal_for_the_program(run):
    done = run(*shell("grep SigIgn /proc/self/status"))
    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def waiting(environ, tmp_path, script, **more):
    process = subprocess.Popen(
        (*WATCH, "--", *python(script)),
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )
    assert process.stdout.readline() == b"ready\n"
    return process


TELLING = """
import os, signal, sys, time
got = []
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"):
    signal.signal(getattr(signal, name), lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
deadline = time.monotonic() + 20
while not got and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(0.3)
print(",".join(got))
sys.exit(9)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"])
def test_a_signal_to_us_reaches_the_program_once(environ, tmp_path, name):
    process = waiting(environ, tmp_path, TELLING)
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert (out.strip().decode(), process.returncode) == (name, 9)


def test_a_signal_to_the_whole_group_reaches_the_program_once(environ, tmp_path):
    process = waiting(environ, tmp_path, TELLING, start_new_session=True)
    os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (out.strip().decode(), process.returncode) == ("SIGTERM", 9)


def test_an_end_that_was_asked_for_is_no_failure(environ, tmp_path):
    process = waiting(environ, tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGTERM, b"", b"")


UNTIL_GO = "while not os.path.exists('go'): time.sleep(0.02)\n"


def test_it_stops_and_goes_on_with_the_program(environ, tmp_path):
    script = f"import os, time; print('ready', flush=True)\n{UNTIL_GO}print('over', flush=True)"
    # A group that has nobody who could wake it again is not stopped: this one has us.
    process = waiting(environ, tmp_path, script, preexec_fn=os.setpgrp)
    process.send_signal(signal.SIGTSTP)
    assert soon(lambda: _state(process.pid) == "T"), "whoever waits for us sees a stopped job"
    assert soon(lambda: all(_state(child) == "T" for child in _children(process.pid) if _is_program(child)))
    (tmp_path / "go").touch()
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"over\n")


def test_it_goes_on_when_only_the_program_is_woken(environ, tmp_path):
    script = f"import os, time; print('ready\\n', os.getpid(), flush=True)\n{UNTIL_GO}print('over')"
    process = waiting(environ, tmp_path, script)
    child = int(process.stdout.readline())
    os.kill(child, signal.SIGSTOP)
    assert soon(lambda: _state(process.pid) == "T")
    (tmp_path / "go").touch()
    os.kill(child, signal.SIGCONT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"over\n")


def _state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_program(pid):
    return b"aotidoctor" not in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_the_program_ends_with_us(environ, tmp_path):
    script = "import os, time; print('ready', flush=True); print(os.getpid(), flush=True); time.sleep(60)"
    process = waiting(environ, tmp_path, script)
    child = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=60)
    assert soon(lambda: not Path(f"/proc/{child}").exists() or _state(child) == "Z")


def test_grandchildren_go_on_writing(environ, tmp_path):
    """As without us: the end of the program is ours, what it left still has its output."""
    script = "(until [ -e go ]; do sleep 0.05; done; echo late) & echo now; exit 0"
    process = subprocess.Popen((*WATCH, "--", *shell(script)), env=environ, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.wait(60) == 0
    (tmp_path / "go").touch()
    assert process.stdout.read() == b"now\nlate\n"


def test_a_daemon_is_left_alone(environ, tmp_path):
    script = "import os, sys, time\nif os.fork(): sys.exit(0)\nos.setsid(); time.sleep(1); open('done', 'w').close()"
    done = subprocess.run(
        (*WATCH, "--", *python(script)), env=environ, cwd=tmp_path, check=False, stdout=subprocess.DEVNULL, timeout=60
    )
    assert done.returncode == 0
    assert soon((tmp_path / "done").exists)


def test_a_child_of_a_shell_is_told_of(run):
    done = run(*shell("sh -c 'kill -SEGV $$'; exit $?"))
    assert done.returncode == 139
    assert b"a child of it was killed by signal 11" in done.stderr


def test_a_time_limit_ends_the_program_and_tells_where_it_stood(run, tmp_path):
    report = tmp_path / "report.json"
    done = run(*WATCH, "--timeout", "2s", "--report", f"json:{report}", "--", *python("import time; time.sleep(60)"))
    assert done.returncode == 124
    told = json.loads(report.read_text())
    assert told["runs"][0]["ending"] == "timed-out"
    assert told["verdict"] == "unknown"


class Terminal:
    """A program under watch with a terminal of its own, as its controlling one."""

    def __init__(self, command, environ, cwd, rows=33, columns=99):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(command[0], command, environ)
        termios.tcsetwinsize(self.fd, (rows, columns)) if hasattr(termios, "tcsetwinsize") else None
        self.said = b""

    def until(self, text):
        deadline = time.monotonic() + 60
        while text not in self.said and time.monotonic() < deadline:
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                self.said += os.read(self.fd, 4096)
            except OSError:
                break
        return text in self.said

    def end(self):
        self.until(b"\0never")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.skipif(not hasattr(termios, "tcsetwinsize"), reason="termios.tcsetwinsize is of Python 3.11")
def test_a_terminal_stays_a_terminal_of_the_same_size(environ, tmp_path):
    script = (
        "import os, sys, time\nsys.stdin.readline()\n"
        "print([os.isatty(fd) for fd in (0, 1, 2)], os.get_terminal_size(1), os.tcgetpgrp(0) == os.getpgrp(), end='!')"
    )
    terminal = Terminal((*WATCH, "--", *python(script)), environ, tmp_path)
    os.write(terminal.fd, b"go\n")
    assert terminal.until(b"!"), terminal.said
    assert b"[True, True, True] os.terminal_size(columns=99, lines=33) True" in terminal.said
    assert terminal.end() == 0


def test_the_keys_of_a_terminal_reach_the_program_once(environ, tmp_path):
    terminal = Terminal((*WATCH, "--", *python(TELLING)), environ, tmp_path)
    assert terminal.until(b"ready"), terminal.said
    os.write(terminal.fd, b"\x03")
    assert terminal.end() == 9
    assert terminal.said.partition(b"UNKNOWN")[0].count(b"SIGINT") == 1


def test_interrupt_from_the_keyboard_is_no_failure(environ, tmp_path):
    script = "import time; print('ready', flush=True); time.sleep(60)"
    terminal = Terminal((*WATCH, "--", *python(script)), environ, tmp_path)
    assert terminal.until(b"ready"), terminal.said
    os.write(terminal.fd, b"\x03")
    assert terminal.end() == -signal.SIGINT
    assert b"PROBLEM" not in terminal.said
    assert b"UNKNOWN" not in terminal.said


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_job_control_of_a_shell(environ, tmp_path):
    """Stopped by a key, listed as stopped, and brought back to the foreground."""
    counting = "import time\nfor i in range(40): print('n', i, flush=True); time.sleep(0.1)"
    (tmp_path / "count.py").write_text(counting)
    shell = Terminal((shutil.which("bash"), "--norc", "--noprofile", "-i"), {**environ, "PS1": "% "}, tmp_path)
    os.write(shell.fd, f"{' '.join(WATCH)} -- {sys.executable} count.py; echo status $?.\n".encode())
    assert shell.until(b"n 2\r\n"), shell.said
    os.write(shell.fd, b"\x1a")
    assert shell.until(b"Stopped"), shell.said
    assert b"n 39" not in shell.said
    os.write(shell.fd, b"fg\n")
    assert shell.until(b"n 39\r\n"), shell.said
    os.write(shell.fd, b"echo over $((1 + 1)).; exit\n")
    assert shell.until(b"over 2."), shell.said


def test_our_own_failure_changes_nothing(run, tmp_path):
    done = run(*WATCH, "--report", f"json:{tmp_path}/no/../tmp", "--", *shell("exit 3"))
    assert done.returncode == 3
    assert b"could not write" in done.stderr
