import { setTimeout as pause } from 'node:timers/promises'
import { packSource, sealMail } from '#libs/ports/key-vault/content.js'
import { makeSecretKey } from '#libs/ports/key-vault/seal.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { ParseThread, ThreadEndedError } from './parse-thread.js'
import type { ParseTask } from './parse-task.js'

export interface ParseThreadsOptions {
  /** How many there are beside the one for what presses. */
  count: number
  memoryMib: number
  /** Told of a thread that ended by itself. */
  onLost: (error: unknown) => void
  /** A thread has become free. */
  onReady: () => void
}

/** Between tries to start a thread that does not come up. */
const RETRY_MS = 500

/** Accepting mail goes before reading it: what was not accepted is lost to its sender, what was can wait, a little. */
const NICENESS = { usual: 5, pressing: 0 } as const

export type ThreadKind = keyof typeof NICENESS

/**
 * Threads, each warm before it is given away: so many usual ones, and one more for what presses, which yields to
 * nobody. One that is lost is replaced meanwhile.
 */
export class ParseThreads {
  private readonly idle: Record<ThreadKind, ParseThread[]> = { usual: [], pressing: [] }
  private readonly kinds = new Map<ParseThread, ThreadKind>()
  private readonly started: Promise<unknown>
  private isClosed = false

  constructor(private readonly options: ParseThreadsOptions) {
    const usual = Array.from({ length: options.count }, () => this.start('usual'))
    this.started = Promise.all([...usual, this.start('pressing')])
  }

  /** Resolves once all of the first ones are warm. */
  async ready(): Promise<void> {
    await this.started
  }

  get free(): number {
    return this.idle.usual.length + this.idle.pressing.length
  }

  hasFree(kind: ThreadKind): boolean {
    return this.idle[kind].length > 0
  }

  /** Null if none is free. */
  take(kind: ThreadKind): ParseThread | null {
    return this.idle[kind].pop() ?? null
  }

  giveBack(thread: ParseThread): void {
    const kind = this.kinds.get(thread)
    if (kind !== undefined) this.idle[kind].push(thread)
  }

  /** Of one that was lost, or is to be. */
  replace(thread: ParseThread): void {
    const kind = this.kinds.get(thread)
    this.kinds.delete(thread)
    void thread.end()
    if (kind !== undefined) void this.start(kind)
  }

  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.kinds.keys()].map((thread) => thread.end()))
  }

  private async start(kind: ThreadKind): Promise<void> {
    const { memoryMib, onLost, onReady } = this.options
    while (!this.isClosed) {
      const thread = new ParseThread({ memoryMib, niceness: NICENESS[kind] }, onLost)
      this.kinds.set(thread, kind)
      try {
        const orders = (await warmingTasks()).map((task) => ({ task, defeat: null }))
        await thread.run(orders, () => undefined)
        this.giveBack(thread)
        onReady()
        return
      } catch (error) {
        this.kinds.delete(thread)
        await thread.end()
        if (!(error instanceof ThreadEndedError)) await pause(RETRY_MS)
      }
    }
  }
}

const MAILS = 20

const SOURCE = [
  'From: App <app@example.com>',
  'To: someone@example.com',
  'Subject: =?utf-8?Q?Your_code_is_493201?=',
  'Date: Sat, 21 Nov 2026 02:14:41 +0000',
  'Content-Type: multipart/alternative; boundary=part',
  '',
  '--part',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Your code is 493201. https://example.com/verify?code=493201',
  '--part',
  'Content-Type: text/html; charset=utf-8',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  '<p>Your code is <b>493201</b>. <a href=3D"https://example.com/verify">Verify</a></p>',
  '--part--',
  '',
].join('\r\n')

/** Mails that nobody gets: a thread that has read them has compiled what reading mail takes. */
export async function warmingTasks(): Promise<ParseTask[]> {
  const [key, raw] = [makeSecretKey(), Buffer.from(SOURCE)]
  const [accountId, receivedAt] = [mintId('acc'), new Date(0)]
  const [envelope, source] = [
    { mailFrom: '', rcptTo: '', helo: '', remoteAddress: '', tls: null },
    await packSource(raw),
  ]
  return Array.from({ length: MAILS }, () => {
    const [inboxId, messageId] = [mintId('inb'), mintId('msg')]
    return {
      accountId,
      inboxId,
      messageId,
      receivedAt,
      key,
      size: raw.length,
      sealed: sealMail(key, inboxId, messageId, envelope, source),
    }
  })
}
