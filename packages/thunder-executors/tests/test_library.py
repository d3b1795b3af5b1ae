"""What checkers of executors ask of libraries and of tensors."""

import subprocess
import sys

import pytest

from thunder_executors import Library, takes_dtypes, takes_tensors
from thunder_executors.library import release
from thunder_ir import IntegerProxy, Tensor, TensorProxy, dtypes


def test_a_library_that_is_there_is_not_missing():
    assert Library("pytest", least="8.3").missing() is None
    assert Library("pytest").version() == pytest.__version__


@pytest.mark.parametrize(
    "library, words",
    [
        (Library("no_such_module", "The Library"), "The Library is not installed"),
        (Library("pytest", "Pytest", least="1000"), "and at least 1000 is needed"),
        (Library("pytest", "Pytest", below="8.0.1"), "and a version below 8.0.1 is needed"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_it_says_why_it_is_missing(library, words):
    assert words in library.missing()


def test_a_module_that_no_distribution_brings_has_no_version_and_is_taken():
    assert Library("this", least="3").missing() is None


def test_looking_for_a_library_does_not_import_it():
    program = (
        "import sys; from thunder_executors import Library; Library('sqlite3').missing(); "
        "sys.exit('sqlite3' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("older, newer", [("1.9", "1.10"), ("0.2.36+git1", "0.2.37"), ("2.9.0rc1", "2.9.1"), ("", "0")])
def test_versions_compare_by_their_numbers(older, newer):
    assert release(older) < release(newer)


def test_tensors_are_taken_by_device_size_and_dtype():
    x = Tensor((2, 3))
    assert takes_tensors(x, None, on=("cpu",)) is True
    assert takes_dtypes(x, None, of=(dtypes.float32,)) is True
    assert takes_tensors(x, on=("cuda",)).reason == "it runs on cuda devices, and a tensor is on cpu"
    assert takes_tensors(3, on=("cpu",)).reason == "it takes tensors, not int"
    unknown = TensorProxy((IntegerProxy(2, "n"),), name="t")
    assert takes_tensors(unknown, on=("cpu",)).reason == "a size is known only when the program runs"
    assert takes_dtypes(x, of=(dtypes.float16,)).reason == "it takes float16, not float32"
