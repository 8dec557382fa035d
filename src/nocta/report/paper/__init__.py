"""The paper's tables and figures again: each one a declaration, made by one command.

`recipes` is the list. A recipe is run as comparisons (`nocta.runs`), kept job by job, or
read from the folder of one (`evidence`); the paper's rows are set beside what came of it
(`beside`), and everything is written as Markdown, CSV, figures and the HTML report (`page`).
"""

from nocta.report.paper.evidence import Request
from nocta.report.paper.make import reproduce
from nocta.report.paper.page import Page, Sheet
from nocta.report.paper.recipes import RECIPES, Arm, Recipe, find_recipe

__all__ = ["RECIPES", "Arm", "Page", "Recipe", "Request", "Sheet", "find_recipe", "reproduce"]
