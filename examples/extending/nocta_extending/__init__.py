"""A template for packages that extend nocta: one file each for the four things you can add."""
