"""One of two processes, of which the second dies or hangs before its backward pass: see test_faults.py."""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from thunder_distributed import CollectiveError, FSDPType, axis_of, fsdp

rank, folder, fault = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group(
    "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2, timeout=timedelta(seconds=120)
)
axis = axis_of(dist.new_group(timeout=timedelta(seconds=8)), "shard")


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.down(self.up(x).relu())


model = fsdp(Network(), sharding_strategy=FSDPType.ZERO3, device_mesh=axis)
dist.barrier()
model(torch.ones(2, 4)).sum().backward()
loss = model(torch.ones(2, 4)).sum()
if rank == 1:
    if fault == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(120)  # the test ends it
try:
    loss.backward()
except CollectiveError as error:
    print(error, *error.__notes__, flush=True)
os._exit(0)
