from __future__ import annotations

import pytest

from edgekeeper.errors import RefusedError, UsageError
from edgekeeper.expose.kinds import Service
from edgekeeper.expose.relinquish import relinquished

from .planned import SETTING, made


def test_only_the_name_changes():
    service = made("a.example", access_restrictions={"allowed_cidrs": ["192.0.2.0/24"]})
    (action,) = relinquished([made("b.example"), service], ["a.example"], SETTING)
    assert action.service == service
    assert action.body is not None
    assert {key for key in action.body if action.body[key] != service.raw[key]} == {"name"}
    assert action.body["name"] == "a.example"


@pytest.mark.parametrize("other", [made("a.example", owner="else"), made("a.example", cluster="b"), made("a.example", name="mine")])
def test_what_is_not_ours_is_not_ours_to_give(other):
    with pytest.raises(UsageError, match="no service of home/a"):
        relinquished([other, made("b.example")], ["a.example", "b.example"], SETTING)


def test_a_service_in_other_capitals_of_somebody_else_hides_ours_from_nobody():
    theirs = made("a.example", name="mine")
    (action,) = relinquished([made("a.example"), Service("x", "A.example", "mine", theirs.raw)], ["a.example"], SETTING)
    assert action.service is not None
    assert action.service.id == "id-a.example"


def test_one_that_is_switched_off_is_not_written():
    with pytest.raises(RefusedError, match="switched off"):
        relinquished([made("a.example", enabled=False)], ["a.example"], SETTING)
