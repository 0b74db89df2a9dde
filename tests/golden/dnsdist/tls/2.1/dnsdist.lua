-- Written by edgekeeper; changes here are lost at the next render.
ek_made = ek_made or {}
ek_fresh = {}
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
function ek_go(servers)
  for _, server in ipairs(servers) do server.order = 1000000 end
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
  local stays, goes = {}, false
  for _, server in ipairs(getServers()) do
    if server.order == 1000000 then goes = true else stays[server:getName()] = server end
  end
  for _, names in ipairs(pools) do
    local up, fresh, all = false, {}, {}
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
    if server.order == 1000000 then server:setDown() end
  end
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
