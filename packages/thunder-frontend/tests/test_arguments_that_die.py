"""Modules and functions among the arguments: a program is for the very same one, and does not keep it alive."""

import gc
import weakref

import torch

from thunder_frontend import cache_misses, jit, last_traces


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.scale = 2.0

    def forward(self, x):
        return self.norm(self.linear(x) * self.scale)


def test_ever_new_modules_are_not_kept():
    compiled, x, references = jit(lambda model, x: model(x)), torch.randn(2, 3), []
    for _ in range(8):
        model = Model()
        references += [weakref.ref(model), weakref.ref(model.linear.weight)]
        assert torch.allclose(compiled(model, x), model(x))
        model.scale = 3.0
        assert torch.allclose(compiled(model, x), model(x))
    gc.collect()
    assert sum(r() is not None for r in references) <= 4  # those of the last, and what is dropped when one is compiled
    del model
    gc.collect()
    assert not any(r() is not None for r in references[::2])
    assert len(compiled.compiled) <= 4
    assert last_traces(compiled)


def test_ever_new_functions_are_not_kept():
    compiled, x, references = jit(lambda function, x: function(x)), torch.randn(2), []
    for factor in range(4):

        def scaled(x, factor=factor):
            return x * factor

        references.append(weakref.ref(scaled))
        assert torch.equal(compiled(scaled, x), x * factor)
    del scaled
    gc.collect()
    assert not any(r() is not None for r in references)


def test_classes_of_what_programs_read_die_with_the_programs():
    def run():
        class Settings:
            factor = 2

        compiled, settings = jit(lambda x, settings: x * settings.factor), Settings()
        assert torch.equal(compiled(torch.ones(2), settings), torch.full((2,), 2.0))
        return weakref.ref(Settings)

    references = [run() for _ in range(3)]
    gc.collect()
    assert not any(r() is not None for r in references)


def test_a_module_that_lives_is_compiled_once_whatever_others_do():
    compiled, x, kept = jit(lambda models, x: models[0](x)), torch.randn(2, 3), [Model()]
    for _ in range(3):
        compiled(kept, x)
        other = [Model()]
        assert torch.allclose(compiled(other, x), other[0](x))
        del other
        gc.collect()
    assert torch.allclose(compiled(kept, x), kept[0](x))
    assert cache_misses(compiled) == 4


def test_one_module_in_two_places_is_not_two():
    compiled, x, first, second = jit(lambda a, b, x: a(x) + b.linear(x)), torch.randn(2, 3), Model(), Model()
    for a, b in ((first, first), (first, second), (second, second), (second, first)):
        assert torch.allclose(compiled(a, b, x), a(x) + b.linear(x))


def test_a_module_at_the_place_of_one_that_died_is_another_one():
    compiled, x = jit(lambda model, x: model(x)), torch.randn(2, 3)
    for factor in range(20):
        model = torch.nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            model.weight.fill_(factor)
        assert torch.allclose(compiled(model, x), model(x))
        del model


def test_what_a_program_saw_dies_without_the_collector():
    class Holder:
        def __init__(self):
            self.scale, self.parts = 2.0, [1, Holder.__new__(Holder)]

    def program(x, holder):
        return x * holder.scale * len(holder.parts)

    compiled, holder = jit(program), Holder()
    gc.disable()
    try:
        compiled(torch.ones(2), holder)
        seen = [weakref.ref(holder), weakref.ref(holder.parts[1])]
        del holder
        assert [reference() for reference in seen] == [None, None]
    finally:
        gc.enable()
