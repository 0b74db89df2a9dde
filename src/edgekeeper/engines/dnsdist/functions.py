"""The Lua functions that stand beside either rendering: suffix lists, the retry and its budget, identity. Pure.

They are the same text for ``dnsdist.lua`` (2.x with YAML, which may hold functions only) and for
``dnsdist.conf``. Globals start with ``ek_`` so that a live change can reach them over the console.
"""

from __future__ import annotations

from edgekeeper.engines.dnsdist.names import RESOLVER
from edgekeeper.engines.dnsdist.names import RETRY as RETRY_POOL
from edgekeeper.engines.dnsdist.names import STREAM as STREAM_POOL
from edgekeeper.engines.dnsdist.topology import Topology
from edgekeeper.model.selfname import SELF_TEXT

LEAVING = 1_000_000
"""The order of a member that leaves; dnsdist's own is 1, and ours are never rendered with another."""

FORGET = "collectgarbage() collectgarbage()"
"""Frees what left: Lua holds a removed member until its next collection, and takes it for 16 bytes where it is 17 to 34 MB
(measured 2026-11-30, 1.7.3 to 2.1.3: 12 removals and additions grew 2.1.3 from 133 to 555 MB, and to 183 MB after this)."""

SECRET_TLV = 224
"""The PROXY protocol v2 type that carries the shared secret (the first of the range for custom use)."""

SELF_DATA = chr(len(SELF_TEXT)) + SELF_TEXT
"""The record data of the self answer: TXT as it is on the wire."""

_RETRY_FLOOR = 20
RETRY = "ek_retry"
IDENTITY = "ek_identity"
ENFORCE = "ek_enforce_identity"

RESTARTABLE_CODE = """\
local C = require('ffi').C
return function(dq) C.dnsdist_ffi_dnsquestion_set_restartable(dq) return DNSAction.None end"""

# ek_put adds a member, or replaces it by one with other options, which inherits the status of the old
# one at the same address. ek_remove and ek_put only mark by its order who goes: it is given queries like before.
# ek_hope then looks at each pool that the change is about (as lists of the names that stay in it): where
# nobody who stays is up, those that are new start up, or all when none is new, because a wrong guess costs
# nothing there and a right one saves the seconds of `rise`; it says whether anybody goes. ek_part, a moment
# later, gives those that go no more queries (see hands.PASS_S). ek_sweep takes one away that
# has answered what it was asked (any, when told to), and says whether there may be more: rmServer
# drops the answers that are still under way, and with 2 sockets it holds the console until the idle
# receiver wakes up, up to a second (1.7.3, 1.9.16, 2.1.3). What was put or marked already is left alone.
HELPERS = f"""\
ek_made = ek_made or {{}}
ek_fresh = {{}}
function ek_suffixes(names)
  local out = newSuffixMatchNode()
  for _, name in ipairs(names) do out:add(newDNSName(name)) end
  return out
end
function ek_netmasks(networks)
  local out = newNMG()
  for _, network in ipairs(networks) do out:addMask(network) end
  return out
end
function ek_named(name)
  local out = {{}}
  for _, server in ipairs(getServers()) do
    if server.order ~= {LEAVING} and server:getName() == name then out[#out + 1] = server end
  end
  return out
end
function ek_go(servers)
  for _, server in ipairs(servers) do server.order = {LEAVING} end
end
function ek_remove(name)
  ek_made[name] = nil
  ek_go(ek_named(name))
end
function ek_put(name, same, mark, make)
  local old = ek_named(name)
  if #old == 1 and ek_made[name] == mark then return end
  local up = false
  for _, server in ipairs(old) do up = up or server.upStatus end
  local fresh = make()
  if same and up then fresh:setAuto(true) else ek_fresh[name] = true end
  ek_go(old)
  ek_made[name] = mark
end
function ek_hope(pools)
  local stays, goes = {{}}, false
  for _, server in ipairs(getServers()) do
    if server.order == {LEAVING} then goes = true else stays[server:getName()] = server end
  end
  for _, names in ipairs(pools) do
    local up, fresh, all = false, {{}}, {{}}
    for _, name in ipairs(names) do
      local server = stays[name]
      if server ~= nil then
        up = up or server:isUp()
        all[#all + 1] = server
        if ek_fresh[name] then fresh[#fresh + 1] = server end
      end
    end
    if not up then
      for _, server in ipairs(#fresh > 0 and fresh or all) do server:setAuto(true) end
    end
  end
  return goes and "somebody goes" or "nobody goes"
end
function ek_part(pools)
  ek_hope(pools)
  for _, server in ipairs(getServers()) do
    if server.order == {LEAVING} then server:setDown() end
  end
end
function ek_sweep(any)
  local left = 0
  for _, server in ipairs(getServers()) do
    if server.order == {LEAVING} then
      if any or server:getOutstanding() == 0 then
        rmServer(server)
        return "more"
      end
      left = left + 1
    end
  end
  return left == 0 and "done" or "busy"
end"""

