"""What commands ask of the running supervisor, over its control socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgekeeper.host import control
from edgekeeper.vip.handover import Done
from edgekeeper.vip.scene import Scene

SOCKET = "control.sock"


class Commands:
    """Serves ``drain``, ``undrain`` and ``rebalance``."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._path = folder / SOCKET

    async def serve(self) -> None:
        """Answer commands for ever."""
        await control.serve(self._path, self._answer)

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        names = [str(name) for name in request.get("vips", [])] if isinstance(request.get("vips"), list) else []
        force, what = bool(request.get("force")), request.get("do")
        done: list[Done] = []
        if what == "rebalance" and not names:
            names = self._preferred_elsewhere()
            if not names:
                done.append(Done(True, "no VIP is held here that a live peer has the higher priority for; nothing to do"))
        for name in names:
            if what == "drain":
                done.append(await self._scene.handover.drain(name, force=force))
            elif what == "undrain":
                done.append(self._scene.handover.undrain(name))
            elif what == "rebalance":
                done.append(await self._scene.handover.rebalance(name))
            else:
                done.append(Done(False, f"this supervisor does not know {what!r}; update the older of the two", 2))
        return {"schema": 1, "done": [{"ok": d.ok, "why": d.why, "code": d.code} for d in done]}

    def _preferred_elsewhere(self) -> list[str]:
        """VIPs that this node holds while a live peer that could take it has the higher configured priority."""
        scene, out = self._scene, []
        now = scene.clock.monotonic()
        for name, page in scene.book.pages.items():
            if not page.held:
                continue
            for view in scene.peers.views.values():
                vip = view.vips.get(name)
                if vip is not None and scene.heard(view, now) and vip.can_take and (vip.configured_priority or 0) > page.instance.priority:
                    out.append(name)
                    break
        return out
