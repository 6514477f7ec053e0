import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expectationOf, type Expectation } from './smtp-oracle.js'
import type { FuzzSession } from './smtp-session.js'

const WITHIN_MS = 30_000
const REPLY = /^(?:\d{3}-[\x20-\x7e]*\r\n)*\d{3} [\x20-\x7e]*\r\n/

export interface PlayedSession {
  mails: Expectation['mails']
  /** Whether the client waited for every reply. If so, no other mail was accepted. */
  isComplete: boolean
}

/** Plays a session. Rejects if a reply is missing, unexpected, or can't belong to its command. */
export async function play(
  port: number,
  session: FuzzSession,
  maxMessageBytes: number,
): Promise<PlayedSession> {
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  const clear = new Leg(socket, maxMessageBytes)
  try {
    await clear.greeting()
    if (session.leaves !== 'after-replies') {
      // The client disconnects somewhere in the bytes.
      const wire = Buffer.from(session.clear, 'latin1')
      const upTo = Math.floor((wire.length * (session.cuts[0] ?? 1_000)) / 1_000)
      await clear.send(wire.subarray(0, upTo), session)
      if (session.leaves === 'resets') socket.resetAndDestroy()
      else socket.end()
      const { mails } = clear.expectation()
      return { mails, isComplete: false }
    }
    await clear.send(Buffer.from(session.clear, 'latin1'), session)
    const { isEnd, isInMail, mails } = await clear.settled()
    const canSayMore = !isEnd && !isInMail && !clear.isInAuth() && !clear.hasBegunLine()
    if (session.tls === null || !canSayMore) return { mails, isComplete: true }
    if (!(await clear.startTls(session.tls.injected))) return { mails, isComplete: true }
    socket.removeAllListeners('data')
    const tls = connectTls({ socket, rejectUnauthorized: false })
    await once(tls, 'secureConnect')
    const secure = new Leg(tls, maxMessageBytes)
    await secure.send(Buffer.from(session.tls.secure, 'latin1'), session)
    return { mails: [...mails, ...(await secure.settled()).mails], isComplete: true }
  } finally {
    socket.destroy()
  }
}

/** A part of a session, in the clear or over TLS: the bytes sent, and the replies. */
class Leg {
  private wire = Buffer.alloc(0)
  private text = ''
  private readonly replies: string[] = []
  private isEnded = false
  private notify: () => void = () => undefined

  constructor(
    private readonly socket: Socket,
    private readonly maxMessageBytes: number,
  ) {
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1')
      this.read()
      this.notify()
    })
    const ended = () => {
      this.isEnded = true
      this.notify()
    }
    socket.on('end', ended).on('close', ended).on('error', ended)
  }

  async greeting(): Promise<void> {
    await this.until(() => this.replies.length > 0 || this.isEnded)
    const greeting = this.replies.shift()
    if (greeting?.startsWith('220 ') !== true) throw new Error(`greeted with ${greeting}`)
  }

  async send(bytes: Buffer, { cuts, isSlow }: Pick<FuzzSession, 'cuts' | 'isSlow'>): Promise<void> {
    this.wire = Buffer.concat([this.wire, bytes])
    const places = cuts.map((cut) => Math.floor((bytes.length * cut) / 1_000)).sort((a, b) => a - b)
    let from = 0
    for (const to of [...places, bytes.length]) {
      if (to > from) this.socket.write(bytes.subarray(from, to))
      from = Math.max(from, to)
      // Sockets are read between two turns of the event loop.
      for (let turn = 0; isSlow && turn < 2; turn += 1) await new Promise(setImmediate)
    }
  }

  /** Whether the bytes end inside a line. */
  hasBegunLine(): boolean {
    return this.wire.length > 0 && this.wire.at(-1) !== 0x0a
  }

  /** Whether the next line would be a response to AUTH (RFC 4954, section 4). */
  isInAuth(): boolean {
    return this.replies.at(-1)?.startsWith('334 ') === true
  }

  expectation(): Expectation {
    return expectationOf(this.wire, this.replies, this.maxMessageBytes)
  }

  /** Waits for every reply. Throws if there is one too many. */
  async settled(): Promise<Expectation> {
    await this.until(() => {
      const { replies, isEnd } = this.expectation()
      return this.replies.length >= replies && (!isEnd || this.isEnded)
    })
    const expected = this.expectation()
    if (this.replies.length > expected.replies)
      throw new Error(`unexpected reply: ${this.replies.join(' | ')}`)
    if (this.isEnded && !expected.isEnd) throw new Error(`ended after ${this.replies.at(-1)}`)
    return expected
  }

  /** Whether the handshake may begin. Bytes injected after STARTTLS in the clear must get no reply. */
  async startTls(injected: string): Promise<boolean> {
    const before = this.replies.length
    this.socket.write(Buffer.from(`STARTTLS\r\n${injected}`, 'latin1'))
    await this.until(() => this.replies.length > before || this.isEnded)
    const reply = this.replies[before] ?? ''
    if (!/^(220|421) /.test(reply)) throw new Error(`STARTTLS: ${reply}`)
    return reply.startsWith('220 ') && injected.length < 16_000
  }

  private read(): void {
    for (let match = REPLY.exec(this.text); match !== null; match = REPLY.exec(this.text)) {
      this.replies.push(match[0].slice(match[0].lastIndexOf('\r\n', match[0].length - 3) + 1).trim())
      this.text = this.text.slice(match[0].length)
    }
  }

  private async until(isDone: () => boolean): Promise<void> {
    const deadlineMs = performance.now() + WITHIN_MS
    while (!isDone()) {
      const leftMs = deadlineMs - performance.now()
      if (this.isEnded || leftMs <= 0) {
        throw new Error(`missing replies: ${this.replies.join(' | ')} ${JSON.stringify(this.text)}`)
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.notify = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}
