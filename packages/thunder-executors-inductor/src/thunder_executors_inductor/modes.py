"""The modes that ``torch.compile`` has, as settings of Inductor."""

from __future__ import annotations

from typing import Any

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}
"""The settings of the modes that ``torch.compile`` has."""

__all__ = ["MODES"]
