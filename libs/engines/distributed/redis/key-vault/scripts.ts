import { Script } from '#libs/engines/distributed/redis/client/script.js'

/*
 * Each script's first key is the partition's standing, the second its keys by inbox id. A value is `f` (forgotten),
 * or a wrapped key behind `u` (in use) or `t` (told of by the log alone). Positions are compared as text: Lua's
 * numbers lose digits as such.
 */

/** Answers log, next, master key, then a value for each id. */
export const FIND = new Script(`
local found = redis.call('HMGET', KEYS[1], 'log', 'next', 'master-key')
for i = 1, #ARGV do found[3 + i] = redis.call('HGET', KEYS[2], ARGV[i]) end
return found
`)

/** Arguments: inbox id, wrapped key. Answers what stood there before. */
export const TAKE = new Script(`
local stood = redis.call('HGET', KEYS[2], ARGV[1])
if not stood or string.sub(stood, 1, 1) == 't' then redis.call('HSET', KEYS[2], ARGV[1], 'u' .. ARGV[2]) end
return stood
`)

/** Removes before it writes, which a full Redis lets pass: an erasure does not wait for memory. */
export const FORGET = new Script(`
for i = 1, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], 'f')
end
`)

/** Arguments: log and next as they were seen, empty for none; log and next to begin with. */
export const BEGIN = new Script(`
local log, next = unpack(redis.call('HMGET', KEYS[1], 'log', 'next'))
if (log or '') ~= ARGV[1] or (next or '') ~= ARGV[2] then return end
if log ~= ARGV[3] then redis.call('UNLINK', KEYS[1], KEYS[2]) end
redis.call('HSET', KEYS[1], 'log', ARGV[3], 'next', ARGV[4])
`)

/**
 * Arguments: log, from, to, master key or empty, how many ids are settled, these; then inbox id and what is said of
 * it, pair by pair. Answers false if the view has moved, else ids and what stands for them where that is contested:
 * where there are none the view moves on.
 */
export const APPLY = new Script(`
local log, next = unpack(redis.call('HMGET', KEYS[1], 'log', 'next'))
if log ~= ARGV[1] or next ~= ARGV[2] then return false end
local settled, ids, stands, differs = {}, {}, {}, {}
local at = 6 + tonumber(ARGV[5])
for i = 6, at - 1 do settled[ARGV[i]] = true end
for i = at, #ARGV, 2 do
  local id, said = ARGV[i], ARGV[i + 1]
  local held = stands[id]
  if held == nil then
    held = redis.call('HGET', KEYS[2], id)
    ids[#ids + 1] = id
  end
  local put = held
  if said == 'f' then
    put = 'f'
  elseif not held or string.sub(held, 1, 1) == 't' then
    put = 't' .. said
  end
  if put ~= held then redis.call('HSET', KEYS[2], id, put) end
  stands[id] = put
  differs[id] = put ~= said and string.sub(put, 2) ~= said
end
local contested = {}
for _, id in ipairs(ids) do
  if differs[id] and not settled[id] then
    contested[#contested + 1] = id
    contested[#contested + 1] = stands[id]
  end
end
if #contested == 0 then
  redis.call('HSET', KEYS[1], 'next', ARGV[3])
  if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'master-key', ARGV[4]) end
end
return contested
`)
