"""Ways to look at programs while they are made and run."""
