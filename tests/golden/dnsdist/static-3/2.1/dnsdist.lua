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
ek_enforce_identity = true
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
function ek_identity(node, response)
  if not ek_enforce_identity then return true end
  local text = ek_first_text(response:getContent())
  return text ~= nil and (text == node or text:sub(1, #node + 1) == node .. " ")
end
function maintenance()
  ek_retry_refill()
end
