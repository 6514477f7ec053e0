import { answerOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { Script, ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'
import { brand, type InboxId } from '#libs/domain/ids/typeid.js'
import {
  KeyViewUnavailableError,
  type KeyEntry,
  type KeyStatement,
  type KeyStep,
  type KeyStepOutcome,
  type KeyView,
  type ViewStanding,
} from '#libs/ports/key-vault/key-view.js'
import type { WrappedKey } from '#libs/ports/key-vault/master-key.js'
import { APPLY, BEGIN, FIND, FORGET, TAKE } from './scripts.js'

/*
 * Relies on: Redis 7 with noeviction, on one node or in a Cluster; scripts being atomic. It may lose what it
 * acknowledged (a crash, a failover to a replica): the log has all of it.
 *
 * | key                        | type | holds                                                        |
 * | -------------------------- | ---- | ------------------------------------------------------------ |
 * | {p<n>}:slot:inbox-keys     | hash | log, next, master-key: where the view of a partition stands  |
 * | {p<n>}:inbox-keys          | hash | inbox id → value, as ./scripts.ts has it                     |
 */

export interface RedisKeyViewOptions {
  client: RedisClient
  /** Begins every key. */
  prefix: string
}

/** Takes a client and leaves it open. */
export class RedisKeyView implements KeyView {
  constructor(private readonly options: RedisKeyViewOptions) {}

  async find(partition: number, inboxIds: readonly InboxId[]) {
    const [logId, next, masterKeyId, ...values] = listOf(await this.run(FIND, partition, inboxIds))
    const standing: ViewStanding | null =
      logId == null || next == null ? null : { logId, next: Number(next), masterKeyId: masterKeyId ?? null }
    return { standing, entries: inboxIds.map((_, index) => entryOf(values[index] ?? null)) }
  }

  async take(partition: number, inboxId: InboxId, key: WrappedKey) {
    const wanted = textOf(key)
    const stood = textOrNull(await this.run(TAKE, partition, [inboxId, wanted]))
    const mine = { state: 'wrapped', key } as const
    if (stood === null) return { stands: mine, wasContested: false }
    const wasContested = stood.slice(1) !== wanted
    return { stands: stood.startsWith(TOLD) ? mine : statementOf(stood), wasContested }
  }

  async forget(partition: number, inboxIds: readonly InboxId[]): Promise<void> {
    await this.run(FORGET, partition, inboxIds)
  }

  async begin(
    partition: number,
    start: Pick<ViewStanding, 'logId' | 'next'>,
    seen: ViewStanding | null,
  ): Promise<void> {
    const place = seen === null ? ['', ''] : [seen.logId, seen.next]
    await this.run(BEGIN, partition, [...place, start.logId, start.next])
  }

  async apply(step: KeyStep): Promise<KeyStepOutcome> {
    const { partition, logId, from, to, masterKeyId, settled, statements } = step
    const said = statements.flatMap(({ inboxId, says }) => [
      inboxId,
      says.state === 'forgotten' ? FORGOTTEN : textOf(says.key),
    ])
    const args = [logId, from, to, masterKeyId ?? '', settled.size, ...settled, ...said]
    const answer = await this.run(APPLY, partition, args)
    if (answer === null) return 'moved'
    const contested = listOf(answer)
    return contested.length === 0 ? 'applied' : { contested: statementsIn(contested) }
  }

  private run(script: Script, partition: number, args: readonly ScriptArgument[]): Promise<unknown> {
    const { client, prefix } = this.options
    const tag = `${prefix}{p${partition}}`
    return answerOf(
      () => script.run(client, [`${tag}:slot:inbox-keys`, `${tag}:inbox-keys`], args),
      (cause) => new KeyViewUnavailableError('the keys in Redis are out of reach', { cause }),
    )
  }
}

const FORGOTTEN = 'f'
const IN_USE = 'u'
const TOLD = 't'

function textOf({ masterKeyId, wrapped }: WrappedKey): string {
  return `${masterKeyId} ${Buffer.from(wrapped).toString('base64')}`
}

function entryOf(value: string | null): KeyEntry {
  return value === null ? { state: 'absent' } : statementOf(value)
}

function statementOf(value: string): KeyStatement['says'] {
  if (value === FORGOTTEN) return { state: 'forgotten' }
  const [masterKeyId = '', wrapped] = value.slice(1).split(' ')
  if (!(value.startsWith(IN_USE) || value.startsWith(TOLD)) || wrapped === undefined) {
    throw new TypeError('a key in Redis is not as Mayfly writes it')
  }
  return { state: 'wrapped', key: { masterKeyId, wrapped: Buffer.from(wrapped, 'base64') } }
}

function statementsIn(pairs: readonly (string | null)[]): KeyStatement[] {
  const statements: KeyStatement[] = []
  for (let at = 0; at < pairs.length; at += 2) {
    const [id, value] = [pairs[at] ?? '', pairs[at + 1] ?? '']
    statements.push({ inboxId: brand('inb', id), says: statementOf(value) })
  }
  return statements
}

function listOf(answer: unknown): (string | null)[] {
  if (!Array.isArray(answer)) throw new TypeError('an answer of Redis is no list')
  return answer.map(textOrNull)
}

function textOrNull(answer: unknown): string | null {
  if (answer !== null && typeof answer !== 'string') throw new TypeError('an answer of Redis is no text')
  return answer
}
