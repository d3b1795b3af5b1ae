"""What is known of the library before it is asked, and what a problem and its plan are."""

import subprocess
from dataclasses import replace

import pytest

from thunder_executors_cudnn.offline import driver
from thunder_executors_cudnn.offline.configurations import attention, configurations
from thunder_executors_cudnn.offline.devices import CAPABILITIES, described
from thunder_executors_cudnn.plans import Plan, Plans, Refused
from thunder_executors_cudnn.problems import Attention, AttentionGradient, Layout, Norm, NormGradient, Pages, Product
from thunder_executors_cudnn.rules import why_not

from .frontend import FRONTEND


def of(widths=(64, 64), heads=(8, 8), lengths=(256, 256), dropout=0.0, kind="training", mask="none"):
    return attention(lengths, widths, heads, mask, dropout, "float16", kind, False)


def packed_gradient(deterministic):
    whole = of(kind="deterministic" if deterministic else "gradient")
    return replace(whole, forward=replace(whole.forward, padded=True, packed=True))


@pytest.mark.parametrize(
    "problem, capability, words",
    [
        (of((12, 12)), 90, "no multiple of 8"),
        (of(heads=(8, 3)), 90, "does not divide"),
        (of((136, 136), kind="gradient"), 80, "at most 128 wide"),
        (of((264, 264), kind="gradient"), 90, "at most 256 wide"),
        (of((192, 192), kind="gradient"), 100, "values of width 128"),
        (of(dropout=0.1, kind="deterministic"), 100, "no deterministic gradient"),
        (of((136, 136), lengths=(1, 9), dropout=0.1), 100, "a single row"),
        (of(dropout=1.0), 90, "below 1"),
        (of(), 75, "compute capability 7.5"),
        (replace(of(), bias=Layout.dense((1, 1, 256, 256), "bool")), 90, "not one of bools"),
        (replace(of(), bias=Layout.dense((1, 1, 256, 255), "float16")), 90, "does not broadcast"),
        (replace(of(), query=Layout.dense((2, 8, 256, 64), "float32")), 90, "float16 or bfloat16"),
        (replace(of(), padded=True, pages=Pages(9, 24, 4)), 90, "no power of two"),
        (replace(of(mask="whole"), padded=True, packed=True), 90, "without a mask"),
        (packed_gradient(deterministic=True), 80, "no deterministic gradient"),
        (Product(3, 7, 8, "float16", True, "gelu", False), 90, "is odd"),
        (Product(3, 8, 8, "float32", True, "gelu", False), 90, "rounded to TF32"),
        (of(mask="rows", kind="gradient"), 90, "one row for all"),
        (Product(3, 8, 0, "float16", True, "gelu", False), 90, "empty"),
        (Norm(0, 8, "float16", True, True, True), 90, "empty"),
        (NormGradient(Norm(3, 8, "float64", True, True, True)), 90, "float32"),
    ],
)
def test_what_is_refused_has_its_reason(problem, capability, words):
    assert words in why_not(problem, capability).text


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_what_is_common_is_taken(capability):
    for problem in (
        of(),
        of(mask="causal", kind="gradient"),
        of((128, 128), heads=(8, 2), kind="gradient"),
        of(dropout=0.1),
    ):
        assert why_not(problem, capability) is None
    assert why_not(packed_gradient(deterministic=capability >= 90), capability) is None
    assert why_not(Product(3, 8, 8, "float16", True, "gelu", True), capability) is None
    assert why_not(NormGradient(Norm(3, 5, "bfloat16", False, False, True)), capability) is None


def test_the_configurations_are_of_all_kinds_and_each_is_another():
    found = configurations(200)
    assert len(set(found)) == len(found) == 200
    assert {type(p) for p in found} == {Attention, AttentionGradient, Norm, NormGradient, Product}
    assert {p.padded + 2 * p.packed + 4 * bool(p.pages) for p in found if isinstance(p, Attention)} == {0, 3, 5}
    refused = [p for p in found if why_not(p, 90) is not None]
    assert 20 < len(refused) < 180


def test_a_plan_is_kept_by_problem_and_device_and_the_oldest_goes():
    plans = Plans(FRONTEND, most=2)
    here, other = (replace(described(c), ordinal=0) for c in (80, 90))
    problem = Norm(4, 8, "float16", True, True, True)
    first = plans.of(problem, here, "handle")
    assert isinstance(first, Plan) and first.workspace == 16
    assert plans.of(replace(problem, rows=4), here, "handle") is first
    assert plans.of(problem, other, "handle") is not first and plans.made == 2
    plans.of(problem, here, "handle")
    plans.of(replace(problem, rows=5), here, "handle")
    assert plans.of(problem, here, "handle") is first and plans.made == 3
    assert plans.of(problem, other, "handle") is not first and plans.made == 4


def test_what_the_library_refuses_is_kept_with_its_reason():
    class Refusing(type(FRONTEND)):
        def __getattr__(self, name):
            return getattr(FRONTEND, name)

    def refuse(**options):
        raise FRONTEND.cudnnGraphNotSupportedError("no engine")

    plans = Plans(Refusing(pygraph=refuse))
    here = replace(described(80), ordinal=0)
    assert plans.of(of(), here) == Refused("no engine") == plans.of(of(), here)
    assert plans.made == 1


def test_the_stand_in_for_the_driver_compiles(tmp_path):
    (tmp_path / "driver.c").write_text(driver.source())
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "driver.so"), str(tmp_path / "driver.c")], check=True
    )
