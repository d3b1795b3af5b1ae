"""Composites in two forms, whole and decomposed, and the choice between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from thunder_autograd.programs import dimensions, sizes_of
from thunder_autograd.traits import Trait, Traits
from thunder_ir import BoundSymbol, Proxy
from thunder_ir.passes import stays


@dataclass(slots=True)
class Group:
    """A composite and what its decomposition was differentiated into.

    Args:
        whole: the call of the composite.
        items: the calls of its decomposition, groups of their own among them.
        outputs: for each output, as the decomposition names it and as the composite does.
    """

    whole: BoundSymbol
    items: list[Item]
    outputs: list[tuple[Proxy, Proxy]]

    def backwards(self) -> Iterator[Item]:
        """Every group in it and every call of their decompositions, last first."""
        for item in reversed(self.items):
            yield item
            if isinstance(item, Group):
                yield from item.backwards()

    def defined(self) -> set[str]:
        """The names of all values that are computed in it."""
        names: set[str] = set()
        for item in self.backwards():
            outputs = [outer for _, outer in item.outputs] if isinstance(item, Group) else item.outputs
            names.update([p.name for p in outputs])
        return names


Item = BoundSymbol | Group


def settle(
    items: list[Item],
    backward: list[BoundSymbol],
    outputs: list[Proxy],
    renamed: dict[str, Any],
    runs_whole: Callable[[BoundSymbol], bool],
    traits: Traits,
) -> list[BoundSymbol]:
    """Return the live calls in order, each composite in one form; fill ``renamed`` with what takes whose place.

    A composite stays whole where whatever else the rest of the program reads of its decomposition is cheap to compute;
    it then stands beside that. Otherwise its decomposition takes its place.
    """
    settling = _Settling(set(), [], renamed, runs_whole, traits)
    settling.read(outputs)
    for bound in reversed(backward):
        settling.keep_if_live(bound)
    settling.walk(items)
    settling.kept.reverse()
    return settling.kept


@dataclass(slots=True)
class _Settling:
    """One walk over the program, last call first."""

    live: set[str]
    kept: list[BoundSymbol]
    renamed: dict[str, Any]
    runs_whole: Callable[[BoundSymbol], bool]
    traits: Traits

    def read(self, proxies: list[Proxy]) -> None:
        for proxy in proxies:
            if proxy.name in self.renamed:
                proxy = self.resolved(proxy)
                self.read(dimensions(proxy))  # equal to those of what it takes the place of, but other values
            self.live.add(proxy.name)

    def resolved(self, proxy: Proxy) -> Proxy:
        """Return what stands for a value in the end, as far as that is decided."""
        while proxy.name in self.renamed:
            proxy = self.renamed[proxy.name]
        return proxy

    def keep_if_live(self, bound: BoundSymbol) -> None:
        if any([p.name in self.live for p in bound.outputs]) or stays(bound):
            self.kept.append(bound)
            self.read([*bound.inputs, *sizes_of(bound)])

    def walk(self, items: list[Item]) -> None:
        for item in reversed(items):
            if isinstance(item, Group):
                self.settle(item)
            else:
                self.keep_if_live(item)

    def settle(self, group: Group) -> None:
        defined = group.defined()
        own = [(inner, outer) for inner, outer in group.outputs if inner.name in defined]
        if len(own) == len(group.outputs) and self.stays_whole(group, {inner.name for inner, _ in own}):
            for inner, outer in own:
                self.rename(inner, outer)
            self.walk(group.items)
            self.keep_if_live(group.whole)  # walked last, so it comes first: what is kept beside it may read it
            return
        for inner, outer in group.outputs:
            if outer.name not in self.renamed:
                self.rename(outer, inner)
            elif inner.name in defined:  # a composite around this one stays whole and computes the value
                self.rename(inner, outer)
        self.walk(group.items)

    def rename(self, old: Proxy, new: Proxy) -> None:
        new = self.resolved(new)
        if old.name != new.name:
            self.renamed[old.name] = new
            if old.name in self.live:
                self.live.discard(old.name)
                self.read([new, *dimensions(new)])

    def stays_whole(self, group: Group, own: set[str]) -> bool:
        """Whether all that is read of the decomposition beside its outputs is cheap to compute from its inputs."""
        needed: set[str] = set()
        extra = False
        for part in group.backwards():
            if isinstance(part, Group):
                for inner, outer in part.outputs:
                    if outer.name in own:
                        own.add(inner.name)
                    elif outer.name in needed or outer.name in self.live:
                        needed.add(inner.name)
                continue
            names = [p.name for p in part.outputs]
            if any([n in needed or (n in self.live and n not in own) for n in names]):
                trait = self.traits.of(part)
                if trait > Trait.CHEAP:
                    return False
                extra = extra or not trait.may_view
                needed.update([p.name for p in part.inputs if p.name not in own])
            elif stays(part):
                return False
        return not extra or self.runs_whole(group.whole)
