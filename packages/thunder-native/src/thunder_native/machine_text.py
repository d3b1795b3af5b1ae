"""What the texts of native code are made of: functions, the words that they read, loops and checks of errors."""

import re
from collections.abc import Mapping
from types import MappingProxyType

_READS: Mapping[str, str] = {
    "word": "i64 @word(ptr {words}, i64 {index})",
    "address": "ptr @address(ptr {words}, i64 {index})",
    "number": "double @number(ptr {words}, i64 {index})",
    "slot": "ptr @slot(ptr %slots, ptr {words}, i64 {index})",
    "tensor": "ptr @handle(ptr %slots, ptr {words}, i64 {index})",
}
"""The kinds of words: an integer, an address, a float; the number of a slot, for its address or what is in it."""


def reads(names: str, words: str = "%words", first: int = 0) -> str:
    """Return how consecutive words are read.

    Args:
        names: of what is read, each after its kind: ``"tensor a, slot out, word dim"``.
        words: where they are.
        first: index of the first one.

    Example:
        >>> print(reads("word dim, slot out"))
          %dim = call i64 @word(ptr %words, i64 0)
          %out = call ptr @slot(ptr %slots, ptr %words, i64 1)
    """
    named = [one.split() for one in names.split(", ")]
    return "\n".join(
        [f"  %{name} = call {_READS[kind].format(words=words, index=i)}" for i, (kind, name) in enumerate(named, first)]
    )


def function(signature: str, body: str, linkage: str = "internal ") -> str:
    """Return a function whose first block is called ``start``."""
    return f"\ndefine {linkage}{signature} {{\nstart:\n{body.strip(chr(10))}\n}}\n"


def step(name: str, names: str, body: str) -> str:
    """Return a kind of steps: an exported function of a program's slots and of the words that ``names`` tells."""
    return function(f"i32 @{name}(ptr %slots, ptr %words)", reads(names) + body, linkage="")


def attempt(then: str, *calls: str, otherwise: str = "fail") -> str:
    """Return calls of functions that return 0 where they worked; the block ``then`` begins after them.

    Args:
        then: where it goes on if all of them worked.
        calls: name and arguments of each.
        otherwise: where it goes on if one did not.

    Example:
        >>> print(attempt("known", "aoti_torch_get_dim(ptr %a, ptr %dim)", otherwise="lost"))
          %known_0 = call i32 @aoti_torch_get_dim(ptr %a, ptr %dim)
          %known_ok = icmp eq i32 %known_0, 0
          br i1 %known_ok, label %known, label %lost
        known:
    """
    lines = []
    error = f"%{then}_0"
    for n, call in enumerate(calls):
        lines.append(f"  %{then}_{n} = call i32 @{call}")
        if n:
            lines.append(f"  %{then}_to_{n} = or i32 {error}, %{then}_{n}")
            error = f"%{then}_to_{n}"
    lines.append(f"  %{then}_ok = icmp eq i32 {error}, 0\n  br i1 %{then}_ok, label %{then}, label %{otherwise}")
    return "\n".join([*lines, f"{then}:"])


def loop(
    index: str,
    count: str,
    body: str,
    end: str,
    enter: str = "start",
    back: str = "",
    first: str = "0",
    carried: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> str:
    """Return the head of a loop; the block ``body`` begins after it, and goes back to ``each_<index>``.

    Args:
        index: what counts the turns.
        count: where it ends.
        body: the first block of a turn.
        end: the block after the last turn.
        enter: the block before the loop.
        back: the blocks that go back, ``body`` if none is said.
        first: where it begins.
        carried: what else goes from turn to turn, by type and name: its first value, and the next one.

    Example:
        >>> print(loop("i", "%n", "turn", "end"))
          br label %each_i
        each_i:
          %i = phi i64 [ 0, %start ], [ %i_next, %turn ]
          %i_more = icmp slt i64 %i, %n
          br i1 %i_more, label %turn, label %end
        turn:
          %i_next = add i64 %i, 1
    """
    values = {f"i64 {index}": (first, f"%{index}_next"), **carried}
    lines = [f"  br label %each_{index}", f"each_{index}:"]
    for name, (initial, following) in values.items():
        kind, value = name.split()
        turns = "".join([f", [ {following}, %{block} ]" for block in (back or body).split()])
        lines.append(f"  %{value} = phi {kind} [ {initial}, %{enter} ]{turns}")
    lines += [
        f"  %{index}_more = icmp slt i64 %{index}, {count}",
        f"  br i1 %{index}_more, label %{body}, label %{end}",
    ]
    return "\n".join([*lines, f"{body}:", f"  %{index}_next = add i64 %{index}, 1"])


def declared(text: str, prefix: str) -> tuple[str, ...]:
    """Return the names that a module declares with one of ``prefix``, a pattern."""
    return tuple(re.findall(rf"^declare \w+ @((?:{prefix})\w+)\(", text, re.MULTILINE))


def exported(text: str) -> tuple[str, ...]:
    """Return the names of the functions that a module exports."""
    return tuple(re.findall(r"^define \w+ @(\w+)\(", text, re.MULTILINE))
