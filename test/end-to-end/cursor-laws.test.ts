import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import fc from 'fast-check'
import { keysUnder } from '#libs/engines/distributed/redis/read-model/redis-read-model-harness.contract.js'
import { openRedis } from '#libs/engines/distributed/redis/client/redis-client.js'
import {
  call,
  createInbox,
  mail,
  UnexpectedAnswerError,
  pagesFrom,
  send,
  type MessageJson,
} from '#test/harness/client.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { CursorReader, type ReadOptions } from '#test/harness/cursor-reader.js'
import { redisUrlUnderTest } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'

/*
 * The property of cursors: a client that reads from cursor to cursor sees every message that is not deleted exactly
 * once, even if messages arrive or are deleted, or Mayfly restarts or rebuilds its views meanwhile.
 */

type ListedJson = MessageJson & { inbox_id: string }

/** MAYFLY_CURSOR_RUNS sets a larger number. */
const RUNS = Number(process.env.MAYFLY_CURSOR_RUNS ?? 4)
const SETTLED_WITHIN_MS = 60_000

type Step =
  /** That many concurrent mails. */
  | { type: 'send'; count: number }
  /** One of the existing messages. */
  | { type: 'delete'; index: number }
  /** Every reader makes that many requests; all readers run concurrently. */
  | { type: 'read'; requests: number }
  | { type: 'restart' }
  | { type: 'rebuild' }

interface Planned {
  step: Step
  /** Whether the next step waits until this one ends. */
  isAwaited: boolean
}

const INBOXES = 3

type Reading = ReadOptions & {
  /** The index of an inbox, or all of them. */
  of: number | 'environment'
}

const reading: fc.Arbitrary<Reading> = fc.record({
  of: fc.constantFrom(...Array.from({ length: INBOXES }, (_, index) => index), 'environment' as const),
  mode: fc.constantFrom('asc', 'desc', 'wait'),
  limit: fc.constantFrom(1, 2, 3, 7, 100),
  subject: fc.constantFrom(null, 'odd', 'even'),
})

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('send' as const), count: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('delete' as const),
      index: fc.nat({ max: 99 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('read' as const), requests: fc.integer({ min: 1, max: 3 }) }),
  },
)

/** Some steps, with a restart or a rebuild among them. */
const scenario = fc
  .tuple(
    fc.array(fc.record({ step, isAwaited: fc.boolean() }), { minLength: 6, maxLength: 20 }),
    fc.constantFrom('restart' as const, 'rebuild' as const),
    fc.nat(),
  )
  .map(([steps, type, index]): Planned[] => {
    const fault: Planned = { step: { type }, isAwaited: true }
    return steps.toSpliced(index % (steps.length + 1), 0, fault)
  })

