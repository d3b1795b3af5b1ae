"""Training on two processes that faults are injected into: a small model, checkpoints, and a log of the losses."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict_loader import load

from thunder_benchmarks.faults.striking import Striker, Striking, StrikingCompiler
from thunder_distributed import (
    FSDPBucketingStrategy,
    FSDPType,
    axis_of,
    ddp,
    fsdp,
    get_model_state_dict,
    get_optimizer_state_dict,
    latest_checkpoint,
    load_model_state_dict,
    load_optimizer_state_dict,
    save_checkpoint,
)
from thunder_frontend import jit

STEPS, EVERY, SIZE = 6, 2, 2
"""Steps of training, steps between checkpoints, and processes."""


class Network(nn.Module):
    """Two layers, and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 9), nn.Linear(9, 1)

    def forward(self, x: torch.Tensor) -> Any:
        """Return how far the results for ``x``, shape ``(batch, 6)``, are from 0."""
        y = torch.tanh(self.up(x))
        return self.down(y).square().mean()


@dataclass(frozen=True)
class Training:
    """What one process does.

    Args:
        way: ``"ddp"`` or ``"fsdp"``.
        rank: of the process.
        folder: for checkpoints, losses and outcomes; what is there already is gone on from.
        timeout: of the process group, in seconds.
        striker: what strikes this process; ``None`` for none.
        launch: tells this launch from others in the same folder.
    """

    way: str
    rank: int
    folder: Path
    timeout: float
    striker: Striker | None
    launch: str

    def __call__(self) -> None:
        """Train, write down how that ended, and end the process."""
        log = os.open(self.folder / f"log_{self.launch}_{self.rank}", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            self.train()
            said = ""
        except Exception as error:
            said = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            traceback.print_exc()
        outcome = {"said": said, "at": time.time()}
        (self.folder / f"outcome_{self.launch}_{self.rank}").write_text(json.dumps(outcome), encoding="utf-8")
        sys.stderr.flush()
        os._exit(bool(said))

    def train(self) -> None:
        """Train from the last checkpoint on, and note each loss as soon as it is there."""
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group(
            "gloo", init_method=f"file://{self.folder / f'store_{self.launch}'}", rank=self.rank, world_size=SIZE,
            timeout=timedelta(seconds=self.timeout),
        )  # fmt: skip
        model, optimizer, begin = self.prepared()
        with open(self.folder / f"losses_{self.launch}_{self.rank}", "w", encoding="utf-8") as losses:
            for step in range(begin, STEPS):
                self.step(model, optimizer, step, lambda text: print(text, file=losses, flush=True))

    def step(self, model: Any, optimizer: torch.optim.Optimizer, step: int, note: Callable[[str], None]) -> None:
        """Train for one step, and save what came of it where it is time."""
        striker = self.striker or Striker("kill", "never", -1, 0, self.folder, 0.0)
        generator = torch.Generator().manual_seed(step * SIZE + self.rank)
        optimizer.zero_grad()
        with striker.within("forward", step):
            loss = model(torch.randn(5, 6, generator=generator))
        note(f"{step} {loss.item().hex()}")
        with striker.within("backward", step):
            loss.backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            with striker.within("checkpoint", step):
                save_checkpoint(state_of(model, optimizer), self.folder / "checkpoints", step + 1)

    def prepared(self) -> tuple[Any, torch.optim.Optimizer, int]:
        """Return the model, the optimizer, and the step at which to begin."""
        torch.manual_seed(0)
        axis = axis_of(None, "shard")
        transforms = []
        if self.striker is not None:
            axis = replace(axis, ledger=Striking(self.striker))
            transforms.append(StrikingCompiler(self.striker))
        compiled = jit(Network(), transforms=transforms)
        if self.way == "ddp":
            model = ddp(compiled, process_group=axis)
        else:
            model = fsdp(
                compiled, device_mesh=axis, sharding_strategy=FSDPType.ZERO3,
                bucketing_strategy=FSDPBucketingStrategy.LAYER,
            )  # fmt: skip
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        return model, optimizer, resumed(model, optimizer, self.folder / "checkpoints")


def state_of(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return what a checkpoint holds."""
    return {"model": get_model_state_dict(model), "optimizer": get_optimizer_state_dict(model, optimizer)["state"]}


def resumed(model: Any, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """Load the last checkpoint if there is one, and return the step at which to go on."""
    latest = latest_checkpoint(folder)
    if latest is None:
        return 0
    for parameter in model.parameters():  # so that there is state to load into
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = state_of(model, optimizer)
    load(state, checkpoint_id=latest[1])
    load_model_state_dict(model, state["model"])
    groups = get_optimizer_state_dict(model, optimizer)["param_groups"]
    load_optimizer_state_dict(model, optimizer, {"state": state["optimizer"], "param_groups": groups})
    return latest[0]


def whole_checkpoint(place: Path) -> dict[str, torch.Tensor]:
    """Return the parameters in a checkpoint, read by this process alone."""
    state = {name: torch.zeros_like(t) for name, t in Network().state_dict().items()}
    load({"model": state}, checkpoint_id=place, no_dist=True)
    return state


__all__ = ["EVERY", "SIZE", "STEPS", "Network", "Training", "resumed", "state_of", "whole_checkpoint"]
