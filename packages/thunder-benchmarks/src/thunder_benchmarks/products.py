"""Products of matrices by oneDNN beside the library that PyTorch asks: how long they take, and how far off they are.

python -m thunder_benchmarks.products                  one thread
python -m thunder_benchmarks.products --threads 2
python -m thunder_benchmarks.products --page page.md   writes the tables between the marks of a page

Times are medians of CPU time, calls taking turns. Errors are told against float64, of elements that are the sum of
products of positive numbers, which lose most bits: in units of the last place of float32.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import torch
from torch import Tensor

from thunder_benchmarks.tables import markdown, marks_of, show, write_between
from thunder_benchmarks.timing import in_turns
from thunder_executors_onednn import is_faster_here, products
from thunder_executors_onednn.taking import LARGE

SIZES = (16, 32, 64, 256, 1024)


def shapes() -> list[tuple[int, int, int]]:
    """Return rows, inner size and columns of what is multiplied: squares, few of each, and around where it pays."""
    few = [(4, 1024, 1024), (16, 1024, 1024), (1024, 16, 1024), (1024, 1024, 16)]
    near = [(64, 64, 1024), (64, 256, 256), (128, 128, 256), (1024, 64, 64)]
    return [*[(n, n, n) for n in SIZES], *near, *few, (512, 256, 1024), (512, 1024, 256)]


def times(rows: int, inner: int, columns: int) -> list[float]:
    """Return microseconds of a layer, of a product, and of one with a transposed operand: each by both."""
    x, weight, bias = torch.randn(rows, inner), torch.randn(columns, inner), torch.randn(columns)
    across, turned = weight.t().contiguous(), x.t().contiguous().t()
    calls = {
        "linear": lambda: torch.nn.functional.linear(x, weight, bias),
        "linear by oneDNN": lambda: products.linear(x, weight, bias),
        "product": lambda: torch.matmul(x, across),
        "product by oneDNN": lambda: products.matmul(x, across),
        "transposed": lambda: torch.matmul(turned, across),
        "transposed by oneDNN": lambda: products.matmul(turned, across),
    }
    return [statistics.median(taken) for taken in in_turns(calls, 9, 0.01).values()]


def errors(inner: int) -> list[float]:
    """Return the largest relative errors of sums of that many products, in units of the last place, by both."""
    x, weight = torch.rand(256, inner), torch.rand(256, inner)
    exact = x.double() @ weight.double().t()

    def off(result: Tensor) -> float:
        return float(((result.double() - exact) / exact).abs().max()) / torch.finfo(torch.float32).eps

    return [off(torch.nn.functional.linear(x, weight)), off(products.linear(x, weight))]


def main() -> None:
    """Print the tables, or write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--page", type=Path, help="of Markdown, on which the tables stand")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    kinds = ("linear", "product", "transposed")
    head = [f"{kind}, {by}" for kind in kinds for by in ("µs", "oneDNN / PyTorch")]
    costs = [["rows, inner, columns", "million products", *head, "by default"]]
    for shape in shapes():
        found = times(*shape)
        cells = [[f"{a:.0f}", f"{b / a:.2f}"] for a, b in zip(found[::2], found[1::2], strict=True)]
        count = shape[0] * shape[1] * shape[2]
        taken = bool(LARGE.takes(*shape))
        costs.append([", ".join(map(str, shape)), f"{count / 1e6:.2g}", *sum(cells, []), "yes" if taken else "no"])
    bits = [["products in a sum", "PyTorch is off by", "oneDNN is off by"]]
    for inner in (64, 256, 1024, 4096, 16384):
        bits.append([str(inner), *[f"{error:.1f}" for error in errors(inner)]])
    if arguments.page is None:
        for table in (costs, bits):
            show(table)
        print(f"a default executor on this machine: {'yes' if is_faster_here() else 'no'}")
        return
    about = f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {arguments.threads} thread(s)\n"
    text = "\n".join([about, markdown(costs), markdown(bits)])
    write_between(arguments.page, marks_of("thunder_benchmarks.products"), text)


if __name__ == "__main__":
    main()
