import type { FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import { Doorbell } from '#libs/ports/signals/signals.js'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { callerOf } from '../access/principal.js'
import { untilClientLeaves } from './budgets.js'
import { shuttingDown, unavailable, type Problem, type UnavailableCode } from './problems.js'

export interface LongRequestsOptions {
  /** The maximum number of open requests. */
  max: number
  gauge: { name: string; help: string }
  registry: Registry
  /** The problem of a request that gets no slot, or loses it. */
  full: { code: UnavailableCode; detail: string }
  /** The detail of the 503 that ends a request with the process. */
  closed?: string
}

/** A request that waits for something to happen. */
export interface OpenRequest {
  /** Rung when something may have happened, and when the signal aborts. */
  bell: Doorbell
  /** Aborts when the request must end, with a 503 as the reason; and when the client leaves. */
  signal: AbortSignal
}

/**
 * The open requests of one kind, such as waits or streams. Their number is limited, and shared among accounts and keys.
 * They end with the process.
 */
export class LongRequests {
  private readonly open = new Set<AbortController>()
  private readonly slots: SharedSlots
  private isClosed = false

  constructor(private readonly options: LongRequestsOptions) {
    const { max, gauge, registry } = options
    this.slots = new SharedSlots(max)
    new Metrics(registry).gauge(gauge.name, gauge.help, () => this.slots.taken)
  }

  /** Runs a request. It must end early if a key with fewer requests needs the slot. Throws the 503 if there is no slot. */
  async run<Result>(request: FastifyRequest, work: (open: OpenRequest) => Promise<Result>): Promise<Result> {
    if (this.isClosed) throw this.closed()
    const { accountId, countedBy } = callerOf(request)
    const ending = new AbortController()
    const release = this.slots.take([accountId, countedBy], () => {
      ending.abort(this.full())
      return true
    })
    if (release === null) throw this.full()
    this.open.add(ending)
    try {
      return await untilClientLeaves(request, (clientGone) => {
        const bell = new Doorbell()
        const signal = AbortSignal.any([ending.signal, clientGone])
        signal.addEventListener('abort', () => bell.ring())
        return work({ bell, signal })
      })
    } finally {
      this.open.delete(ending)
      release()
    }
  }

  /** Ends every request, and accepts no more. */
  close(): void {
    this.isClosed = true
    for (const ending of this.open) ending.abort(this.closed())
  }

  private full(): Problem {
    const { code, detail } = this.options.full
    return unavailable(code, detail)
  }

  private closed(): Problem {
    return shuttingDown(this.options.closed)
  }
}
