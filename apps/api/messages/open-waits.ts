import { Gauge, type Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fair-share.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import type { Principal } from '../access/authenticator.js'
import { unavailable, type Problem } from '../http/problems.js'

/** Why a wait ended early. */
type WaitEnd = 'client-gone' | 'crowded-out' | 'shutting-down'

/** One request that waits. */
export class OpenWait {
  /** Rung when there may be something new to look at, and at the wait's end. */
  readonly bell = new Doorbell()
  /** Null while it may go on. */
  end: WaitEnd | null = null
  private readonly ending = new AbortController()

  /** Aborts at the wait's end. */
  get signal(): AbortSignal {
    return this.ending.signal
  }

  endWith(end: WaitEnd): void {
    this.end ??= end
    this.ending.abort()
    this.bell.ring()
  }
}

/** The requests of this process that wait: at most so many, shared by account and key, and ended with the process. */
export class OpenWaits {
  private readonly waits = new Set<OpenWait>()
  private readonly slots: SharedSlots
  private isClosed = false

  constructor(most: number, registry: Registry) {
    this.slots = new SharedSlots(most)
    const waits = this.waits
    new Gauge({
      name: 'mayfly_open_waits',
      help: 'Requests that wait for a message.',
      registers: [registry],
      collect() {
        this.set(waits.size)
      },
    })
  }

  /**
   * Runs a wait, which ends early if `clientGone` aborts, the process ends, or a key with fewer waits needs the slot.
   * Throws too-many-waits, and shutting-down.
   */
  async run<Result>(
    { accountId, keyId }: Principal,
    clientGone: AbortSignal,
    work: (wait: OpenWait) => Promise<Result>,
  ): Promise<Result> {
    if (this.isClosed) throw shuttingDown()
    const wait = new OpenWait()
    const leaveSlot = this.slots.take([accountId, keyId], () => {
      wait.endWith('crowded-out')
      return true
    })
    if (leaveSlot === null) throw tooManyWaits()
    const onGone = () => wait.endWith('client-gone')
    this.waits.add(wait)
    clientGone.addEventListener('abort', onGone)
    if (clientGone.aborted) onGone()
    try {
      return await work(wait)
    } finally {
      clientGone.removeEventListener('abort', onGone)
      this.waits.delete(wait)
      leaveSlot()
    }
  }

  /** Ends every wait, and accepts no more. */
  close(): void {
    this.isClosed = true
    for (const wait of this.waits) wait.endWith('shutting-down')
  }
}

export function tooManyWaits(): Problem {
  return unavailable(
    'too-many-waits',
    'There are as many waits as there may be, and the key has its share of them.',
  )
}

export function shuttingDown(): Problem {
  return unavailable(
    'shutting-down',
    'This instance is shutting down: send the wait again, to reach another one.',
  )
}
