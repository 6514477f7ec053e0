import { Catch, type RpcExceptionFilter } from '@nestjs/common'
import { BaseRpcContext, Server, type CustomTransportStrategy } from '@nestjs/microservices'
import { lastValueFrom, throwError, type Observable } from 'rxjs'
import type { BatchOutcome, RecordBatch } from '#libs/ports/event-log/event-log.js'
import type { SourceTopic } from '#libs/ports/event-log/topics.js'
import type { RoleConsumers } from './role-consumers.js'

/** What a handler is given. */
export interface HandedBatch extends RecordBatch {
  /** Aborts when the handler should finish soon, or reject. */
  signal: AbortSignal
}

/**
 * Gives a Nest microservice batches of the event log: a method marked `@EventPattern(topic)` takes a HandedBatch and
 * resolves with its BatchOutcome. If it throws, the same records come again. Everything else that a role does with its
 * consumers it does with them, not through Nest.
 */
export class EventLogStrategy extends Server implements CustomTransportStrategy {
  override readonly propagatesEventHandlerErrors = true

  constructor(private readonly consumers: RoleConsumers) {
    super()
  }

  listen(callback: (error?: unknown) => void): void {
    const topics = [...this.messageHandlers.keys()] as SourceTopic[]
    this.consumers
      .start(topics, (batch, signal) => this.dispatch({ ...batch, signal }))
      .then(
        () => callback(),
        (error: unknown) => callback(error),
      )
  }

  close(): Promise<void> {
    return this.consumers.stop()
  }

  override on(): never {
    throw new Error('the event log has no events of its own')
  }

  override unwrap(): never {
    throw new Error('the event log is reached through its port')
  }

  private async dispatch(batch: HandedBatch): Promise<BatchOutcome> {
    const handler = this.messageHandlers.get(batch.topic)
    if (handler === undefined) throw new Error(`nothing handles ${batch.topic}`)
    const result: unknown = await handler(batch, new BaseRpcContext([]))
    const outcome: unknown = await lastValueFrom(this.transformToObservable(result))
    return outcome as BatchOutcome
  }
}

/** Passes errors on as they are: Nest's own filter would replace them by "Internal server error". */
@Catch()
export class PassErrorsOn implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error)
  }
}
