import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { mail, send, type Target } from '#test/harness/client.js'

/** An application for load tests. `/sign-up` sends a code by SMTP, and `/verify` accepts it once. */
export class SignUpApplication implements AsyncDisposable {
  verified = 0
  private readonly codes = new Map<string, string>()

  private constructor(
    private readonly mayfly: Target,
    private readonly server: Server,
  ) {
    server.on('request', (incoming, outgoing) => {
      this.answer(incoming).then(
        (status) => outgoing.writeHead(status).end(),
        () => outgoing.writeHead(500).end(),
      )
    })
  }

  static async start(mayfly: Target): Promise<SignUpApplication> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new SignUpApplication(mayfly, server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }

  /** The status for a form with an `email` and, to verify it, a `code`. */
  private async answer(incoming: IncomingMessage): Promise<number> {
    const form = new URLSearchParams(await text(incoming))
    const email = form.get('email') ?? ''
    if (incoming.url === '/sign-up') {
      const code = String(randomInt(100_000, 1_000_000))
      this.codes.set(email, code)
      await send(this.mayfly, email, mail('Your code', `Your code is ${code}.`))
      return 202
    }
    if (incoming.url !== '/verify' || this.codes.get(email) !== form.get('code')) return 400
    this.codes.delete(email)
    this.verified += 1
    return 200
  }
}
