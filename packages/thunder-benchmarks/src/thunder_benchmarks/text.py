"""Real text to train on that needs no download: the language reference that ships with Python."""

from __future__ import annotations

from dataclasses import dataclass
from pydoc_data.topics import topics

import torch


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text as a sequence of character numbers.

    Args:
        characters: the alphabet, sorted.
        data: ``int64[length]``, the place of each character in the alphabet.
    """

    characters: str
    data: torch.Tensor

    def batch(self, size: int, length: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return random passages and, for each character of them, the one that follows.

        Args:
            size: passages in the batch.
            length: characters in a passage.
            generator: where randomness comes from.

        Returns:
            ``int64[size, length]`` twice.
        """
        starts = torch.randint(len(self.data) - length - 1, (size,), generator=generator)
        passages = torch.stack([self.data[s : s + length + 1] for s in starts.tolist()])
        return passages[:, :-1].contiguous(), passages[:, 1:].contiguous()


def python_documentation(limit: int = 400_000) -> Text:
    """Return the topics of Python's language reference, up to ``limit`` characters, without rare characters."""
    text = "\n".join(topics[name] for name in sorted(topics))[:limit]
    text = "".join(c for c in text if c.isascii() and (c.isprintable() or c == "\n"))
    characters = "".join(sorted(set(text)))
    places = {c: i for i, c in enumerate(characters)}
    return Text(characters, torch.tensor([places[c] for c in text]))
