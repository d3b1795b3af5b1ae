"""Recipes and plugins: how a kind of model is compiled, and what is added to that, by name."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from thunder_executors import Executor, get_default_executors
from thunder_frontend import Transform, jit


class PluginPolicy(Enum):
    """Whether the transforms of a plugin come before those of the recipe, or after."""

    PRE = "pre"
    POST = "post"


class Plugin:
    """Something that is added to a recipe; override what is wanted.

    Example:
        >>> from thunder_transforms import LORATransform, Plugin
        >>> class Adapt(Plugin):
        ...     def setup_transforms(self):
        ...         return [LORATransform(r=4)]
    """

    policy: PluginPolicy = PluginPolicy.PRE

    def setup_model(self, model: Any) -> Any:
        """Return the model that is compiled."""
        return model

    def setup_executors(self) -> Sequence[Executor | str]:
        """Return executors that come before those of the recipe."""
        return ()

    def setup_transforms(self) -> Sequence[Transform]:
        """Return transforms."""
        return ()

    def setup_config(self) -> Mapping[str, Any]:
        """Return options of ``jit``, which go before those of the recipe."""
        return {}


class Recipe:
    """How models of a kind are compiled; override what is wanted.

    Args:
        plugins: what is added.
        options: of ``jit``; they go before what the recipe and its plugins say.

    Example:
        >>> import torch
        >>> from thunder_transforms import Recipe
        >>> class Quick(Recipe):
        ...     def setup_config(self):
        ...         return {"cache": "symbolic values"}
        >>> Quick().apply(torch.nn.Linear(2, 3))(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """

    def __init__(self, *, plugins: Iterable[Plugin] = (), **options: Any) -> None:
        self.plugins: list[Plugin] = []
        self.options = options
        self.add_plugins(plugins)

    @classmethod
    def validate(cls, model: Any) -> bool:
        """Whether the recipe is meant for this model."""
        return True

    def add_plugins(self, plugins: Iterable[Plugin]) -> None:
        """Add something.

        Raises:
            TypeError: it is no :class:`Plugin`.
        """
        for plugin in plugins:
            if not isinstance(plugin, Plugin):
                raise TypeError(f"plugins are instances of Plugin or names, and {plugin!r} is neither")
            self.plugins.append(plugin)

    def extended(self, plugins: Iterable[Plugin], options: Mapping[str, Any]) -> Recipe:
        """Return a recipe like this one with more plugins and options."""
        made = copy.copy(self)
        made.plugins, made.options = list(self.plugins), {**self.options, **options}
        made.add_plugins(plugins)
        return made

    def setup_model(self, model: Any) -> Any:
        """Return the model that is compiled."""
        return model

    def setup_executors(self) -> Sequence[Executor | str] | None:
        """Return executors in order of priority; ``None`` for the defaults."""
        return None

    def setup_transforms(self) -> Sequence[Transform]:
        """Return transforms."""
        return ()

    def setup_config(self) -> Mapping[str, Any]:
        """Return options of ``jit``."""
        return {}

    def apply(self, model: Any) -> Any:
        """Compile a model or function.

        Raises:
            ValueError: the recipe is not meant for it.
        """
        if not self.validate(model):
            raise ValueError(f"the recipe {type(self).__name__} is not meant for {type(model).__qualname__}")
        model = self.setup_model(model)
        for plugin in self.plugins:
            model = plugin.setup_model(model)
        return jit(model, **self._options())

    def _options(self) -> dict[str, Any]:
        config = dict(self.setup_config())
        for plugin in self.plugins:
            config.update(plugin.setup_config())
        first = [e for plugin in self.plugins for e in plugin.setup_executors()]
        executors = self.options.get("executors", self.setup_executors())
        if first:
            executors = [*first, *(get_default_executors() if executors is None else executors)]
        own = (*self.setup_transforms(), *self.options.get("transforms", ()))
        transforms = [*self._transforms_of(PluginPolicy.PRE), *own, *self._transforms_of(PluginPolicy.POST)]
        return {**config, **self.options, "executors": executors, "transforms": transforms}

    def _transforms_of(self, policy: PluginPolicy) -> list[Transform]:
        return [t for plugin in self.plugins if plugin.policy is policy for t in plugin.setup_transforms()]


C = TypeVar("C")


class Registered(Generic[C]):
    """Classes by the names that users give; a name is given once.

    Args:
        kind: what they are, for messages.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, C] = {}

    def add(self, name: str, cls: C) -> None:
        """File a class under a name.

        Raises:
            ValueError: the name is taken.
        """
        if self._classes.get(name, cls) is not cls:
            raise ValueError(f"there is a {self.kind} {name!r} already: {self._classes[name]!r}")
        self._classes[name] = cls

    def names(self) -> list[str]:
        """Return all names."""
        return list(self._classes)

    def __getitem__(self, name: str) -> C:
        if name not in self._classes:
            raise ValueError(f"there is no {self.kind} {name!r}; there are {', '.join(self._classes)}")
        return self._classes[name]
