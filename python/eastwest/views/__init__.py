"""Views of results: functions from results to tables and numbers, which pictures and pages draw.

The layers are ``results`` ← ``views`` ← ``plot``, ``report``, ``timeline``, ``paraver``,
``explain`` and ``cli``. There is one module for each subject. Nothing here draws or writes pages,
and nothing imports matplotlib; the only texts are labels and titles that several layers show.
"""
