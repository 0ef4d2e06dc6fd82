"""Labs: sheets of exercises about data-centre networks, whose answers a command checks.

A lab has a sheet (docs/labs), shipped scenarios, and one file ``data/lab-N.toml`` that declares its
questions. sheet.py reads this file, answers.py writes and reads the answers of a student, grade.py
decides which answers are right, and measure.py runs scenarios for questions about settings.
"""
