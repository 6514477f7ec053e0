import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { decodeBatch } from '#libs/ports/event-log/decode-batch.js'
import type { BatchOutcome, LogLayout, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec } from '#libs/ports/event-log/codecs.js'
import { PassErrorsOn } from '#libs/role/event-log-strategy.js'
import { LifecycleMetrics } from './lifecycle-metrics.js'

/** What the lifecycle works with, made by who composes it. */
export abstract class LifecyclePorts {
  abstract readonly log: LogLayout
  abstract readonly vault: Pick<KeyVault, 'forget'>
  abstract readonly logger: Logger
}

/**
 * Forgets the key of every inbox that has ended. The group's offset is committed behind that, so that a process
 * killed at any moment leaves no end without its erasure.
 */
@Controller()
@UseFilters(PassErrorsOn)
export class ErasureController {
  constructor(
    private readonly ports: LifecyclePorts,
    private readonly metrics: LifecycleMetrics,
  ) {}

  @EventPattern('inbox-events')
  async forgetEnded(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, vault, logger } = this.ports
    // What can't be decoded the projector sets aside.
    const { events, outcome } = decodeBatch(inboxEventCodec, batch, log.partitionCount(batch.topic))
    const ended = events.flatMap(({ recorded: { event } }) =>
      event.type === 'InboxDeleted' || event.type === 'InboxExpired' ? [event.inboxId] : [],
    )
    if (ended.length > 0) {
      await vault.forget(ended)
      this.metrics.forgotten.inc(ended.length)
      logger.info({ keys: ended.length, partition: batch.partition }, 'keys have been forgotten')
    }
    return outcome
  }
}
