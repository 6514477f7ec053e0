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
