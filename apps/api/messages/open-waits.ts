import { Gauge, type Registry } from 'prom-client'
import { SharedSlots } from '#libs/runtime/fair-share/shared-slots.js'
import { Doorbell } from '#libs/ports/signals/signals.js'
import type { Principal } from '../access/authenticator.js'
import { unavailable, type Problem } from '../http/problems.js'

/** One request that waits. */
export interface OpenWait {
  /** Rung when there may be something new to look at, and at the wait's end. */
  readonly bell: Doorbell
  /** Aborts at the wait's end. */
  readonly signal: AbortSignal
  /** Why it must end now; null while it may go on. */
  readonly end: 'client-gone' | 'crowded-out' | 'shutting-down' | null
}

/**
 * The requests of this process that wait: so many at most, shared by account and key, and all of them ended where the
 * process ends.
 */
export class OpenWaits {
  private readonly waits = new Set<Wait>()
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
   * Runs a wait, which ends early where `clientGone` aborts, this process ends, or a key with fewer waits needs the slot.
   * Throws too-many-waits if there is no room for it.
   */
  async run<Result>(
    { accountId, keyId }: Principal,
    clientGone: AbortSignal,
    work: (wait: OpenWait) => Promise<Result>,
  ): Promise<Result> {
    if (this.isClosed) throw shuttingDown()
    const wait = new Wait()
    const leavePlace = this.slots.take([accountId, keyId], () => wait.endWith('crowded-out'))
    if (leavePlace === null) throw tooManyWaits()
    const leave = () => void wait.endWith('client-gone')
    this.waits.add(wait)
    clientGone.addEventListener('abort', leave)
    if (clientGone.aborted) leave()
    try {
      return await work(wait)
    } finally {
      clientGone.removeEventListener('abort', leave)
      this.waits.delete(wait)
      leavePlace()
    }
  }

  /** Ends every wait, and takes no more. */
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

class Wait implements OpenWait {
  readonly bell = new Doorbell()
  end: OpenWait['end'] = null
  private readonly ending = new AbortController()

  get signal(): AbortSignal {
    return this.ending.signal
  }

  endWith(end: NonNullable<OpenWait['end']>): true {
    this.end ??= end
    this.ending.abort()
    this.bell.ring()
    return true
  }
}
