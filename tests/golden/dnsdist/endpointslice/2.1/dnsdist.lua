-- Written by edgekeeper; changes here are lost at the next render.
ek_made = ek_made or {}
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
  local out = {}
  for _, server in ipairs(getServers()) do
    if server.order ~= 1000000 and server:getName() == name then out[#out + 1] = server end
  end
  return out
end
function ek_leave(servers)
  for _, server in ipairs(servers) do
    server.order = 1000000
    server:setDown()
  end
end
function ek_remove(name)
  ek_made[name] = nil
  ek_leave(ek_named(name))
end
function ek_group(name)
  return name:match("/(.*)$") or ""
end
function ek_put(name, same, mark, make)
  local old = ek_named(name)
  if #old == 1 and ek_made[name] == mark then return end
  local up, others = false, false
  for _, server in ipairs(old) do up = up or server.upStatus end
  for _, server in ipairs(getServers()) do
    local other = server:getName()
    if other ~= name and ek_group(other) == ek_group(name) and server:isUp() then others = true end
  end
  local fresh = make()
  if (same and up) or not others then fresh:setAuto(true) end
  ek_leave(old)
  ek_made[name] = mark
end
function ek_sweep(any)
  local left = 0
  for _, server in ipairs(getServers()) do
    if server.order == 1000000 then
      if any or server:getOutstanding() == 0 then
        rmServer(server)
        return "more"
      end
      left = left + 1
    end
  end
  return left == 0 and "done" or "busy"
end
ek_retry_left = 20
ek_retry_streams_left = 20
ek_retry_seen = 0
function ek_retry_refill()
  local queries = getStatisticsCounters()["queries"]
  ek_retry_left = math.max(20, math.floor((queries - ek_retry_seen) / 10))
  ek_retry_streams_left = math.max(20, queries - ek_retry_seen)
  ek_retry_seen = queries
end
function ek_retry_into(response, pool)
  if response.pool == "resolver" then response.pool = pool end
  response:restart()
end
function ek_retry(response)
  local before = response:getRestartCount()
  if response.tcp then
    if before < 3 and ek_retry_streams_left > 0 then
      ek_retry_streams_left = ek_retry_streams_left - 1
      ek_retry_into(response, "retry-stream")
    end
  elseif before == 0 and ek_retry_left > 0 then
    ek_retry_left = ek_retry_left - 1
    ek_retry_into(response, "retry")
  end
  return DNSResponseAction.None, ""
end
function maintenance()
  ek_retry_refill()
end
