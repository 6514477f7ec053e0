import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Controller } from '@nestjs/common'
import { EventPattern } from '@nestjs/microservices'
import pino from 'pino'
import { Registry } from 'prom-client'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { appendTo } from '#libs/ports/event-log/arrivals.contract.js'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { BatchOutcome } from '#libs/ports/event-log/event-log.js'
import { createRoleService, RoleConsumers, type ConsumedBatch } from './role-consumers.js'

const GROUP = 'group'
const TOPIC = 'inbox-events'

describe('the Nest microservice of a role', () => {
  let dir: string
  let log: LmdbEventLog
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mayfly-strategy-'))
    log = await openLmdbEventLog({
      path: join(dir, 'log.mdb'),
      partitions: PARTITIONS,
      retentionMs: () => null,
      now: () => new Date(),
      onPruneError: (error) => {
        throw error
      },
    })
  })
  afterEach(async () => {
    await log.close()
    await rm(dir, { recursive: true })
  })

  function makeConsumers(): RoleConsumers {
    return new RoleConsumers({
      log,
      group: GROUP,
      startAt: ({ first }) => Promise.resolve({ offset: first }),
      logger: pino({ level: 'silent' }),
      registry: new Registry(),
    })
  }

  it('commits from its handlers, even for the first batch, and when it closes', async () => {
    await appendTo(log, 1, 'a', 'b')
    const consumers = makeConsumers()
    const handled = Promise.withResolvers<undefined>()

    @Controller()
    class Sink {
      @EventPattern(TOPIC)
      async take({ topic, partition, from, next }: ConsumedBatch): Promise<BatchOutcome> {
        await consumers.commit(TOPIC, [{ topic, partition, offset: from, note: `up to ${next}` }])
        handled.resolve(undefined)
        return 'done'
      }
    }
    const service = await createRoleService(consumers, Sink, consumers)
    await service.listen()
    await handled.promise
    const partition1 = { topic: TOPIC, partition: 1 } as const
    expect(await log.committed(GROUP, TOPIC)).toEqual([{ ...partition1, offset: 0, note: 'up to 2' }])
    await consumers.commit(TOPIC, [{ ...partition1, offset: 2, note: '' }])
    await service.close()
    expect(await log.committed(GROUP, TOPIC)).toEqual([{ ...partition1, offset: 2, note: '' }])
    await expect(consumers.commit(TOPIC, [{ ...partition1, offset: 1, note: '' }])).rejects.toMatchObject({
      name: 'NotAssignedError',
    })
  })
})
