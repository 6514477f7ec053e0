import type { FastifyRequest } from 'fastify'
import type { Registry } from 'prom-client'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { Release } from '#libs/runtime/fairness/budget.js'
import { SharedSlots } from '#libs/runtime/fairness/shared-slots.js'
import type { Turns } from '#libs/runtime/fairness/turns.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import type { AccessChecks, Authenticator } from '../access/authenticator.js'
import { callerOf } from '../access/principal.js'
import { endTurn } from './request-turns.js'
import { shuttingDown, unavailable, type Problem, type UnavailableCode } from './problems.js'

export interface LongRequestsOptions {
  /** The maximum number of open requests. */
  max: number
  gauge: { name: string; help: string }
  /** The problem of a request that gets no slot, or loses it. */
  full: { code: UnavailableCode; detail: string }
  /** The detail of the 503 that ends a request with the process. */
  closed?: string
}

/** What all kinds of long requests share. */
export interface LongRequestServices {
  signals: Signals
  turns: Turns
  authenticator: Pick<Authenticator, 'hasLostAccess' | 'changes'>
  registry: Registry
}

/** A request that waits for something to happen. It has no timer of its own, since there may be thousands. */
export interface LongRequest {
  readonly request: FastifyRequest
  /** When it is rung if nothing happens, to a tenth of a second, on the clock of `performance.now()`. */
  dueAtMs: number
  /** Called in its account's turn when something may have happened, or its time has come, or its caller lost access. */
  ring: () => void
  /** Called when it must end early, with a 503. */
  end: (reason: Problem) => void
}

interface Entered {
  release: Release
  channel: string | null
  isWoken: boolean
}

interface Channel {
  members: Set<LongRequest>
  /** Resolves with the function that unsubscribes. */
  subscribed: Promise<() => void>
}

const TICK_MS = 100
/** How often the access of callers is checked. With the age of a cached lookup, its end is noticed within a second. */
const ACCESS_CHECK_TICKS = 4

/**
 * The open requests of one kind, such as waits or streams. Their number is limited, and shared among accounts and keys.
 * They are woken in turn, a few at a time. They end with the process.
 */
export class LongRequests {
  private readonly open = new Map<LongRequest, Entered>()
  private readonly channels = new Map<string, Channel>()
  private readonly slots: SharedSlots
  private readonly ticking = setInterval(() => this.tick(), TICK_MS).unref()
  private ticks = 0
  /** Of keys, accounts and members, when access was last checked. */
  private checkedChanges = 0
  private isClosed = false

  constructor(
    private readonly options: LongRequestsOptions,
    private readonly services: LongRequestServices,
  ) {
    const { max, gauge } = options
    this.slots = new SharedSlots(max)
    new Metrics(services.registry).gauge(gauge.name, gauge.help, () => this.slots.taken)
  }

  /** Takes a slot until `leave`. Throws the 503 if there is none. */
  enter(long: LongRequest): void {
    if (this.isClosed) throw this.closed()
    const { accountId, countedBy } = callerOf(long.request)
    const release = this.slots.take([accountId, countedBy], () => {
      long.end(this.full())
      return true
    })
    if (release === null) throw this.full()
    endTurn(long.request)
    this.open.set(long, { release, channel: null, isWoken: false })
  }

  /** Resolves once the request is rung at every signal of the channel. All requests of a channel share a subscription. */
  async listen(long: LongRequest, name: string): Promise<void> {
    const entered = this.open.get(long)
    if (entered === undefined) return
    const channel = this.channels.get(name) ?? this.subscribe(name)
    channel.members.add(long)
    entered.channel = name
    await channel.subscribed
  }

  leave(long: LongRequest): void {
    const entered = this.open.get(long)
    if (entered === undefined) return
    this.open.delete(long)
    entered.release()
    const { channel: name } = entered
    const channel = name === null ? undefined : this.channels.get(name)
    if (name === null || channel?.members.delete(long) !== true || channel.members.size > 0) return
    this.channels.delete(name)
    channel.subscribed.then(
      (unsubscribe) => unsubscribe(),
      () => undefined,
    )
  }

  /** Ends every request, and accepts no more. */
  close(): void {
    this.isClosed = true
    clearInterval(this.ticking)
    for (const long of this.open.keys()) long.end(this.closed())
  }

  private subscribe(name: string): Channel {
    const members = new Set<LongRequest>()
    const subscribed = this.services.signals.subscribe(name, () => {
      for (const long of members) this.wake(long)
    })
    const channel = { members, subscribed }
    this.channels.set(name, channel)
    subscribed.catch(() => {
      // The next request tries again.
      if (this.channels.get(name) === channel) this.channels.delete(name)
    })
    return channel
  }

  private wake(long: LongRequest): void {
    const entered = this.open.get(long)
    if (entered === undefined || entered.isWoken) return
    entered.isWoken = true
    long.dueAtMs = Infinity
    this.services.turns.run(callerOf(long.request).accountId, () => {
      entered.isWoken = false
      if (this.open.has(long)) long.ring()
    })
  }

  private tick(): void {
    this.ticks += 1
    const nowMs = performance.now()
    const checks = this.ticks % ACCESS_CHECK_TICKS === 0 ? this.nextChecks() : 'none'
    for (const long of this.open.keys()) {
      const access = this.services.authenticator.hasLostAccess(long.request, checks)
      if (access === true || nowMs >= long.dueAtMs) this.wake(long)
      else if (access !== false) void access.then((isLost) => isLost && this.wake(long))
    }
  }

  /** Keys only end with a change that this instance hears of, so they are not looked up without one. */
  private nextChecks(): AccessChecks {
    const { changes } = this.services.authenticator
    const hasChanged = changes !== this.checkedChanges
    this.checkedChanges = changes
    return hasChanged ? 'all' : 'people'
  }

  private full(): Problem {
    const { code, detail } = this.options.full
    return unavailable(code, detail)
  }

  private closed(): Problem {
    return shuttingDown(this.options.closed)
  }
}
