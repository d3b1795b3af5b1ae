"""Which primal values to save for the backward program, and which to compute again: a minimum cut."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from thunder_autograd.costs import drawing, recomputation
from thunder_autograd.flow import Network
from thunder_autograd.owned import kept_anyway, roots
from thunder_autograd.programs import COPIED, Joint, live_calls
from thunder_autograd.replay import Draws
from thunder_autograd.traits import Trait, Traits, bytes_of, is_differentiable, traffic
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, flat_proxies, quickly_made

InRegions = Callable[[BoundSymbol], float | None]
"""What computing a call once more costs within a region of others, in bytes of memory traffic that take as long;
``None`` for what stands alone."""

EAGERNESS = 5.0  # bytes of memory traffic that a byte saved is worth, when no budget says otherwise
PASSES_SAVED = 2.0  # passes over memory that a value makes which regions compute again: it is neither written nor read
PATIENCE = 0.035  # how much longer the whole may take for it, as a fraction
COPYING = 1 << 14  # bytes saved that one more call, which copies a small input, is worth
KEPT_ANYWAY = 7 / 8  # what a byte of an output counts: its owner is likely to keep it, too
FINEST = 2048  # steps between computing nothing and computing everything again that a memory budget chooses from
HALVINGS = 6  # of the range of eagerness in which the one that PATIENCE allows is looked for
WIDEST = 1e4  # the eagerness of the last step; that of the first is its inverse


@quickly_made
@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one value that the backward program needs.

    Args:
        name: of the value.
        type_string: dtype and shape.
        saved: whether it is saved; otherwise it is computed again.
        bytes: that it takes.
        operation: the id of the symbol that computes it.
        why: one reason.
    """

    name: str
    type_string: str
    saved: bool
    bytes: int
    operation: str
    why: str

    @classmethod
    def of(cls, value: Proxy, saved: bool, trait: Trait, bound: BoundSymbol, is_output: bool = False) -> Decision:
        """Describe a decision."""
        if saved:
            why = "an output of the program" if is_output else _WHY_SAVED[trait]
            if COPIED in bound.tags:
                why = "a copy of an input that may be written to, to compute more from it again"
        else:
            why = "in a checkpointed region" if bound.has_tag(OpTags.RECOMPUTE) else _WHY_AGAIN[trait]
        return cls(value.name, value.type_string, saved, bytes_of(value), bound.symbol.id, why)


_WHY_SAVED = {
    Trait.VIEW: "what it is a view of would take as much",
    Trait.MAYBE_VIEW: "a copy where it is no view",
    Trait.CHEAP: "what computes it again would take as much, or too long",
    Trait.UNKNOWN: "nothing is known of what computing it again costs",
    Trait.HEAVY: "expensive to compute again",
    Trait.FIXED: "cannot be computed twice",
}
_WHY_AGAIN = {
    Trait.VIEW: "a view of what is there",
    Trait.MAYBE_VIEW: "a view of what is there, or a copy",
    Trait.CHEAP: "cheap to compute again",
    Trait.UNKNOWN: "the memory budget asks for it",
    Trait.HEAVY: "the memory budget asks for it",
    Trait.FIXED: "its random numbers are drawn again from the state that the generator had",
}


def choose(
    parts: Joint,
    traits: Traits,
    partition: str,
    memory_budget: float | int | None,
    draws: Draws,
    in_regions: InRegions | None = None,
) -> set[str]:
    """Return the names of the values that may be saved; what is not among them is computed again where needed."""
    if partition not in ("min-cut", "fused", "save-all"):
        raise ValueError(f"partition is 'min-cut', 'fused' or 'save-all', not {partition!r}")
    asked = memory_budget is not None or partition == "fused"
    problem = _Problem(parts, traits, draws, in_regions or _alone, asked)
    if partition == "save-all":
        return problem.solve(0.0, heavy=False).saved
    if memory_budget is None:
        return problem.solve(WIDEST, heavy=False).saved if partition == "fused" else problem.in_time()
    if memory_budget < 0:
        raise ValueError(f"memory_budget is a fraction from 0 to 1 or a number of bytes, not {memory_budget!r}")
    limit = memory_budget * problem.solve(0.0, heavy=False).bytes if memory_budget <= 1 else memory_budget
    return problem.within(limit)


