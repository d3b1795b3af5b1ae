"""Object code on disk is used by processes to come, unless it is damaged, or others can write to its folder."""

import os
import threading

import pytest

from thunder_executors_llvm.disk import DIGEST, Disk, default_folder, key_of
from thunder_executors_llvm.kernels import Kernels


def test_what_was_written_is_read(tmp_path):
    disk = Disk(tmp_path / "objects")
    disk.write("a", b"code")
    assert disk.read("a") == b"code" and disk.read("b") is None
    assert os.stat(disk.folder).st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [b"", b"x" * 10, b"x" * (DIGEST + 4)])
def test_damaged_code_is_ignored_and_written_again(tmp_path, damage):
    disk = Disk(tmp_path)
    os.chmod(tmp_path, 0o700)
    disk.write("a", b"code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage)
    assert disk.read("a") is None
    disk.write("a", b"code")
    assert disk.read("a") == b"code"


def test_code_under_another_key_is_not_taken_for_it(tmp_path):
    disk = Disk(tmp_path)
    os.chmod(tmp_path, 0o700)
    disk.write("a", b"code")
    (path,) = tmp_path.iterdir()
    path.rename(path.with_name(path.name.replace("a", "b", 1)))
    assert disk.read("b") is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, mode):
    disk = Disk(tmp_path)
    os.chmod(tmp_path, 0o700)
    disk.write("a", b"code")
    os.chmod(tmp_path, mode)
    assert disk.read("a") is None
    disk.write("b", b"code")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_holds_no_more_than_it_may(tmp_path):
    disk = Disk(tmp_path, most_bytes=10 * (100 + DIGEST))
    os.chmod(tmp_path, 0o700)
    for number in range(30):
        disk.write(f"k{number}", bytes(100))
        os.utime(tmp_path / f"k{number}.object", (number, number))
    assert len(list(tmp_path.iterdir())) <= 11
    assert disk.read("k29") == bytes(100) and disk.read("k0") is None


def test_a_folder_is_looked_through_at_first_and_where_it_may_hold_too_much(tmp_path, monkeypatch):
    os.chmod(tmp_path, 0o700)
    for number in range(8):
        Disk(tmp_path).write(f"k{number}", bytes(100))
    looked, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scandir(path))
    disk = Disk(tmp_path, most_bytes=10 * (100 + DIGEST))
    for number in range(8, 12):
        disk.write(f"k{number}", bytes(100))
    assert len(looked) == 3 and len(list(tmp_path.iterdir())) == 10


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    disk = Disk(tmp_path / "file" / "objects")
    disk.write("a", b"code")
    assert disk.read("a") is None


def test_threads_write_and_read_at_once(tmp_path):
    disk = Disk(tmp_path, most_bytes=5 * (1000 + DIGEST))
    os.chmod(tmp_path, 0o700)
    wrong = []

    def work(number):
        for step in range(40):
            key = f"k{(number + step) % 8}"
            disk.write(key, key.encode() * 500)
            if disk.read(key) not in (None, key.encode() * 500):
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_keys_tell_texts_apart_however_they_are_cut():
    assert key_of("ab", "c") != key_of("a", "bc")


def test_the_environment_names_the_folder(monkeypatch):
    monkeypatch.setenv("THUNDER_LLVM_CACHE", "/somewhere")
    assert str(default_folder()) == "/somewhere"
    monkeypatch.setenv("THUNDER_LLVM_CACHE", "")
    assert default_folder() is None
    assert Kernels().disk is None
