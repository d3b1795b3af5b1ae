"""Recipes and plugins."""

from thunder_transforms import Plugin, PluginPolicy, Recipe

__all__ = ["Plugin", "PluginPolicy", "Recipe"]
