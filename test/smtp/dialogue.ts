import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const WITHIN_MS = 18_000
const open = new Set<Dialogue>()

/** A raw SMTP client: sends bytes unchanged and waits for replies. */
export class Dialogue {
  private text = ''
  private isEnded = false
  private notify: () => void = () => undefined

  static async open(port: number, localAddress = '127.0.0.1'): Promise<Dialogue> {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
    const dialogue = new Dialogue(socket)
    await once(socket, 'connect')
    return dialogue
  }

  /** Opens a dialogue, past the greeting and EHLO. */
  static async greeted(port: number, localAddress?: string): Promise<Dialogue> {
    const dialogue = await Dialogue.open(port, localAddress)
    await dialogue.reply()
    await dialogue.ask('EHLO client.test')
    return dialogue
  }

  constructor(readonly socket: Socket) {
    open.add(this)
    socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1')
      this.notify()
    })
    for (const event of ['end', 'close', 'error']) {
      socket.on(event, () => {
        this.isEnded = true
        this.notify()
      })
    }
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Sends each piece in a separate packet, to a server in this process. */
  async sendInPieces(pieces: Iterable<string | Buffer>): Promise<void> {
    this.socket.setNoDelay(true)
    for (const piece of pieces) {
      this.send(piece)
      // Sockets are read between two turns of the event loop.
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
  }

  /** The next reply with all its lines; "" if the connection has ended. */
  reply(): Promise<string> {
    return this.until(() => {
      const match = /^(?:\d{3}-.*\r\n)*\d{3}(?: .*)?\r\n/.exec(this.text)
      if (match === null) return this.isEnded ? '' : null
      this.text = this.text.slice(match[0].length)
      return match[0].trimEnd()
    })
  }

  async ask(line: string): Promise<string> {
    this.send(`${line}\r\n`)
    return this.reply()
  }

  /** Everything received until the server ended the connection. */
  rest(): Promise<string> {
    return this.until(() => (this.isEnded ? this.text : null))
  }

  /** Completes the greeting, EHLO, MAIL and RCPT. Resolves with the last reply. */
  async address(...recipients: string[]): Promise<string> {
    await this.reply()
    await this.ask('EHLO client.test')
    let last = await this.ask('MAIL FROM:<a@x.test>')
    for (const recipient of recipients) last = await this.ask(`RCPT TO:<${recipient}>`)
    return last
  }

  /** Sends DATA and a mail, already dot-stuffed and terminated. */
  async data(wire: string | Buffer): Promise<string> {
    const begun = await this.ask('DATA')
    if (!begun.startsWith('354')) return begun
    this.send(wire)
    return this.reply()
  }

  close(): void {
    open.delete(this)
    this.socket.destroy()
  }

  /** Open connections would delay the drain of the server. */
  static closeAll(): void {
    for (const dialogue of open) dialogue.close()
  }

  private async until<Result>(look: () => Result | null): Promise<Result> {
    const deadline = Date.now() + WITHIN_MS
    for (;;) {
      const found = look()
      if (found !== null) return found
      const leftMs = deadline - Date.now()
      if (leftMs <= 0) throw new Error(`no answer; so far: ${JSON.stringify(this.text)}`)
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
