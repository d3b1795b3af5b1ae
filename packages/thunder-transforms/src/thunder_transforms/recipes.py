"""The recipes by name, and ``compile``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thunder_executors import Executor, get_executor
from thunder_transforms.generation import tell_what_grows
from thunder_transforms.plugins import names_to_plugins
from thunder_transforms.recipe import Plugin, Recipe, Registered

REGISTERED: Registered[type[Recipe]] = Registered("recipe")


class BaseRecipe(Recipe):
    """Compile as ``jit`` does."""


class HFTransformers(Recipe):
    """Compile a model of Hugging Face transformers.

    Sizes that a call shows to change are dynamic from then on. ``generate`` tells beforehand what of a cache grows: a
    program for the prompt and one for all further tokens write any number of them. A model that is compiled in
    evaluation mode makes its calls in native code, where thunder-native is installed and can run.
    """

    native = False

    @classmethod
    def validate(cls, model: Any) -> bool:
        """Whether a model is one of transformers: told without importing that."""
        return any([base.__name__ == "PreTrainedModel" for base in type(model).__mro__])

    def setup_model(self, model: Any) -> Any:
        tell_what_grows(model)
        self.native = (
            not model.training
        )  # native regions hold their inputs until they are over, which training may miss
        return model

    def setup_executors(self) -> Sequence[Executor | str] | None:
        native = get_executor("native") if self.native else None
        return None if native is None or native.missing() else ["+native"]

    def setup_config(self) -> Mapping[str, Any]:
        return {"cache": "auto"}


def register_recipe(name: str, recipe: type[Recipe]) -> None:
    """Let users name a recipe.

    Raises:
        ValueError: the name is taken.
    """
    REGISTERED.add(name, recipe)


def get_recipes() -> list[str]:
    """Return the names of all recipes."""
    return REGISTERED.names()


def get_recipe_class(name: str) -> type[Recipe]:
    """Return the recipe of this name.

    Raises:
        ValueError: there is none.
    """
    return REGISTERED[name]


def recipe_for(model: Any) -> type[Recipe]:
    """Return what ``"auto"`` means for a model: the recipe registered last that is meant for it."""
    return next(c for name in reversed(get_recipes()) if (c := get_recipe_class(name)).validate(model))


MODES: dict[str, tuple[str, ...]] = {"default": (), "reduce-overhead": ("reduce-overhead",)}


def compile(
    fn: Any,
    recipe: str | Recipe | type[Recipe] = "auto",
    plugins: str | Plugin | Iterable[str | Plugin] | None = None,
    mode: str = "default",
    **options: Any,
) -> Any:
    """Compile a model or function by a recipe, with plugins.

    Args:
        fn: a function or ``nn.Module``.
        recipe: ``"auto"`` picks by the model; ``"base"``, ``"hf-transformers"``, or one of your own.
        plugins: ``"quantize-int4"``, ``"quantize-int8"``, ``"profile"``, ``"reduce-overhead"``, ``"fp8"``, instances of
            :class:`Plugin`, or several of these.
        mode: ``"reduce-overhead"`` adds the plugin of that name; ``"default"`` adds nothing.
        options: of ``jit``; they go before what the recipe says.

    Returns:
        what ``jit`` returns.

    Raises:
        ValueError: there is no such recipe, plugin or mode, or the recipe is not meant for ``fn``.
        RuntimeError: a plugin needs what is not there.

    Example:
        >>> import torch
        >>> from thunder_transforms import compile
        >>> model = compile(torch.nn.Sequential(torch.nn.Linear(8, 8)), plugins="quantize-int8")
        >>> model[0].weight_codes.dtype
        torch.int8
    """
    if mode not in MODES:
        raise ValueError(f"there is no mode {mode!r}; there are {', '.join(MODES)}")
    added = [*names_to_plugins(plugins), *names_to_plugins(MODES[mode])]
    if isinstance(recipe, Recipe):
        return recipe.extended(added, options).apply(fn)
    if isinstance(recipe, str):
        recipe = recipe_for(fn) if recipe == "auto" else get_recipe_class(recipe)
    return recipe(plugins=added, **options).apply(fn)


register_recipe("base", BaseRecipe)
register_recipe("hf-transformers", HFTransformers)
