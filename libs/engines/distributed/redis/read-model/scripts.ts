import { Script } from '#libs/engines/distributed/redis/client/script.js'

/** Runs the writes of a StepWrites from an argument on: how many values follow, the command, which key, the rest. */
const WRITE = `
local function write(at)
  local last = #ARGV
  while at <= last do
    local stop = at + tonumber(ARGV[at])
    redis.call(ARGV[at + 1], KEYS[tonumber(ARGV[at + 2])], unpack(ARGV, at + 3, stop))
    at = stop + 1
  end
end
`

/**
 * Where the slot (the first key) stands at `from`: writes, and moves it to `to`. Answers `applied`, the position where
 * it stands elsewhere, `absent`, or `incomplete` where one of the next so many keys, of content, is not there: a node
 * that has been replaced since may have taken it. Arguments: from, to, how many, the writes. Positions are compared as
 * text: Lua's numbers lose digits as such.
 */
export const APPLY = new Script(`${WRITE}
local position = redis.call('HGET', KEYS[1], 'position')
if not position then return 'absent' end
if position ~= ARGV[1] then return position end
for at = 2, 1 + tonumber(ARGV[3]) do
  if redis.call('EXISTS', KEYS[at]) == 0 then return 'incomplete' end
end
write(4)
redis.call('HSET', KEYS[1], 'position', ARGV[2])
return 'applied'
`)

/** Milliseconds since 1970 by the server's clock, later than a time that is handed in. */
const LATER = `
local function later(than)
  local seconds, micros = unpack(redis.call('TIME'))
  return string.format('%.0f', math.max(seconds * 1000 + math.floor(micros / 1000), (tonumber(than) or 0) + 1))
end
`

/**
 * Begins to follow a log with views that stand on it, and answers where; where that is past the log's end, in a pair
 * and changing nothing, unless it is the position handed in. Without any, takes the slot away and answers `absent`.
 * Arguments: log, form, first, end, the position known to be past it or nothing.
 */
export const BEGIN = new Script(`${LATER}
local log, form, position, begun = unpack(redis.call('HMGET', KEYS[1], 'log', 'form', 'position', 'begun'))
if log == ARGV[1] and form == ARGV[2] and position then
  if tonumber(position) <= tonumber(ARGV[4]) then
    if tonumber(position) < tonumber(ARGV[3]) then position = ARGV[3] end
    redis.call('HSET', KEYS[1], 'position', position, 'target', ARGV[4], 'begun', later(begun))
    return position
  end
  if position ~= ARGV[5] then return {'ahead', position} end
end
redis.call('UNLINK', KEYS[1])
return 'absent'
`)

/** Writes to views that are being emptied; answers `begun` where another has emptied them and gone on meanwhile. */
export const EMPTY = new Script(`${WRITE}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
write(1)
return 'emptied'
`)

/** Removes what is left (the other keys) and makes the slot; answers `begun` as EMPTY does. Arguments as for BEGIN. */
export const ESTABLISH = new Script(`${LATER}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'begun' end
for at = 2, #KEYS do redis.call('UNLINK', KEYS[at]) end
local slot = {'log', ARGV[1], 'form', ARGV[2], 'position', ARGV[3], 'target', ARGV[4], 'begun', later(0)}
redis.call('HSET', KEYS[1], unpack(slot))
return 'established'
`)

/** Due inboxes that nobody has leased, earliest first, each followed by its expiry. Arguments: now, most of them. */
export const LEASABLE = new Script(`
local now, most, found, seen = ARGV[1], tonumber(ARGV[2]), {}, 0
while #found < most * 2 do
  local page = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', seen, most, 'WITHSCORES')
  for at = 1, #page, 2 do
    local lease = redis.call('ZSCORE', KEYS[2], page[at])
    if (not lease or tonumber(lease) <= tonumber(now)) and #found < most * 2 then
      found[#found + 1] = page[at]
      found[#found + 1] = page[at + 1]
    end
  end
  seen = seen + most
  if #page < most * 2 then break end
end
return found
`)

/** Leases those of the ids that are still due and free; answers them. Arguments: now, the leases' end, ids. */
export const LEASE = new Script(`
local leased = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local lease = redis.call('ZSCORE', KEYS[2], id)
  if redis.call('ZSCORE', KEYS[1], id) and (not lease or tonumber(lease) <= tonumber(ARGV[1])) then
    redis.call('ZADD', KEYS[2], ARGV[2], id)
    leased[#leased + 1] = id
  end
end
return leased
`)

/**
 * Webhooks that may have something due (the second key), earliest first; none if the slot (the first) is catching
 * up. Arguments: now, how many to leave out, how many.
 */
export const DUE_WEBHOOKS = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return {} end
return redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', ARGV[2], ARGV[3])
`)

/**
 * Leases what is due of one webhook, earliest first, by making it due at the lease's end, and answers the rows.
 * Keys: the slot, webhooks by what is due, the webhook's due deliveries, its rows. Arguments: webhook, now, the lease's
 * end, most of them.
 */
export const CLAIM_DUE = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return {} end
local ids = redis.call('ZRANGE', KEYS[3], '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[4])
local rows = {}
if #ids > 0 then rows = redis.call('HMGET', KEYS[4], unpack(ids)) end
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[3], ARGV[3], id) end
local earliest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if earliest[2] then redis.call('ZADD', KEYS[2], earliest[2], ARGV[1]) else redis.call('ZREM', KEYS[2], ARGV[1]) end
return rows
`)

/**
 * Leases the replay that has waited longest (of the second key) and answers it; nothing if the slot (the first) is
 * catching up. Arguments: now, the lease's end.
 */
export const CLAIM_REPLAY = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return false end
local member = redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 1)[1]
if not member then return false end
redis.call('ZADD', KEYS[2], ARGV[2], member)
return member
`)

/** The rows of all webhooks in a list (the first key) that stand behind the given beginnings of its members. */
export const ACTIVE_WEBHOOKS = new Script(`
local rows = {}
for at = 1, #ARGV do
  local owner = ARGV[at]
  local members = redis.call('ZRANGE', KEYS[1], '(' .. owner .. 'whk_', '(' .. owner .. 'whk_~', 'BYLEX')
  for each = 1, #members do
    rows[#rows + 1] = redis.call('HGET', KEYS[2], string.sub(members[each], #owner + 1))
  end
end
return rows
`)
