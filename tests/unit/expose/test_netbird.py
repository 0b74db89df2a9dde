"""The client of the mesh: what it asks before a write that had to wait goes out."""

from __future__ import annotations

import asyncio

import pytest

from edgekeeper.errors import LockHeldError
from edgekeeper.expose.throttle import Throttle

from .meshed import Mesh

RESOURCE = {"name": "n", "address": "192.0.2.0/24", "enabled": True, "groups": []}


def test_a_write_that_waited_until_the_lead_was_lost_does_not_go_out():
    async def story() -> None:
        mesh = Mesh()
        mesh.client.throttle = Throttle().refuse(0.0, 0.0)

        def may() -> None:
            if mesh.clock.now > 5.0:
                msg = "the lead is lost"
                raise LockHeldError(msg)

        mesh.client.may = may
        with pytest.raises(LockHeldError):
            await mesh.client.create_network({"name": "n"})
        assert mesh.calls == 0
        assert await mesh.client.networks() == ()

    asyncio.run(story())


def test_what_makes_good_a_deletion_goes_out_though_the_lead_was_lost_between_the_two():
    async def story() -> None:
        mesh = Mesh()

        def may() -> None:
            msg = "the lead is lost"
            raise LockHeldError(msg)

        resource = mesh.hand("POST", f"networks/{mesh.hand('POST', 'networks', {'name': 'n'})['id']}/resources", RESOURCE)
        target = {"target_id": resource["id"], "target_type": "subnet", "host": "192.0.2.1", "protocol": "tcp", "port": 443, "enabled": True}
        body = {"name": "mine", "domain": "git.home.example", "mode": "tls", "listen_port": 443, "enabled": True, "targets": [target]}
        mesh.client.may = may
        made = await mesh.client.make_good(body)
        assert made.host == "git.home.example"
        for act in (mesh.client.create(body), mesh.client.replace(made.id, body), mesh.client.remove(made.id)):
            with pytest.raises(LockHeldError):
                await act

    asyncio.run(story())
