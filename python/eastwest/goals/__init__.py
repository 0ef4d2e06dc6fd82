"""Goals: the values that measures of runs should have, and which settings meet them.

A table ``[goal]`` has the same form in a scenario, a sweep and an optimisation; the guide is
docs/guide/goals.md. form.py reads the table and checks its names. judge.py compares one measure
with one limit, and points with each other (``eastwest optimize`` uses it, too). evaluate.py decides
for a run and for the points of a sweep which goals are met. eastwest/views/goals.py has the texts.
"""
