"""What Redis does in one step: scripts in Lua, each with the namespace as its first argument.

    NS:current            number of the generation that readers see
    NS:next               number of the one that is written
    NS:serial             the last number given
    NS:generations        list of those that can be current, the newest first
    NS:garbage            set of numbers whose entries are to be removed
    NS:info:NUMBER        hash: identity, scheme, source, began, position, written, entries, …
    NS:gen:NUMBER:KEY     an entry

Each is written so that it may be sent again where its answer was lost.
"""

from __future__ import annotations

TAKEN = "TAKEN"
"""The first word of the error where another publication took over."""
GONE = "GONE"
"""That of the error where what was written is gone, and no other publication began."""

_DROP = """
local function drop(number)
  redis.call('SADD', ARGV[1] .. ':garbage', number)
  redis.call('DEL', ARGV[1] .. ':info:' .. number)
end
"""
_CHECK = f"""
do
  local ns, number = ARGV[1], ARGV[2]
  local found = redis.call('GET', ns .. ':next')
  if found ~= number or redis.call('EXISTS', ns .. ':info:' .. number) == 0 then
    -- Who takes over begins a later number, or goes on with this one until it is current.
    local serial = tonumber(redis.call('GET', ns .. ':serial') or 0)
    if found and found ~= number or serial > tonumber(number)
        or redis.call('GET', ns .. ':current') == number then
      return redis.error_reply('{TAKEN} another publication took over')
    end
    redis.pcall('SADD', ns .. ':garbage', number)
    redis.pcall('SET', ns .. ':serial', number)
    return redis.error_reply('{GONE} what was written is gone')
  end
end
"""

# identity, scheme, source, state of the server -> number, began (ms), position, written
BEGIN = (
    _DROP
    + """
local ns = ARGV[1]
local number = redis.call('GET', ns .. ':next')
if number and redis.call('HGET', ns .. ':info:' .. number, 'identity') ~= ARGV[2] then
  drop(number)
  number = false
end
if not number then
  -- A serial that was evicted must not give a number that is in use.
  local last = tonumber(redis.call('GET', ns .. ':serial') or 0)
  local used = redis.call('LRANGE', ns .. ':generations', 0, -1)
  local old = redis.call('SMEMBERS', ns .. ':garbage')
  local current = redis.call('GET', ns .. ':current') or 0
  for _, numbers in ipairs({used, old, {current}}) do
    for _, one in ipairs(numbers) do last = math.max(last, tonumber(one)) end
  end
  number = string.format('%.0f', last + 1)
  redis.call('SET', ns .. ':serial', number)
  local now = redis.call('TIME')
  redis.call('HSET', ns .. ':info:' .. number,
    'identity', ARGV[2], 'scheme', ARGV[3], 'source', ARGV[4], 'server', ARGV[5],
    'began', now[1] .. string.format('%03d', math.floor(now[2] / 1000)),
    'position', -1, 'written', 0, 'carried', 0)
  redis.call('SET', ns .. ':next', number)
end
local found = redis.call('HMGET', ns .. ':info:' .. number, 'began', 'position', 'written')
return {number, found[1], found[2], found[3]}
"""
)

# number, position before, position after, then entries in one text, each its end in ms (0: never)
# as a double, and its key and its value, each behind the number of its bytes -> written in total
WRITE = (
    _CHECK
    + f"""
local info = ARGV[1] .. ':info:' .. ARGV[2]
local position = redis.call('HGET', info, 'position')
if position == ARGV[4] then return redis.call('HGET', info, 'written') end
if position ~= ARGV[3] then
  return redis.error_reply('{TAKEN} another publication took over')
end
local prefix = ARGV[1] .. ':gen:' .. ARGV[2] .. ':'
local count, at = 0, 1
while at <= #ARGV[5] do
  local done, ends, key, value
  ends, key, value, at = struct.unpack('>dI4c0I4c0', ARGV[5], at)
  if ends == 0 then
    done = redis.call('SET', prefix .. key, value, 'NX')
  else
    done = redis.call('SET', prefix .. key, value, 'NX', 'PXAT', string.format('%.0f', ends))
  end
  if done then count = count + 1 end
end
redis.call('HSET', info, 'position', ARGV[4])
return redis.call('HINCRBY', info, 'written', count)
"""
)

# number, number of the current one, whether to copy, then keys -> live, covered
CARRY = (
    _CHECK
    + """
local old = ARGV[1] .. ':gen:' .. ARGV[3] .. ':'
local new = ARGV[1] .. ':gen:' .. ARGV[2] .. ':'
local live, covered, carried = 0, 0, 0
for at = 5, #ARGV do
  if redis.call('EXISTS', old .. ARGV[at]) == 1 then
    live = live + 1
    if ARGV[4] == '1' and redis.call('COPY', old .. ARGV[at], new .. ARGV[at]) == 1 then
      carried = carried + 1
    else
      covered = covered + redis.call('EXISTS', new .. ARGV[at])
    end
  end
end
redis.call('HINCRBY', ARGV[1] .. ':info:' .. ARGV[2], 'carried', carried)
return {live, covered + carried}
"""
)

# number, entries, bytes: the switch. What was rolled back from can't come back later.
SWITCH = (
    _DROP
    + """
local ns = ARGV[1]
if redis.call('GET', ns .. ':current') == ARGV[2] then return 1 end
"""
    + _CHECK
    + """
local current = redis.call('GET', ns .. ':current')
while true do
  local newest = redis.call('LINDEX', ns .. ':generations', 0)
  if not newest or newest == current then break end
  drop(redis.call('LPOP', ns .. ':generations'))
end
redis.call('HSET', ns .. ':info:' .. ARGV[2], 'entries', ARGV[3], 'bytes', ARGV[4])
redis.call('LPUSH', ns .. ':generations', ARGV[2])
redis.call('SET', ns .. ':current', ARGV[2])
redis.call('DEL', ns .. ':next')
return 1
"""
)

# number
DISCARD = (
    _DROP
    + _CHECK
    + """
drop(ARGV[2])
return redis.call('DEL', ARGV[1] .. ':next')
"""
)

# how many to keep, the current one among them
PRUNE = (
    _DROP
    + """
local list = ARGV[1] .. ':generations'
local at = redis.call('LPOS', list, redis.call('GET', ARGV[1] .. ':current') or '')
while at and redis.call('LLEN', list) > at + tonumber(ARGV[2]) do
  drop(redis.call('RPOP', list))
end
return 1
"""
)

# number of the current one -> the one before, which is current then
ROLLBACK = """
local ns = ARGV[1]
local current = redis.call('GET', ns .. ':current')
if current ~= ARGV[2] then return current end
local at = redis.call('LPOS', ns .. ':generations', current)
local before = at and redis.call('LINDEX', ns .. ':generations', at + 1)
if before then redis.call('SET', ns .. ':current', before) end
return before
"""
