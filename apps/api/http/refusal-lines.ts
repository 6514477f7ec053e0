import type { Logger } from 'pino'

/** Whose requests are refused: a key's, or without one a remote address's. */
export interface Refused {
  accountId?: string
  keyId?: string
  remoteAddress?: string
  status: number
}

const SECOND_MS = 1_000
/** Keys and addresses told apart within a second. */
const MAX_OWNERS = 1_000

/**
 * Bounds the log lines of refused requests, so that a flood does not fill the disk: the first one in a second of each
 * key or address and status has a line of its own, and one line at the second's end says how many more there were.
 */
export class RefusalLines {
  private readonly owners = new Map<string, { refused: Refused; more: number }>()
  /** Of keys and addresses beyond those told apart. */
  private others = 0

  constructor(private readonly logger: Pick<Logger, 'info'>) {}

  /** Counts a refusal. Returns whether it has a line of its own. */
  count(refused: Refused): boolean {
    const id = `${refused.keyId ?? refused.remoteAddress} ${refused.status}`
    const owner = this.owners.get(id)
    if (owner !== undefined) owner.more += 1
    else if (this.owners.size >= MAX_OWNERS) this.others += 1
    else {
      if (this.owners.size === 0) setTimeout(() => this.endSecond(), SECOND_MS).unref()
      this.owners.set(id, { refused, more: 0 })
      return true
    }
    return false
  }

  private endSecond(): void {
    for (const { refused, more } of this.owners.values()) {
      if (more > 0) this.logger.info({ ...refused, refused: more }, 'requests refused')
    }
    if (this.others > 0) this.logger.info({ refused: this.others }, 'requests refused')
    this.owners.clear()
    this.others = 0
  }
}
