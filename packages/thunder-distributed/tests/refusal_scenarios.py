"""What is refused on several processes: in all of them, before anything is sent, or in the call that is wrong."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from thunder_distributed import (
    AxisError,
    Colwise,
    DisagreementError,
    Rowwise,
    VocabularyCrossEntropy,
    WholeSequence,
    ddp,
    fsdp,
    parallelize,
)
from thunder_frontend import jit
from thunder_ir import ShapeError


def refused(error, call, *words):
    try:
        call()
    except error as raised:
        assert all(word in str(raised) for word in words), raised
    else:
        raise AssertionError(f"nobody said {words}")


def scenario_a_mesh_of_others_is_refused(rank, size):
    mesh = DeviceMesh("cpu", [0])
    for distribute in (lambda m: ddp(m, process_group=mesh), lambda m: fsdp(m, device_mesh=mesh)):
        if rank:
            refused(AxisError, lambda d=distribute: d(nn.Linear(2, 2)), "rank 1, is not in the mesh that was given")
        else:
            distribute(nn.Linear(2, 2))


def scenario_models_of_other_sizes_are_noticed_before_anything_is_sent(rank, size):
    def cut(model):
        return parallelize(model, None, {"0": Colwise(gather_output=True)})

    for distribute in (ddp, fsdp, cut):
        model = nn.Sequential(nn.Linear(4, 4 + 4 * rank))
        weight = model[0].weight.detach().clone()
        kind = "parallelize" if distribute is cut else distribute.__name__
        differs = "on rank 0: 0.weight: float32[4, 4]\n  on rank 1: 0.weight: float32[8"
        refused(DisagreementError, lambda d=distribute, m=model: d(m), f"the model that {kind}() is given", differs)
        assert torch.equal(model[0].weight, weight)
        deeper = nn.Sequential(*[nn.Linear(4, 4) for _ in range(1 + rank)])
        differs = "on rank 0: nothing more\n  on rank 1: 1.weight"
        refused(DisagreementError, lambda d=distribute, m=deeper: d(m), differs)


def scenario_sizes_that_cannot_be_shared_leave_the_model_whole(rank, size):
    for plan in ({"0": Colwise(), "1": Rowwise()}, {"0": Colwise(), "1": Colwise()}):
        model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5), nn.Linear(5, 4))
        model[1] = nn.Linear(5, 6) if plan["1"] == Rowwise() else model[1]
        refused(ValueError, lambda m=model, p=plan: parallelize(m, None, p), "1.weight has 5 entries along dimension")
        assert model[0].weight.shape == (6, 4) and type(model[0]) is nn.Linear


def scenario_a_layer_that_gets_all_inputs_says_how_to_take_them(rank, size):
    model = parallelize(nn.Sequential(nn.Linear(4, 4)), None, {"0": Rowwise()})
    refused(ValueError, lambda: model(torch.ones(2, 4)), "each of 2 processes has 2, gets 4: Rowwise(cut_input=True)")


def scenario_sequences_lie_along_a_dimension_that_is_there(rank, size):
    plans = {"0": Colwise(), "1": Rowwise(sequence_dim=2)}, {"0": WholeSequence(dim=-3)}
    for plan in plans:
        model = parallelize(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), None, plan)
        refused(IndexError, lambda m=model: m(torch.ones(4, 4)), "a tensor has the shape [4, 4]")
    plan = {"0": Colwise(), "1": Rowwise(sequence_dim=0)}
    model = parallelize(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), None, plan)
    refused(ShapeError, lambda: model(torch.ones(3, 4)), "3 is no multiple of the 2 processes", "pad it to 4")


def scenario_numbers_outside_of_the_vocabulary_are_as_in_one_process(rank, size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4))
    whole = nn.Embedding.from_pretrained(model[0].weight.detach().clone())
    ours = parallelize(model, None, {"0": Rowwise()})
    for tokens in (torch.tensor([0, 5]), torch.tensor([-1, 2]), torch.tensor([[100]])):
        refused(IndexError, lambda t=tokens: whole(t))
        refused(IndexError, lambda t=tokens: ours(t))
    assert ours(torch.arange(5)).shape == (5, 4)

    loss = jit(VocabularyCrossEntropy(ignore_index=-1))
    logits = torch.randn(3, 4 * size)
    mine = logits.chunk(size, 1)[rank]
    for targets in (torch.tensor([0, 4 * size, 1]), torch.tensor([0, 2, -2])):
        refused(IndexError, lambda t=targets: F.cross_entropy(logits, t, ignore_index=-1), "out of bounds")
        refused((IndexError, RuntimeError), lambda t=targets: loss(mine, t), "out of bounds")
    known = torch.tensor([0, -1, 4 * size - 1])
    torch.testing.assert_close(loss(mine, known), F.cross_entropy(logits, known, ignore_index=-1))
