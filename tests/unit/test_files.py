"""One writer for every file: what it replaces, what it writes in place, what it refuses."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading

import pytest

from aotidoctor.files import Folder, open_regular, remove_drafts, whole_file, write_file

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a device node, or gives a file away")
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


def node(path, device, kind=stat.S_IFCHR):
    try:
        os.mknod(path, kind | 0o666, device)
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        pytest.skip("device nodes cannot be made or opened here")
    return path


@pytest.mark.parametrize("old", [None, 0o600, 0o644, 0o755])
def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path, old):
    path = tmp_path / "new" / "file"
    if old is not None:
        path.parent.mkdir()
        path.write_text("before, and longer")
        path.chmod(old)
    write_file(path, "é\udc80")
    assert path.read_bytes() == "é?".encode()
    usual = os.umask(0)
    os.umask(usual)
    assert stat.S_IMODE(path.stat().st_mode) == (old if old is not None else 0o666 & ~usual)
    assert os.listdir(path.parent) == ["file"]


def test_a_private_file_is_private_whatever_was_there(tmp_path):
    (tmp_path / "map").write_text("old")
    for name in ("map", "new"):
        write_file(tmp_path / name, "x", mode=0o600)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@AS_ROOT
def test_a_file_stays_its_owners(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    os.chown(path, 12345, 12345)
    path.chmod(0o600)
    write_file(path, "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), path.read_text()) == (12345, 12345, 0o600, "new")


def test_the_longest_name_that_a_file_can_have(tmp_path):
    for name in ("n" * 255, "ü" * 127):
        write_file(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"
    with pytest.raises(OSError, match="File name too long"):
        write_file(tmp_path / ("n" * 256), "x")
    assert len(os.listdir(tmp_path)) == 2


def test_threads_do_not_share_a_draft(tmp_path):
    texts = [letter * 200_000 for letter in "abcdefgh"]
    threads = [threading.Thread(target=write_file, args=(tmp_path / "file", text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (tmp_path / "file").read_text() in texts
    assert os.listdir(tmp_path) == ["file"]


@AS_ROOT
@pytest.mark.parametrize("device", [NULL, FULL])
def test_a_device_stays_a_device(tmp_path, device):
    path = node(tmp_path / "node", device)
    if device == FULL:
        with pytest.raises(OSError, match="No space left"):
            write_file(path, "text")
    else:
        write_file(path, "text")
    with pytest.raises(OSError, match="it is a device") as refused, whole_file(path):
        pass
    assert refused.value.filename == str(path)
    assert stat.S_ISCHR(path.lstat().st_mode)
    assert path.lstat().st_rdev == device
    assert os.listdir(tmp_path) == ["node"]


@AS_ROOT
def test_a_block_device_is_refused(tmp_path):
    try:
        os.mknod(tmp_path / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 250))
    except PermissionError:
        pytest.skip("device nodes cannot be made here")
    with pytest.raises(OSError, match="it is a block device"):
        write_file(tmp_path / "disk", "text")
    assert stat.S_ISBLK((tmp_path / "disk").lstat().st_mode)


def test_a_pipe_is_written_to_and_one_that_nobody_reads_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="nobody reads this pipe"):
        write_file(pipe, "text")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    with pytest.raises(OSError, match="it is a pipe"), whole_file(pipe):
        pass
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_links_folders_and_sockets_are_refused_and_left_as_they_are(tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, why in (
            ("link", "it is a symbolic link"),
            ("dangling", "it is a symbolic link"),
            ("folder", "it is a folder"),
            ("socket", "it is a socket"),
        ):
            with pytest.raises(OSError, match=why):
                write_file(tmp_path / name, "text")
    assert target.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "folder", "link", "socket", "target"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/../dev/stdout"])
def test_the_file_of_a_shell_stays_the_one_that_it_opened(tmp_path, name):
    code = f"import sys; from aotidoctor.files import write_file; write_file({name!r}, 'document\\n')"
    with (tmp_path / "out").open("wb") as out:
        before = os.fstat(out.fileno()).st_ino
        out.write(b"earlier\n")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=60)
    assert (tmp_path / "out").read_text() == "earlier\ndocument\n"
    assert (tmp_path / "out").stat().st_ino == before


def test_a_descriptor_that_is_not_open_is_an_error():
    with pytest.raises(OSError, match="Bad file descriptor"):
        write_file("/dev/fd/987654", "x")


def test_a_full_disk_leaves_what_was_there(tmp_path):
    (tmp_path / "file").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        for name in ("file", "new"):
            with pytest.raises(OSError, match="File too large"):
                write_file(tmp_path / name, "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_appears_while_the_draft_is_written_is_not_renamed_over(tmp_path):
    def write():
        with whole_file(tmp_path / "file") as stream:
            stream.write(b"x")
            os.mkfifo(tmp_path / "file")

    with pytest.raises(OSError, match="it is a pipe"):
        write()
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_names_the_file_and_not_its_draft(tmp_path):
    for path in (tmp_path / "absent" / "file", "nul\0"):
        with pytest.raises(OSError, match=r".") as refused, whole_file(path):
            pass
        assert refused.value.filename == str(path)


def test_a_folder_from_elsewhere_leads_nowhere_else(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    (mine / "file").write_text("mine")
    (theirs / "reports").symlink_to(mine)
    (theirs / "link").symlink_to(mine / "file")
    place = Folder(theirs)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        Folder("reports", inside=place)
    with pytest.raises(OSError, match="Too many levels"):
        open_regular("link", folder=place)
    with pytest.raises(OSError, match="symbolic link"), whole_file("link", folder=place):
        pass
    place.close()
    assert (mine / "file").read_text() == "mine"
    # A folder that the user names himself may be a link.
    Folder(theirs / "reports").close()


def test_only_drafts_are_removed(tmp_path):
    names = [".aotidoctor.1.00000000", ".aotidoctor.12345.abcdef01", ".aotidoctor.1.0000000g", ".aotidoctor", "file"]
    for name in names:
        (tmp_path / name).write_text("")
    place = Folder(tmp_path)
    remove_drafts(place)
    place.close()
    assert sorted(os.listdir(tmp_path)) == sorted(names[2:])


def test_only_files_are_opened_to_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("text")
    with open_regular(tmp_path / "file") as stream:
        assert stream.read() == b"text"
    for path, why in (
        (tmp_path / "pipe", "it is a pipe"),
        (tmp_path, "it is a folder"),
        ("/dev/zero", "it is a device"),
        (tmp_path / "absent", "No such file"),
        ("a\0b", "null"),
    ):
        with pytest.raises(OSError, match=why):
            open_regular(path)
