"""What /proc tells of a program and all that it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile

import pytest

from aotidoctor.runner.processes import ProcessObserver


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "model.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data/aotinductor/model/x.wrapper.so", b"")
    return str(path)


@pytest.fixture
def observe(tmp_path):
    """Look at a program once it has said that it is ready, and after it was told to go on."""
    (tmp_path / "tmp").mkdir()

    def observe(*command, looks=1):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
            assert process.stdout.readline() == b"ready\n"
            observer = ProcessObserver(process.pid, str(tmp_path / "tmp"))
            for _ in range(looks):
                observer.look()
            process.stdin.close()
        return observer.facts_so_far()

    return observe


READY = "print('ready', flush=True); import sys; sys.stdin.read()"


def python(script):
    return (sys.executable, "-c", script)


def test_words_that_are_packages(observe, package):
    seen = observe(*python(READY), "model.pt2", f"--model={package}", "--other=nothing", "gone.pt2")
    folder = package.rpartition("/")[0]
    assert seen.named == (package, f"{folder}/gone.pt2")


def test_open_files(observe, package):
    assert observe(*python(f"f = open({package!r}, 'rb'); {READY}")).opened == (package,)


def test_code_that_is_mapped_from_an_unpacked_folder(observe, tmp_path):
    folder = tmp_path / "aotinductor_abcdef" / "data" / "aotinductor" / "model"
    folder.mkdir(parents=True)
    (folder / "x.wrapper.so").write_bytes(bytes(8192))
    script = f"import mmap; f = open({str(folder / 'x.wrapper.so')!r}, 'r+b'); m = mmap.mmap(f.fileno(), 0); {READY}"
    seen = observe(*python(script))
    assert seen.unpacked == (str(folder),)
    assert seen.holder is not None


def test_children_at_the_first_look(observe, package):
    """A shell has started its programs before anybody looked."""
    # What a shell has in the background reads from nowhere.
    inner = f"import time; f = open({package!r}); print('ready', flush=True); time.sleep(3)"
    seen = observe("sh", "-c", f'{sys.executable} -c "{inner}" & wait', looks=2)
    assert seen.opened == (package,)
    assert seen.processes >= 2


def test_facts_of_the_program(observe, tmp_path):
    seen = observe(*python(READY))
    assert seen.cwd == str(tmp_path)
    assert os.path.realpath(seen.exe) == os.path.realpath(sys.executable)
    assert seen.core_limit in ("0", "unlimited") or seen.core_limit.isdigit()


def test_a_folder_that_the_loader_left(tmp_path):
    (tmp_path / "aotinductor_before" / "data" / "aotinductor" / "model").mkdir(parents=True)
    os.utime(tmp_path / "aotinductor_before", (1, 1))
    observer = ProcessObserver(os.getpid(), str(tmp_path))
    left = tmp_path / "aotinductor_during" / "m" / "data" / "aotinductor" / "model"
    left.mkdir(parents=True)
    assert observer.facts_so_far().left == (str(left),)


def test_it_is_told_when_a_package_is_unpacked(tmp_path, package):
    """Looks are rare after a while; the folder that appears is worth one at once."""
    script = (
        "import os, sys, time; print('ready', flush=True); sys.stdin.readline(); "
        f"f = open({package!r}, 'rb'); os.mkdir(sys.argv[1] + '/aotinductor_abcdef'); time.sleep(0.2); f.close(); "
        "print('done', flush=True); sys.stdin.read()"
    )
    command = (*python(script), str(tmp_path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        observer = ProcessObserver(process.pid, str(tmp_path))
        observer.start()
        time.sleep(3)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        seen = observer.finish()
        process.stdin.close()
    assert seen.opened == (package,)


def test_a_process_that_is_gone(tmp_path):
    process = subprocess.Popen(("true",))
    process.wait()
    observer = ProcessObserver(process.pid, str(tmp_path))
    observer.look()
    assert observer.facts_so_far().opened == ()
