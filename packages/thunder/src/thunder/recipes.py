"""Recipes of :func:`thunder.compile` by name. Re-exports :mod:`thunder_transforms.recipes`."""

from thunder_transforms.recipe import Recipe
from thunder_transforms.recipes import BaseRecipe, HFTransformers, get_recipe_class, get_recipes, register_recipe

__all__ = ["BaseRecipe", "HFTransformers", "Recipe", "get_recipe_class", "get_recipes", "register_recipe"]
