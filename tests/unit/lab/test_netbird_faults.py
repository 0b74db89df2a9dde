"""Which request a fault hits, and what its client gets."""

from __future__ import annotations

import pytest

from edgekeeper.lab.netbird_faults import Fault, Faults, parse


def test_a_fault_hits_those_that_it_is_for_and_then_no_more() -> None:
    faults = Faults()
    fault = faults.add(Fault("status", method="POST", kind="services", path="reverse", skip=1, times=2))
    asked = [("GET", "/api/reverse-proxies/services"), ("POST", "/api/networks"), *[("POST", "/api/reverse-proxies/services")] * 4]
    kinds = ["services", "networks", *["services"] * 4]
    assert [faults.take(*call, kind) is not None for call, kind in zip(asked, kinds, strict=True)] == [False, False, False, True, True, False]
    assert fault.hit == 2
    always = faults.add(Fault("empty", times=0))
    assert all(faults.take("GET", "/", "nothing") is always for _ in range(3))
    faults.clear()
    assert faults.take("GET", "/", "nothing") is None


def test_what_the_client_gets() -> None:
    whole = b'{"a":"bcdef"}'
    assert Fault("status", status=429, message="too many requests").answer(200, whole) == (429, b'{"message": "too many requests", "code": 429}')
    assert Fault("body", body="null").answer(200, whole) == (200, b"null")
    assert Fault("body", status=502, body="<html>").answer(200, whole) == (502, b"<html>")
    assert Fault("truncated").answer(200, whole) == (200, whole[:6])
    assert Fault("empty").answer(404, whole) == (200, b"")
    assert Fault("slow").answer(201, whole) == (201, whole)


def test_only_some_happen_after_the_request_was_carried_out() -> None:
    applied = {
        how for how in ("status", "body", "truncated", "torn", "empty", "hang", "slow", "reset_before", "reset_after", "reset_mid") if Fault(how).applied
    }
    assert applied == {"truncated", "torn", "empty", "slow", "reset_after", "reset_mid"}
    assert Fault("status", applied=True).applied


def test_a_fault_out_of_json_says_what_is_wrong_with_it() -> None:
    assert parse({"how": "hang", "seconds": 2}) == Fault("hang", seconds=2)
    with pytest.raises(ValueError, match="'nope' is no fault; known are status,"):
        parse({"how": "nope"})
    with pytest.raises(ValueError, match="hits: no such field"):
        parse({"how": "hang", "hits": 2})
