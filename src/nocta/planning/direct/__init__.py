"""NOCT-Direct: a network that goes from what is known straight to the plan."""
