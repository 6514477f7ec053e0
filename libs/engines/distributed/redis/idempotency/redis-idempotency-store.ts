import { randomBytes, randomUUID } from 'node:crypto'
import { answerOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Script, ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import {
  IdempotencyUnavailableError,
  SEED_BYTES,
  type IdempotencyStore,
  type Repeatable,
  type Reservation,
  type Run,
} from '#libs/ports/idempotency/idempotency-store.js'
import { FINISH, RELEASE, RENEW, RESERVE } from './scripts.js'

/*
 * Relies on Redis 7 with noeviction, scripts being atomic, and its clock, by which leases and records end. Nothing else
 * knows of a record: where Redis loses one, a repeat of its request is a new request.
 *
 * | key               | type | holds                                                                   |
 * | ----------------- | ---- | ----------------------------------------------------------------------- |
 * | idempotency:<id>  | hash | fingerprint, seed, first, then token and lease or answer; expires       |
 */

export interface RedisIdempotencyOptions {
  /** Stays the caller's, who closes it. */
  client: RedisClient
  /** Begins every key; without braces. */
  prefix: string
  leaseMs: number
  keptMs: number
  now: () => Date
}

export class RedisIdempotencyStore implements IdempotencyStore {
  constructor(private readonly options: RedisIdempotencyOptions) {}

  get leaseMs(): number {
    return this.options.leaseMs
  }

  async reserve({ id, fingerprint }: Repeatable): Promise<Reservation> {
    const { leaseMs, keptMs, now } = this.options
    const token = randomUUID()
    const fresh = [randomBytes(SEED_BYTES).toString('base64'), now().getTime()] as const
    const said = await this.run(RESERVE, id, [fingerprint, token, leaseMs, keptMs, ...fresh])
    const [state = '', first = '', second = ''] = Array.isArray(said) ? said.map(String) : []
    if (state === 'in-use') return { state }
    if (state === 'reused') return { state, fingerprint: first }
    if (state === 'stored') return { state, answer: Buffer.from(first, 'base64') }
    const run = { id, token, seed: Buffer.from(first, 'base64'), firstAtMs: Number(second) }
    return { state: 'run', run }
  }

  async renew({ id, token }: Run): Promise<void> {
    await this.run(RENEW, id, [token, this.options.leaseMs])
  }

  async finish({ id, token }: Run, answer: Uint8Array): Promise<void> {
    await this.run(FINISH, id, [token, Buffer.from(answer).toString('base64'), this.options.keptMs])
  }

  async release({ id, token }: Run, left: 'resumable' | 'undone'): Promise<void> {
    await this.run(RELEASE, id, [token, left])
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  private run(script: Script, id: string, args: readonly ScriptArgument[]): Promise<unknown> {
    const { client, prefix } = this.options
    return answerOf(
      () => script.run(client, [`${prefix}idempotency:${id}`], args),
      (cause) => new IdempotencyUnavailableError('Redis is out of reach', { cause }),
    )
  }
}
