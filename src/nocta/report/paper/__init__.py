"""Reproduce the paper's tables and figures: each is a declaration, made by one command.

`recipes` lists them. `evidence` runs a recipe as comparisons (`nocta.runs`), or reads finished
ones from a folder. `beside` puts the paper's rows beside ours. `page` writes Markdown, CSV,
figures and the HTML report.
"""

from nocta.report.paper.evidence import Request
from nocta.report.paper.make import reproduce
from nocta.report.paper.page import Page, Sheet
from nocta.report.paper.recipes import RECIPES, Arm, Recipe, find_recipe

__all__ = ["RECIPES", "Arm", "Page", "Recipe", "Request", "Sheet", "find_recipe", "reproduce"]
