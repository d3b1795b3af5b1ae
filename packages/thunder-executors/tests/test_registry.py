"""Which executors there are, and whom a list of names means."""

import subprocess
import sys

import pytest

from thunder_executors import Executor, FusionExecutor, OperatorExecutor, Registry, UnavailableError, get_all_executors
from thunder_executors.registry import PUBLISHED


@pytest.fixture
def registry():
    found = Registry(group="")
    for name in ("first", "second", "third"):
        found.register(OperatorExecutor(name))
    found.always().append(found.register(OperatorExecutor("always")))
    found.default().extend([found.named("first"), found.named("second")])
    return found


def names(executors):
    return [e.name for e in executors]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["first", "second", "always"]),
        (["third"], ["third", "always"]),
        (["+third"], ["third", "first", "second", "always"]),
        (["+second"], ["second", "first", "always"]),
        (["third", "+second"], ["third", "second", "first", "always"]),
        ([], ["always"]),
        ("third", ["third", "always"]),
        (["always", "first"], ["always", "first"]),
    ],
    ids=str,
)
def test_a_list_names_who_is_asked_in_order(registry, given, expected):
    assert names(registry.resolve(given)) == expected


def test_an_executor_need_not_be_registered_to_be_used(registry):
    mine = FusionExecutor("mine")
    assert names(registry.resolve([mine])) == ["mine", "always"]


def test_an_unknown_name_is_told_which_there_are(registry):
    with pytest.raises(
        UnavailableError, match=r"no executor is named 'unknown'; those installed are first, second\b"
    ) as e:
        registry.resolve(["unknown"])
    assert "pip install" not in str(e.value)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_one_of_thunders_own_is_told_how_to_install_it(registry, name):
    with pytest.raises(UnavailableError, match=f"pip install thunder-executors-{name}$"):
        registry.resolve([name])


def test_what_is_no_executor_is_refused(registry):
    with pytest.raises(TypeError, match="an executor is an Executor, its name, or '\\+' and its name, and 3 is a int"):
        registry.resolve([3])


def test_one_without_its_library_says_so_and_is_left_out_of_the_defaults(registry):
    absent = OperatorExecutor("absent", missing=lambda: "no module named absent", install="pip install absent")
    registry.register(absent)
    registry.default().insert(0, absent)

    assert repr(absent) == "<OperatorExecutor absent: unavailable, no module named absent>"
    assert absent in registry.everyone()
    assert names(registry.resolve(None)) == ["first", "second", "always"]
    with pytest.raises(UnavailableError, match="absent cannot run here: no module named absent; install it with: pip"):
        registry.resolve(["absent"])


def test_registering_again_replaces_on_the_lists_too(registry):
    again = registry.register(OperatorExecutor("first"))
    assert registry.default()[0] is again and registry.get("first") is again


def test_deregistering_takes_off_the_lists(registry):
    registry.deregister("first")
    assert names(registry.default()) == ["second"] and registry.get("first") is None


def test_a_package_whose_import_fails_is_known_and_says_why(tmp_path):
    info = tmp_path / "broken_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[thunder.executors]\nbroken = broken_pack:executor\n")
    (tmp_path / "broken_pack.py").write_text("import a_library_that_is_not_there\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from thunder_executors import get_all_executors, resolve_executors, UnavailableError\n"
        "print([e for e in get_all_executors() if e.name == 'broken'])\n"
        "try:\n    resolve_executors(['broken'])\nexcept UnavailableError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert "<Executor broken: unavailable, loading broken_pack:executor raised ModuleNotFoundError" in out
    assert "install it with: pip install broken-pack" in out


def test_one_on_request_is_loaded_when_it_is_named(tmp_path):
    info = tmp_path / "patient_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: patient-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[thunder.executors.on_request]\npatient = patient_pack:executor\n")
    (tmp_path / "patient_pack.py").write_text(
        "from thunder_executors import OperatorExecutor\nexecutor = OperatorExecutor('patient', default=False)\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from thunder_executors import get_all_executors, resolve_executors\n"
        "resolve_executors()\nprint('patient_pack' in sys.modules)\n"
        "print(resolve_executors(['patient'])[0], 'patient_pack' in sys.modules)\n"
        "print([e for e in get_all_executors() if e.name == 'patient'])\n"
    )
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout

    assert out.splitlines() == ["False", "<OperatorExecutor patient> True", "[<OperatorExecutor patient>]"]


def test_those_that_a_device_asks_for_take_part_first_where_they_can_run(tmp_path):
    info = tmp_path / "device_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: device-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[thunder.executors.on_request]\nfast = device_pack:fast\nabsent = device_pack:absent\n"
        "[thunder.executors.by_device]\nfine = device_pack:names\nwrong = device_pack:none\n"
    )
    (tmp_path / "device_pack.py").write_text(
        "from thunder_executors import OperatorExecutor\nfast = OperatorExecutor('fast', default=False)\n"
        "absent = OperatorExecutor('absent', default=False, missing=lambda: 'no driver')\n"
        "names = lambda: ('fast', 'absent', 'unknown')\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from thunder_executors import get_default_executors\n"
        "print([e.name for e in get_default_executors()][:2])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert done.stdout.startswith("['fast'") and "absent" not in done.stdout
    assert "calling device_pack:none raised AttributeError" in done.stderr


def test_the_executor_of_python_is_found():
    assert "python" in names(get_all_executors())


def test_importing_leaves_torch_unloaded():
    program = "import sys, thunder_executors; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_repr_names_class_and_version():
    assert repr(Executor("x", version="1.2")) == "<Executor x 1.2>"


class Sized(Executor):
    options = ("large",)

    def __init__(self, name, large=False):
        super().__init__(name)
        self.large = large

    def configured(self, **options):
        return Sized(self.name, **options)


@pytest.mark.parametrize("given", [["sized", "first"], "sized", ["+sized"]], ids=str)
def test_options_go_to_the_executors_that_take_them(registry, given):
    registry.register(Sized("sized"))
    made, rest = registry.configure(given, {"large": True, "small": 1})
    assert rest == {"small": 1}
    assert names(registry.resolve(made)) == names(registry.resolve(given))
    assert [e.large for e in registry.resolve(made) if e.name == "sized"] == [True]
    assert not registry.named("sized").large


def test_those_that_take_part_unasked_take_options_too(registry):
    registry.default().append(registry.register(Sized("sized")))
    made, rest = registry.configure(None, {"large": True, "small": 1})
    assert names(made) == ["first", "second", "sized"] and rest == {"small": 1}
    assert made[2].large and not registry.named("sized").large


def test_options_that_nobody_takes_change_no_executors(registry):
    registry.register(Sized("sized"))
    for given in (None, ["first"], ["sized"]):
        assert registry.configure(given, {"small": 1}) == (given, {"small": 1})
