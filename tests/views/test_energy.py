"""The names of the states of a link."""

from eastwest.views import energy


def test_each_state_of_a_link_has_its_own_name() -> None:
    assert len(energy.STATES) == len(set(energy.STATES)) == 5
