"""Views of results: functions that return the tables and numbers for pictures and pages.

The layers are ``results`` ← ``views`` ← ``plot``, ``report``, ``timeline``, ``paraver``,
``explain`` and ``cli``. There is one module for each subject. Nothing here draws or writes pages,
and nothing imports matplotlib; the only texts are labels and titles that several layers show.
"""
