"""A PyTorch that is newer than any tested is used, with one warning that names the range."""

import subprocess
import sys
import warnings

import pytest
import torch

from thunder_torch._supported import NEWEST, OLDEST, range_text, warn_if_untested


@pytest.mark.parametrize("version", ["99.0.0", f"{NEWEST[0]}.{NEWEST[1] + 1}.0.dev20270101+cpu"])
def test_a_newer_version_warns_and_names_the_range(version):
    with pytest.warns(UserWarning, match=f"{version.split('+')[0]}.*{range_text()}") as found:
        warn_if_untested(version)
    assert len(found) == 1


@pytest.mark.parametrize("version", ["{}.{}.1+cpu".format(*OLDEST), "{}.{}.0+cu132".format(*NEWEST), torch.__version__])
def test_a_tested_version_is_silent(version):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested(version)


def test_importing_beside_a_newer_version_warns_once():
    program = (
        "import torch, warnings; torch.__version__ = '99.1.0'\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    import thunder_torch, thunder_torch.symbol\n"
        "print(len([w for w in found if '99.1.0' in str(w.message)]))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split()[-1] == "1"