# A timed-out query may be asked once more, but all together no more than a tenth of the last
# second's queries (20 at least, for the burst of a page on a quiet edge): a slow upstream or a random-subdomain attack must not be doubled.
# Over TCP and DoT a dead one of three takes a third of the queries until it is down: a refused connection is an answer
# at once, so nothing is outstanding there and neither bounded hashing nor leastOutstanding avoids it. There a query goes
# round the members, three times at most, all together as often as there were queries (with a tenth and leastOutstanding
# 60 to 140 of 1,000 were lost, so none; 2.1.3).
# From the hashing pool it goes to a pool of the same members that does not hash; any other pool picks that way by
# itself and has members of its own.
_RETRY = f"""\
ek_retry_left = {_RETRY_FLOOR}
ek_retry_streams_left = {_RETRY_FLOOR}
ek_retry_seen = 0
function ek_retry_refill()
  local queries = getStatisticsCounters()["queries"]
  ek_retry_left = math.max({_RETRY_FLOOR}, math.floor((queries - ek_retry_seen) / 10))
  ek_retry_streams_left = math.max({_RETRY_FLOOR}, queries - ek_retry_seen)
  ek_retry_seen = queries
end
function ek_retry_into(response, pool)
  if response.pool == "{RESOLVER}" then response.pool = pool end
  response:restart()
end
function {RETRY}(response)
  local before = response:getRestartCount()
  if response.tcp then
    if before < 3 and ek_retry_streams_left > 0 then
      ek_retry_streams_left = ek_retry_streams_left - 1
      ek_retry_into(response, "{STREAM_POOL}")
    end
  elseif before == 0 and ek_retry_left > 0 then
    ek_retry_left = ek_retry_left - 1
    ek_retry_into(response, "{RETRY_POOL}")
  end
  return DNSResponseAction.None, ""
end"""

# Finds the first TXT record of the answer section and compares its first string. Every index is
# checked before it is read: the packet comes from whoever answers at that address.
_IDENTITY = f"""\
function ek_skip_name(packet, at)
  while at <= #packet do
    local length = packet:byte(at)
    if length == 0 then return at + 1 end
    if length >= 192 then return at + 2 end
    at = at + 1 + length
  end
  return #packet + 1
end
function ek_first_text(packet)
  if #packet < 12 then return nil end
  local questions = packet:byte(5) * 256 + packet:byte(6)
  local answers = packet:byte(7) * 256 + packet:byte(8)
  local at = 13
  for _ = 1, questions do at = ek_skip_name(packet, at) + 4 end
  for _ = 1, answers do
    at = ek_skip_name(packet, at)
    if at + 9 > #packet then return nil end
    local kind = packet:byte(at) * 256 + packet:byte(at + 1)
    local size = packet:byte(at + 8) * 256 + packet:byte(at + 9)
    if kind == 16 and size > 0 and at + 10 <= #packet then
      local length = packet:byte(at + 10)
      return packet:sub(at + 11, at + 10 + math.min(length, size - 1))
    end
    at = at + 10 + size
  end
  return nil
end
function {IDENTITY}(node, response)
  if not {ENFORCE} then return true end
  local text = ek_first_text(response:getContent())
  return text ~= nil and (text == node or text:sub(1, #node + 1) == node .. " ")
end"""


def lines(topology: Topology) -> list[str]:
    """The functions that this topology needs, as lines."""
    identity = any(backend.identity for backend in topology.backends)
    out = [HELPERS]
    if topology.tuning.retry:
        out.append(_RETRY)
    if identity:
        out += [f"{ENFORCE} = {'true' if topology.enforce_identity else 'false'}", _IDENTITY]
    work = (["ek_retry_refill()"] if topology.tuning.retry else []) + (["if ek_guard ~= nil then ek_guard:apply() end"] if topology.guard is not None else [])
    if work:
        out.append("\n".join(["function maintenance()", *(f"  {line}" for line in work), "end"]))
    return [line for block in out for line in block.split("\n")]