def _alone(bound: BoundSymbol) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class _Solution:
    """A cut: what is saved, its bytes, the traffic of what is done again, and the nodes on the sink's side."""

    saved: set[str]
    bytes: float
    again: float
    side: set[int]


class _Problem:
    """The minimum cut of one joint program, for several exchange rates of time and memory.

    Each primal call has a node, and each value that it computes. A cut leaves on the sink's side the calls to be done
    again and the values that the backward program must have; it cuts

    - source to call: the cost of doing the call again, for free where the forward program does not need it at all;
    - call to value: the bytes of saving the value;
    - nothing else, because the edges from a value to the calls that read it, and from the values that the backward
      program reads to the sink, cannot be cut.

    Inputs of the program are there anyway: they have no node. They are their owner's, as outputs are, who may write to
    them before the backward program runs. So unless a budget asks for it, nothing is computed again from an output, nor
    from an input that no rule of a derivative reads, as one that an eager program keeps, too. But views are made again,
    and what reads small inputs may read copies of them.
    """

    def __init__(self, parts: Joint, traits: Traits, draws: Draws, in_regions: InRegions, asked: bool) -> None:
        self.parts, self.traits, self.draws = parts, traits, draws
        outputs = flat_proxies(parts.outputs)
        self.needed = {id(b) for b in live_calls(parts.primal, outputs)}
        self.there = {p.name for p in parts.inputs}
        self.outputs = {p.name for p in outputs}
        self.memory = roots(parts.primal, lambda bound: traits.of(bound).may_view or bound.has_tag(OpTags.VIEW))
        self.once = set() if asked else self.computed_from_what_others_own()
        self.decided = self.decided_by_rounding()
        self.producer = {p.name: b for b in parts.primal for p in b.outputs}
        self.frontier = [p for p in parts.frontier() if p.name in self.producer]
        self.candidates = self.reachable()
        self.owned = self.owned_by_others()
        self.size = self.sizes()
        self.within_regions = self.computed_in_regions(in_regions)
        self.prices = [self.cost(b, heavy=False) for b in self.candidates]
        self.network, self.edges = Network(), [0] * len(self.candidates)
        self.cuts: list[tuple[str, int, int]] = []
        """For each value that may be saved, the nodes of its call and of itself."""
        self.connect()

    @functools.cached_property
    def heavy_prices(self) -> list[float]:
        """The costs where matmuls and operations of unknown cost may be done again."""
        return [self.cost(b, heavy=True) for b in self.candidates]

    def reachable(self) -> list[BoundSymbol]:
        """The calls whose values the backward program may read, itself or to compute others again, in order."""
        wanted = {p.name for p in self.frontier if p.name not in self.there}
        found = []
        for bound in reversed(self.parts.primal):
            if any([p.name in wanted for p in bound.outputs]):
                found.append(bound)
                if not self.draws.is_fixed(bound):
                    wanted.update([p.name for p in bound.inputs if p.name not in self.there])
        found.reverse()
        return found

    def owned_by_others(self) -> set[str]:
        """Return the names of values in memory of outputs that an eager program does not keep for the backward pass."""
        memory = self.memory
        again = [p for b in self.candidates if b.has_tag(OpTags.RECOMPUTE) for p in b.inputs]
        kept = {memory.get(p.name, p.name) for p in (*self.frontier, *again)}
        owned = {memory.get(name, name) for name in self.outputs} - kept
        return {p.name for b in self.candidates for p in b.outputs if memory.get(p.name, p.name) in owned}

    def computed_from_what_others_own(self) -> set[int]:
        """Return the ids of calls that read memory of inputs or outputs, and whose values an eager program keeps."""
        shown = {self.memory.get(name, name) for name in self.outputs}
        given = {p.name for p in self.parts.inputs if isinstance(p, TensorProxy)}
        is_kept = kept_anyway(self.parts, self.traits)

        def depends(bound: BoundSymbol) -> bool:
            copies = self.traits.of(bound) is Trait.MAYBE_VIEW
            for name in [p.name for p in bound.inputs]:
                root = self.memory.get(name, name)
                if root in shown or (root in given and (copies or not is_kept(name))):
                    return True
            return False

        computed = [b for b in self.parts.primal if id(b) in self.needed and self.traits.of(b) is not Trait.VIEW]
        return {id(bound) for bound in computed if depends(bound)}

    def decided_by_rounding(self) -> set[int]:
        """Return the ids of calls whose outcome is saved, as what they read may be rounded otherwise the second time.

        No element of a row would be equal to its greatest one then, or another element be indexed.
        """
        given = {p.name for p in self.parts.inputs}
        made = {p.name: b for b in self.parts.primal for p in b.outputs}

        def computed(proxy: Proxy) -> Trait | None:
            root = self.memory.get(proxy.name, proxy.name)
            if root in given or not any([isinstance(p, TensorProxy) for p in made[root].inputs]):
                return None
            return self.traits.of(made[root])

        found = set()
        for bound in self.parts.primal:
            if _decides(bound):
                traits = [computed(p) for p in bound.inputs if isinstance(p, TensorProxy)]
                if None not in traits and Trait.CHEAP in traits:
                    found.add(id(bound))
        return found

    def sizes(self) -> dict[str, float]:
        """Bytes by name of value. A view keeps all of what it is a view of alive."""
        size: dict[str, float] = {}
        for bound in self.candidates:
            of: float = 0
            if self.traits.of(bound).may_view and bound.inputs:
                of = size.get(bound.inputs[0].name, 0)
            for proxy in bound.outputs:
                full: float = max(of, bytes_of(proxy), 1)
                if COPIED in bound.tags:
                    full += COPYING
                if proxy.name in self.owned:
                    full = math.inf
                elif proxy.name in self.outputs:
                    full = math.ceil(full * KEPT_ANYWAY)
                size[proxy.name] = full
        return size

    def computed_in_regions(self, in_regions: InRegions) -> dict[int, float]:
        """Return what calls cost whose values stay within regions when they are repeated, by their ids.

        A value that a call outside of regions reads, be it in another view, has to be written for it: then its call
        counts as one that stands alone, too.
        """
        alone = {p.name for b in self.parts.pulled if in_regions(b) is None for p in b.inputs}
        found: dict[int, float] = {}
        for bound in reversed(self.candidates):
            cost = in_regions(bound)
            if alone.isdisjoint([p.name for p in bound.outputs]):
                if cost is not None:
                    found[id(bound)] = cost
            elif self.traits.of(bound).may_view:
                alone.update([p.name for p in bound.inputs])
        return found

    def cost(self, bound: BoundSymbol, heavy: bool) -> float:
        """What doing a call again costs; infinite where it is not allowed."""
        trait = self.traits.of(bound)
        if trait is Trait.FIXED:
            if not self.draws.can_repeat(bound):
                return math.inf
            if bound.has_tag(OpTags.RECOMPUTE):
                return 0.0
            return drawing(bound) if heavy else math.inf
        if bound.has_tag(OpTags.RECOMPUTE):
            return 0.0
        if id(bound) in self.decided:
            return math.inf
        if id(bound) not in self.needed:
            return 0.0
        if id(bound) in self.once or (trait > Trait.CHEAP and not heavy):
            return math.inf
        within = self.within_regions.get(id(bound))
        if within is not None and not trait.may_view:
            return within * EAGERNESS / PASSES_SAVED
        return recomputation(bound, self.traits)

    def connect(self) -> None:
        """Build the network; the costs of doing calls again are put in by :meth:`solve`."""
        network = self.network
        wanted = {p.name for p in self.frontier}
        for position, bound in enumerate(self.candidates):
            call = network.node(bound)
            self.edges[position] = network.edge(network.source, call, 0.0)
            for name in dict.fromkeys([p.name for p in bound.inputs]):
                if name in self.size:
                    network.edge(network.node(name), call, math.inf)
            for proxy in bound.outputs:
                value = network.node(proxy.name)
                network.edge(call, value, self.size[proxy.name])
                self.cuts.append((proxy.name, call, value))
                if proxy.name in wanted:
                    network.edge(value, network.sink, math.inf)

    def solve(
        self, eagerness: float, heavy: bool, less: _Solution | None = None, more: _Solution | None = None
    ) -> _Solution:
        """Return the least that bytes and time together can cost at one exchange rate.

        The more eager, the more is done again: solutions for less and for more, where there are any, make dynamic only
        what they differ in.

        Args:
            eagerness: bytes of traffic that a byte saved is worth; 0 computes nothing again that costs anything.
            heavy: whether matmuls and operations of unknown cost may be done again.
            less, more: solutions for less and more eagerness, with the same ``heavy``.
        """
        prices = self.heavy_prices if heavy else self.prices
        for position, (edge, price) in enumerate(zip(self.edges, prices, strict=True)):
            if price:
                # The earlier a value is computed the longer it is kept: of equals, the earlier is computed again.
                price *= 1 + position / (4 * len(prices))
                price = price / eagerness if eagerness else math.inf
            self.network.change(edge, price)
        network = self.network
        again = network.sink_side(less.side if less else (), more.side if more else None)
        saved = {name for name, call, value in self.cuts if call not in again and value in again}
        return _Solution(saved, sum([self.size[name] for name in saved]), self.time_again(saved, heavy), again)

    def time_again(self, saved: set[str], heavy: bool) -> float:
        """Return what it costs to do again all that the backward program needs and that is not saved."""
        wanted = {p.name for p in self.frontier}
        prices = self.heavy_prices if heavy else self.prices
        total = 0.0
        for bound, price in zip(reversed(self.candidates), reversed(prices), strict=True):
            if any([p.name in wanted and p.name not in saved for p in bound.outputs]):
                if id(bound) not in self.within_regions:  # what regions compute again is paid by what they do not read
                    total += price
                wanted.update([p.name for p in bound.inputs])
        return total

    def in_time(self) -> set[str]:
        """Return what to save so that doing the rest again takes little time beside the whole program."""
        solution = self.solve(EAGERNESS, heavy=False)
        limit = PATIENCE * sum([_time(b, self.traits) for b in [*self.parts.primal, *self.parts.pulled]])
        if solution.again <= limit:
            return solution.saved
        low, high = 0.0, EAGERNESS
        less, more = None, solution
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = self.solve(middle, False, less, more)
            if tried.again <= limit:
                low, less = middle, tried
            else:
                high, more = middle, tried
        return (less or self.solve(0.0, False, None, more)).saved

    def within(self, limit: float) -> set[str]:
        """Return what to save in order to stay within so many bytes at the least cost; the least bytes if none does."""
        for heavy in (False, True):
            best = self.solve(WIDEST, heavy)
            if best.bytes <= limit or heavy:
                break
        low, high = 0, FINEST  # the step ``high`` is within the limit, or the best there is
        less = None
        while low < high:
            middle = (low + high) // 2
            tried = self.solve(WIDEST ** (2 * middle / FINEST - 1), heavy, less, best)
            if tried.bytes <= limit:
                high, best = middle, tried
            else:
                low, less = middle + 1, tried
        return best.saved


def _decides(bound: BoundSymbol) -> bool:
    """Whether a call compares floating-point numbers of two tensors, element by element, or makes integers of one's."""
    if not (bound.has_tag(OpTags.ELEMENTWISE) or bound.has_tag(OpTags.CAST)):
        return False
    read = {p.name for p in bound.inputs if is_differentiable(p)}
    made = [p.dtype for p in bound.outputs if isinstance(p, TensorProxy)]
    return all([not dtype.is_inexact and len(read) > dtype.is_bool for dtype in made])


def _time(bound: BoundSymbol, traits: Traits) -> float:
    return float(traffic(bound)) if traits.of(bound) is Trait.FIXED else recomputation(bound, traits)
