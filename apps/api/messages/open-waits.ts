import { Gauge, type Registry } from 'prom-client'
import { Doorbell } from '#libs/signals/doorbell.js'
import { unavailable, type Problem } from '../http/problems.js'

/** One request that waits. */
export interface OpenWait {
  /** Rung when there may be something new to look at, and at the wait's end. */
  readonly bell: Doorbell
  /** Why it must end now; null while it may go on. */
  readonly end: 'client-gone' | 'shutting-down' | null
}

/** The requests of this process that wait: so many at most, and all of them ended where the process ends. */
export class OpenWaits {
  private readonly waits = new Set<Wait>()
  private isClosed = false

  constructor(
    private readonly most: number,
    registry: Registry,
  ) {
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
   * Runs a wait, which ends early where `clientGone` aborts or this process ends. Throws too-many-waits where there is no
   * room for it.
   */
  async run<Result>(clientGone: AbortSignal, work: (wait: OpenWait) => Promise<Result>): Promise<Result> {
    if (this.isClosed) throw shuttingDown()
    if (this.waits.size >= this.most) {
      throw unavailable('too-many-waits', `This instance holds ${this.most} waits already.`)
    }
    const wait = new Wait()
    const leave = () => wait.endWith('client-gone')
    this.waits.add(wait)
    clientGone.addEventListener('abort', leave)
    if (clientGone.aborted) leave()
    try {
      return await work(wait)
    } finally {
      clientGone.removeEventListener('abort', leave)
      this.waits.delete(wait)
    }
  }

  /** Ends every wait, and takes no more. */
  close(): void {
    this.isClosed = true
    for (const wait of this.waits) wait.endWith('shutting-down')
  }
}

export function shuttingDown(): Problem {
  return unavailable('shutting-down', 'This instance shuts down: the wait goes on at another one.')
}

class Wait implements OpenWait {
  readonly bell = new Doorbell()
  end: OpenWait['end'] = null

  endWith(end: NonNullable<OpenWait['end']>): void {
    this.end ??= end
    this.bell.ring()
  }
}
