"""Collectives that a user's program calls, on several processes, beside eager."""

import torch
import torch.distributed as dist

from thunder_frontend import jit


def agrees(program, rank, make=lambda rank: torch.arange(6.0) * (rank + 1)):
    """Run a program in eager and compiled, twice; results and what was written must be the same."""
    compiled = jit(program, fallback="error")
    for _ in range(2):
        ours, expected = make(rank), make(rank)
        torch.testing.assert_close(compiled(ours), program(expected), rtol=0, atol=0)
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def scenario_all_reduce_writes_to_inputs_and_intermediates(rank, size):
    def program(x):
        y = x * 2
        dist.all_reduce(y)
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        return x + y

    agrees(program, rank)


def scenario_a_process_may_not_read_the_result(rank, size):
    def program(x):
        loss = x.sum()
        dist.all_reduce(loss)
        return loss * 2 if rank == 0 else x * 2

    agrees(program, rank)


def scenario_broadcast_from_each_process(rank, size):
    for source in range(size):

        def program(x, source=source):
            y = x + 1
            dist.broadcast(y, source)
            return y

        agrees(program, rank)


def scenario_gathers_and_scatters(rank, size):
    def gathered(x):
        parts = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(parts, x)
        whole = torch.empty(size * 6)
        dist.all_gather_into_tensor(whole, x)
        return torch.cat(parts) + whole

    def scattered(x):
        part = torch.empty(6 // size)
        dist.reduce_scatter_tensor(part, x.clone(), op=dist.ReduceOp.SUM)
        return part * 2

    agrees(gathered, rank)
    agrees(scattered, rank)


def scenario_another_group(rank, size):
    group = dist.new_group([0, 1])

    def program(x):
        y = x - 1
        dist.all_reduce(y, group=group)
        return y

    agrees(program, rank)
    dist.destroy_process_group(group)