describe('reading from cursor to cursor', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  it('returns every message that is not deleted once', async () => {
    const property = fc.asyncProperty(
      scenario,
      fc.array(reading, { minLength: 2, maxLength: 4 }),
      async (steps, readings) => {
        const inboxes = await Promise.all(Array.from({ length: INBOXES }, () => createInbox(mayfly)))
        const pathOf = ({ of }: Pick<Reading, 'of'>) =>
          of === 'environment' ? '/v1/messages' : `/v1/inboxes/${inboxes[of]?.id ?? ''}/messages`
        const readers = readings.map((each) => new CursorReader(() => mayfly, pathOf(each), each))
        let sent = 0
        const steady = async (work: () => Promise<unknown>) => {
          // A mail may be refused while views are rebuilt, and a deletion too: neither is what is looked at here.
          await work().catch(() => undefined)
        }
        const take = async (step: Step): Promise<void> => {
          switch (step.type) {
            case 'send': {
              const numbers = Array.from({ length: step.count }, () => sent++)
              await Promise.all(
                numbers.map((n) =>
                  steady(() => send(mayfly, inboxes[n % INBOXES]?.address ?? '', numbered(n))),
                ),
              )
              return
            }
            case 'delete':
              return steady(async () => {
                const { body } = await call<ListedJson[]>(mayfly, 'GET', '/v1/messages?limit=100')
                const victim = body[step.index % body.length]
                if (victim === undefined) return
                await call(mayfly, 'DELETE', `/v1/inboxes/${victim.inbox_id}/messages/${victim.id}`)
              })
            case 'read':
              await Promise.all(
                readers.map(async (reader) => {
                  for (let n = 0; n < step.requests; n += 1) await reader.readNext()
                }),
              )
              return
            case 'restart':
              await mayfly.end('SIGTERM')
              mayfly = await mayfly.restart()
              return
            case 'rebuild':
              mayfly = await withoutViews(mayfly)
          }
        }

        const [changes, reads]: [Promise<void>[], Promise<void>[]] = [[], []]
        for (const { step, isAwaited } of steps) {
          const isChange = step.type === 'send' || step.type === 'delete'
          // Reads run one after another, concurrently with changes. A restart or a rebuild runs alone.
          if (!isChange) await Promise.all(reads.splice(0))
          if (!isChange && step.type !== 'read') await Promise.all(changes.splice(0))
          const running = take(step)
          if (isAwaited) await running
          else if (isChange) changes.push(running)
          else reads.push(running)
        }
        await Promise.all([...changes, ...reads])

        const there = await untilSettled(mayfly)
        for (const [index, reader] of readers.entries()) {
          await reader.readToEnd()
          expect(new Set(reader.seen).size).toBe(reader.seen.length)
          const { of } = readings[index] ?? { of: 'environment' }
          for (const { id } of of === 'environment' ? inboxes : inboxes.slice(of, of + 1)) {
            const staying = there.filter((each) => each.inbox_id === id && reader.matches(each.subject))
            const ids = staying.map((message) => message.id)
            const seen = reader.seen.filter((messageId) => ids.includes(messageId))
            if (reader.isInOrder) expect(seen).toEqual(ids)
            else expect(seen.toSorted()).toEqual(ids.toSorted())
          }
        }
        await Promise.all(inboxes.map(({ id }) => call(mayfly, 'DELETE', `/v1/inboxes/${id}`)))
      },
    )
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  }, 600_000)
})

function numbered(n: number): string {
  return mail(`${n % 2 === 0 ? 'even' : 'odd'} ${n}`)
}

/** Resolves with the list of all messages once it no longer changes. */
async function untilSettled(mayfly: Mayfly): Promise<ListedJson[]> {
  let before: string | null = null
  return until(
    'the mail to be settled',
    async () => {
      const ready = await call(mayfly, 'GET', '/readyz')
      if (ready.status !== 200 || (ready.body as { backlog: number }).backlog > 0) return null
      const pages = await pagesFrom<ListedJson>(mayfly, '/v1/messages?limit=100').catch((error: unknown) => {
        // The inbox may be visible again before its key.
        if (error instanceof UnexpectedAnswerError && error.status === 503) return null
        throw error
      })
      if (pages === null) return null
      const there = pages.flatMap(({ body }) => body)
      const now = there.map(({ id }) => id).join()
      const isSettled = now === before
      before = now
      return isSettled ? there : null
    },
    SETTLED_WITHIN_MS,
  )
}

/** Removes the views: the file while Mayfly is stopped, or the keys in Redis while it runs. */
async function withoutViews(mayfly: Mayfly): Promise<Mayfly> {
  if (engineUnderTest() === 'embedded') {
    await mayfly.end('SIGTERM')
    await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
    return mayfly.restart()
  }
  const urls = redisUrlUnderTest().split(',')
  const client = await openRedis({ urls, name: 'mayfly-test', onError: () => undefined })
  const keys = await keysUnder(client, `${basename(mayfly.dataDir)}.`)
  // All keys of a slot at once, because half of the views would show half of the messages.
  const slots = Map.groupBy(keys, (key) => /\{(.+?)\}/.exec(key)?.[1] ?? key)
  await Promise.all([...slots.values()].map((together) => client.unlink(...together)))
  client.disconnect()
  return mayfly
}
