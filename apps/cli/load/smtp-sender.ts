import type { SmtpTarget } from './smtp-connection.js'
import { SmtpSession, type Outbox } from './smtp-session.js'

/** RFC 5321, section 4.5.3.2, allows servers more. */
const REPLY_TIMEOUT_MS = 60_000
const FIRST_RECONNECT_MS = 100
const MAX_RECONNECT_MS = 5_000
const QUIT_WITHIN_MS = 1_000

/** Sends mail over a fixed number of connections, which are opened again after they fail. */
export class SmtpSender<Mail> {
  private readonly sessions = new Set<SmtpSession<Mail>>()
  private readonly idleSessions: SmtpSession<Mail>[] = []
  private readonly reconnects = new Set<NodeJS.Timeout>()
  private readyCount = 0
  private isClosing = false
  /** When the last ready connection failed, by `performance.now()`; null while one is ready. */
  private failedMs: number | null = performance.now()
  private settleFirst: (() => void) | null = null
  private readonly allClosed = Promise.withResolvers<undefined>()

  constructor(
    private readonly target: SmtpTarget,
    private readonly connections: number,
    private readonly outbox: Outbox<Mail>,
  ) {}

  /** Opens the connections. Resolves with how many are ready, once each is ready or has failed. */
  open(): Promise<number> {
    return new Promise((resolve) => {
      let pending = this.connections
      this.settleFirst = () => {
        pending -= 1
        if (pending > 0) return
        this.settleFirst = null
        resolve(this.readyCount)
      }
      for (let index = 0; index < this.connections; index += 1) this.connect(0)
    })
  }

  /** Begins mails that are due on idle connections. */
  wake(): void {
    for (let session = this.idleSessions[0]; session !== undefined; session = this.idleSessions[0]) {
      const mail = this.outbox.take()
      if (mail === null) return
      this.idleSessions.shift()
      session.begin(mail)
    }
  }

  get hasIdle(): boolean {
    return this.idleSessions.length > 0
  }

  /** Milliseconds since a connection was ready. */
  unreachableMs(nowMs: number): number {
    return this.failedMs === null ? 0 : nowMs - this.failedMs
  }

  /** Ends connections without a reply for too long. To be called about once a second. */
  endStalled(nowMs: number): void {
    for (const session of this.sessions) {
      if (!session.isIdle && nowMs - session.activeMs > REPLY_TIMEOUT_MS) session.fail('no reply')
    }
  }

  /** Ends all connections. Mails that have no reply yet are lost. Resolves once each has its outcome. */
  async close(): Promise<void> {
    this.isClosing = true
    for (const timer of this.reconnects) clearTimeout(timer)
    for (const session of this.sessions) session.quit()
    const timer = setTimeout(() => {
      for (const session of this.sessions) session.fail('closed')
    }, QUIT_WITHIN_MS)
    if (this.sessions.size > 0) await this.allClosed.promise
    clearTimeout(timer)
  }

  private connect(failures: number): void {
    let isReady = false
    const session = new SmtpSession<Mail>(this.target, this.outbox, {
      ready: () => {
        isReady = true
        this.readyCount += 1
        this.failedMs = null
        // The run does not start before each connection was tried once.
        if (this.settleFirst === null) this.resume(session)
        else this.idleSessions.push(session)
        if (failures === 0) this.settleFirst?.()
      },
      free: () => this.resume(session),
      closed: (reason) => {
        this.sessions.delete(session)
        const index = this.idleSessions.indexOf(session)
        if (index >= 0) this.idleSessions.splice(index, 1)
        if (isReady) {
          this.readyCount -= 1
          if (this.readyCount === 0) this.failedMs = performance.now()
        } else if (failures === 0) this.settleFirst?.()
        if (this.isClosing) {
          if (this.sessions.size === 0) this.allClosed.resolve(undefined)
          return
        }
        // A server may end a session that is idle.
        if (reason !== null) this.outbox.connectionFailed(reason)
        this.connectLater(session.hasDelivered ? 0 : failures)
      },
    })
    this.sessions.add(session)
  }

  private connectLater(failures: number): void {
    const delayMs = Math.min(FIRST_RECONNECT_MS * 2 ** failures, MAX_RECONNECT_MS)
    const timer = setTimeout(
      () => {
        this.reconnects.delete(timer)
        this.connect(failures + 1)
      },
      delayMs * (0.5 + Math.random() / 2),
    )
    this.reconnects.add(timer)
  }

  private resume(session: SmtpSession<Mail>): void {
    const mail = this.outbox.take()
    if (mail !== null) {
      session.begin(mail)
      return
    }
    this.idleSessions.push(session)
    this.outbox.idle()
  }
}
