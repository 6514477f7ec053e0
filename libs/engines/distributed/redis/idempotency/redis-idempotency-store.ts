import { randomBytes, randomUUID } from 'node:crypto'
import { answerOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script, type ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import {
  IdempotencyUnavailableError,
  KEPT_MS,
  LEASE_MS,
  SEED_BYTES,
  type IdempotencyStore,
} from '#libs/ports/idempotency/idempotency-store.js'

/*
 * Relies on Redis 7 with noeviction, on atomic scripts, and on its clock, by which leases and records expire. Records are
 * stored nowhere else: if Redis loses one, a repeat of its request is executed as a new request.
 *
 * | key               | type | holds                                                                   |
 * | ----------------- | ---- | ----------------------------------------------------------------------- |
 * | idempotency:<id>  | hash | fingerprint, seed, first, then token and lease or answer; expires       |
 */

interface RedisIdempotencyOptions {
  /** The caller closes it. */
  client: RedisClient
  /** The prefix of every key, without braces. */
  prefix: string
  now: () => Date
  leaseMs?: number
  keptMs?: number
}

export function redisIdempotencyStore({
  client,
  prefix,
  now,
  leaseMs = LEASE_MS,
  keptMs = KEPT_MS,
}: RedisIdempotencyOptions): IdempotencyStore {
  const run = (script: Script, id: string, args: readonly ScriptArgument[]) =>
    answerOf(
      () => script.run(client, [`${prefix}idempotency:${id}`], args),
      (cause) => new IdempotencyUnavailableError('Redis is unavailable', { cause }),
    )

  return {
    leaseMs,

    async reserve({ id, fingerprint }) {
      const token = randomUUID()
      const fresh = [randomBytes(SEED_BYTES).toString('base64'), now().getTime()] as const
      const reply = await run(RESERVE, id, [fingerprint, token, leaseMs, keptMs, ...fresh])
      const [state = '', first = '', second = ''] = Array.isArray(reply) ? reply.map(String) : []
      if (state === 'in-use') return { state }
      if (state === 'reused') return { state, fingerprint: first }
      if (state === 'stored') return { state, answer: Buffer.from(first, 'base64') }
      const seed = Buffer.from(first, 'base64')
      return { state: 'run', run: { id, token, seed, firstAtMs: Number(second) } }
    },

    async renew({ id, token }) {
      await run(RENEW, id, [token, leaseMs])
    },

    async finish({ id, token }, answer) {
      await run(FINISH, id, [token, Buffer.from(answer).toString('base64'), keptMs])
    },

    async release({ id, token }, state) {
      await run(RELEASE, id, [token, state])
    },

    close: () => Promise.resolve(),
  }
}

/*
 * Each script works on one record, a hash, with the server's clock, and may be executed twice. A record without answer and
 * lease is of a run that was released, or whose process has died.
 */

/**
 * Returns a state with its values: `run` with seed and first time; `in-use`; `reused` with the fingerprint; `stored` with
 * the answer. Arguments: fingerprint, token, lease, how long to keep the record, seed and first time of a new record.
 */
const RESERVE = new Script(`
local seconds, micros = unpack(redis.call('TIME'))
local now = seconds * 1000 + math.floor(micros / 1000)
local fingerprint, seed, first, answer, token, lease =
  unpack(redis.call('HMGET', KEYS[1], 'fingerprint', 'seed', 'first', 'answer', 'token', 'lease'))
if fingerprint and fingerprint ~= ARGV[1] then return {'reused', fingerprint} end
if answer then return {'stored', answer} end
if lease and tonumber(lease) > now and token ~= ARGV[2] then return {'in-use'} end
local ends = string.format('%.0f', now + tonumber(ARGV[3]))
if fingerprint then
  redis.call('HSET', KEYS[1], 'token', ARGV[2], 'lease', ends)
  return {'run', seed, first}
end
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'seed', ARGV[5], 'first', ARGV[6], 'token', ARGV[2], 'lease', ends)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'run', ARGV[5], ARGV[6]}
`)

/** Returns unless the token is that of the run that had the lease last. */
const IF_OWN = `if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end`

/** Arguments: token, lease. */
const RENEW = new Script(`${IF_OWN}
local seconds, micros = unpack(redis.call('TIME'))
local ends = seconds * 1000 + math.floor(micros / 1000) + tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'lease', string.format('%.0f', ends))
return 1
`)

/** Arguments: token, answer, how long to keep the record. */
const FINISH = new Script(`${IF_OWN}
redis.call('HSET', KEYS[1], 'answer', ARGV[2])
redis.call('HDEL', KEYS[1], 'token', 'lease')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

/** Arguments: token, `resumable` or `undone`. */
const RELEASE = new Script(`${IF_OWN}
if ARGV[2] == 'undone' then return redis.call('UNLINK', KEYS[1]) end
return redis.call('HDEL', KEYS[1], 'token', 'lease')
`)
