"""Memory of buckets that steps take one after the other."""

import gc
import threading

import torch
from torch import nn

from thunder_distributed import ddp
from thunder_distributed.buffers import Buffer, Buffers


def take(buffer):
    return buffer.take(6, torch.float32, "cpu")


def test_memory_is_taken_again_once_nothing_else_has_it():
    buffer = Buffer()
    first = take(buffer)
    address, part = first.data_ptr(), first[2:4]
    del first
    second = take(buffer)  # a view of the first one is still there
    assert second.data_ptr() != address
    assert part.data_ptr() == address + 8
    address = second.data_ptr()
    array = second.numpy()
    del second
    third = take(buffer)
    assert third.data_ptr() != address
    assert array.__array_interface__["data"][0] == address
    address = third.data_ptr()
    del third
    assert take(buffer).data_ptr() == address


def test_threads_never_have_the_same_memory_at_once():
    buffer, wrong = Buffer(), []

    def work(number):
        for _ in range(2000):
            mine = take(buffer).fill_(number)
            if not bool((mine == number).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_programs_that_send_the_same_share_a_buffer_until_the_last_is_gone():
    buffers = Buffers()
    first, second = buffers.of((6, "float32", 0)), buffers.of((6, "float32", 0))
    assert first is second
    assert buffers.of((6, "float32", 1)) is not first
    del first, second
    gc.collect()
    assert list(buffers._buffers) == []


def test_gradients_that_are_kept_keep_their_values(one_process):
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    compiled = ddp(model)
    compiled(torch.ones(2, 3)).sum().backward()
    kept = [p.grad for p in model.parameters()]
    before = [g.clone() for g in kept]
    address = kept[0].untyped_storage().data_ptr()
    model.zero_grad()
    compiled(-torch.ones(2, 3)).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(kept, before, strict=True))
    assert model[0].weight.grad.untyped_storage().data_ptr() != address
    again = model[0].weight.grad.untyped_storage().data_ptr()
    model.zero_grad()
    compiled(torch.ones(2, 3)).sum().backward()
    assert model[0].weight.grad.untyped_storage().data_ptr() == again  # nobody has those of the step before
    for p, expected in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(p.grad, expected, rtol=0, atol=0)
