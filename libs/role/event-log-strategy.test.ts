import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Controller, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { EventPattern, type CustomStrategy } from '@nestjs/microservices'
import { appendTo } from '#libs/ports/event-log/arrivals.contract.js'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { BatchOutcome } from '#libs/ports/event-log/event-log.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import pino from 'pino'
import { Registry } from 'prom-client'
import { RoleConsumers, EventLogStrategy, type HandedBatch } from './role-consumers.js'

const GROUP = 'group'
const TOPIC = 'inbox-events'

describe('a Nest microservice that commits by itself', () => {
  let dir: string
  let log: LmdbEventLog
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'mayfly-strategy-'))
    log = await LmdbEventLog.open({
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

  it('commits from its handlers, of the first batch too, and when it closes', async () => {
    await appendTo(log, 1, 'a', 'b')
    const consumers = makeConsumers()
    const handled = Promise.withResolvers<undefined>()

    @Controller()
    class Sink {
      @EventPattern(TOPIC)
      async take({ topic, partition, from, next }: HandedBatch): Promise<BatchOutcome> {
        await consumers.commit(TOPIC, [{ topic, partition, offset: from, note: `up to ${next}` }])
        handled.resolve(undefined)
        return 'done'
      }
    }
    @Module({ controllers: [Sink] })
    class SinkModule {}

    const options: CustomStrategy & { logger: false } = {
      strategy: new EventLogStrategy(consumers),
      logger: false,
    }
    const service = await NestFactory.createMicroservice<CustomStrategy>(SinkModule, options)
    await service.listen()
    await handled.promise
    const place = { topic: TOPIC, partition: 1 } as const
    expect(await log.committed(GROUP, TOPIC)).toEqual([{ ...place, offset: 0, note: 'up to 2' }])
    await consumers.stop((topic) => consumers.commit(topic, [{ ...place, offset: 2, note: '' }]))
    await service.close()
    expect(await log.committed(GROUP, TOPIC)).toEqual([{ ...place, offset: 2, note: '' }])
    await expect(consumers.commit(TOPIC, [{ ...place, offset: 1, note: '' }])).rejects.toMatchObject({
      name: 'NotAssignedError',
    })
  })

  it('has stopped though the last commit failed, of which it tells', async () => {
    const consumers = makeConsumers()

    @Controller()
    class Idle {
      @EventPattern(TOPIC)
      take({ next }: HandedBatch): Promise<BatchOutcome> {
        return Promise.resolve({ seekTo: next })
      }
    }
    @Module({ controllers: [Idle] })
    class IdleModule {}

    const options: CustomStrategy & { logger: false } = {
      strategy: new EventLogStrategy(consumers),
      logger: false,
    }
    const service = await NestFactory.createMicroservice<CustomStrategy>(IdleModule, options)
    await service.listen()
    const failure = new Error('ClickHouse is away')
    await expect(consumers.stop(() => Promise.reject(failure))).rejects.toBe(failure)
    expect(consumers.handledTo({ topic: TOPIC, partition: 1 })).toBeNull()
    await service.close()
  })
})
