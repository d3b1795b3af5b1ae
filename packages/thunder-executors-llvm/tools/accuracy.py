"""Compare functions as kernels compute them with eager PyTorch and with ``float64``, and print a table.

    python packages/thunder-executors-llvm/tools/accuracy.py [name ...]

Errors are in units in the last place of ``float32``, over random bit patterns and over ranges where functions bend.
"""

import sys

import torch

import thunder_prims as prims
from thunder_executors import Region
from thunder_executors_llvm import executor
from thunder_ir import trace_of
from thunder_torch import proxy_of

NAMES = (
    "acos acosh asin asinh atan atanh cos cosh erf erfc exp exp2 expm1 lgamma log log10 log1p log2 reciprocal rsqrt "
    "sigmoid sin sinh sqrt tan tanh"
).split()


def arguments() -> torch.Tensor:
    """Return numbers that are finite and not denormal: all magnitudes, and many near 0."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31 - 1, (1 << 19,), generator=generator).to(torch.int32).view(torch.float32)
    near = [torch.randn(1 << 18, generator=generator) * scale for scale in (0.1, 1.0, 10.0)]
    x = torch.cat([bits, *near, torch.linspace(-100, 100, 1 << 18)])
    return x[torch.isfinite(x) & (x.abs() > 2.0**-126)]


def errors(y: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Return how far results are from the truth, in units in the last place of its ``float32``; normal ones count."""
    rounded = truth.float()
    unit = torch.nextafter(rounded.abs(), torch.tensor(torch.inf)).double() - rounded.abs().double()
    counts = torch.isfinite(rounded) & torch.isfinite(y) & (rounded.abs() >= 2.0**-126)
    return ((y.double() - truth).abs() / unit)[counts]


def row(name: str, x: torch.Tensor) -> str:
    """Return a line of the table."""
    trace = trace_of(lambda a: (getattr(prims, name)(a),), proxy_of(x, ""))
    region = Region(trace.bound_symbols, trace.inputs, tuple(trace.outputs))
    (ours,) = executor.runner(region, "accuracy")(x)
    function = getattr(torch, name)
    eager, truth = function(x), function(x.double())
    equal = (ours == eager) | (ours.isnan() & eager.isnan())
    near = equal | (errors_between(ours, eager) <= 1)
    worst, worst_eager = (errors(y, truth).max().item() for y in (ours, eager))
    return (
        f"| `{name}` | {100 * equal.double().mean():.2f} | {100 * near.double().mean():.2f} | {worst:.2f} | "
        f"{worst_eager:.2f} |"
    )


def errors_between(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return how many numbers of ``float32`` lie between two results."""

    def counted(t: torch.Tensor) -> torch.Tensor:
        bits = t.view(torch.int32).long()
        return torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    return (counted(a) - counted(b)).abs()


def main() -> None:
    """Print the table."""
    x = arguments()
    print("| function | equal to eager, % | within 1, % | worst error, ours | worst error, eager |")
    print("|---|---|---|---|---|")
    for name in sys.argv[1:] or NAMES:
        print(row(name, x), flush=True)


if __name__ == "__main__":
    main()
