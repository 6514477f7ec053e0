import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

/** One SMTP session that stays open and uses PIPELINING (RFC 2920), so that the client costs as little as possible. */
export class SmtpClient {
  private received = ''
  private readonly waiting: { resolve: (reply: string) => void; reject: (error: Error) => void }[] = []

  private constructor(private readonly socket: Socket) {
    socket.setEncoding('latin1').on('data', (text: string) => this.take(text))
    socket.on('close', () => {
      for (const { reject } of this.waiting.splice(0)) reject(new Error('the SMTP session was closed'))
    })
  }

  /** Resolves once the server has greeted. */
  static async open(port: number): Promise<SmtpClient> {
    const socket = createConnection({ host: '127.0.0.1', port, noDelay: true })
    const client = new SmtpClient(socket)
    await once(socket, 'connect')
    await client.expect(220)
    socket.write('EHLO bench.example\r\n')
    await client.expect(250)
    return client
  }

  /** Resolves with the last reply once the server has accepted the mail. No line of the mail may begin with a dot. */
  async send(to: string, source: string | Buffer): Promise<string> {
    this.socket.write(`MAIL FROM:<sender@app.example>\r\nRCPT TO:<${to}>\r\nDATA\r\n`)
    await Promise.all([this.expect(250), this.expect(250), this.expect(354)])
    if (typeof source === 'string') this.socket.write(`${source}\r\n.\r\n`)
    else {
      this.socket.write(source)
      this.socket.write('\r\n.\r\n')
    }
    return this.expect(250)
  }

  /** Resolves once all recipients of a mail are accepted, which is then not sent. */
  async offer(recipients: readonly string[]): Promise<void> {
    const lines = recipients.map((to) => `RCPT TO:<${to}>\r\n`)
    this.socket.write(`MAIL FROM:<sender@app.example>\r\n${lines.join('')}RSET\r\n`)
    await Promise.all(Array.from({ length: lines.length + 2 }, () => this.expect(250)))
  }

  close(): void {
    this.socket.end('QUIT\r\n')
  }

  private async expect(code: number): Promise<string> {
    const reply = await new Promise<string>((resolve, reject) => this.waiting.push({ resolve, reject }))
    if (!reply.startsWith(String(code))) throw new Error(`the server replied: ${reply}`)
    return reply
  }

  private take(text: string): void {
    this.received += text
    for (let end = this.received.indexOf('\r\n'); end >= 0; end = this.received.indexOf('\r\n')) {
      const line = this.received.slice(0, end)
      this.received = this.received.slice(end + 2)
      // A hyphen after the code means that the reply continues (RFC 5321, section 4.2.1).
      if (line[3] !== '-') this.waiting.shift()?.resolve(line)
    }
  }
}

export interface Load {
  port: number
  connections: number
  mails: number
  addressOf: (number: number) => string
  sourceOf: (number: number, to: string) => string
}

/** Sends as fast as the server accepts; resolves once the last mail was accepted. */
export async function sendAll({ port, connections, mails, addressOf, sourceOf }: Load): Promise<void> {
  const clients = await Promise.all(Array.from({ length: connections }, () => SmtpClient.open(port)))
  let next = 0
  const work = async (client: SmtpClient) => {
    for (let number = next++; number < mails; number = next++) {
      const to = addressOf(number)
      await client.send(to, sourceOf(number, to))
    }
    client.close()
  }
  await Promise.all(clients.map(work))
}
