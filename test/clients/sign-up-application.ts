import { randomInt } from 'node:crypto'
import { mail, send, type Target } from '#test/harness/client.js'
import { startEndpoint, type Endpoint, type ReceivedRequest } from '#test/harness/endpoint.js'

/** An application for load tests. `/sign-up` sends a code by SMTP, and `/verify` accepts it once. */
export class SignUpApplication implements AsyncDisposable {
  verified = 0
  private readonly codes = new Map<string, string>()

  private constructor(
    private readonly mayfly: Target,
    private readonly endpoint: Endpoint,
  ) {}

  static async start(mayfly: Target): Promise<SignUpApplication> {
    const endpoint = await startEndpoint((response, request) => {
      application.answer(request).then(
        (status) => response.writeHead(status).end(),
        () => response.writeHead(500).end(),
      )
    })
    const application = new SignUpApplication(mayfly, endpoint)
    return application
  }

  get url(): string {
    return `http://127.0.0.1:${this.endpoint.port}`
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.endpoint.dispose()
  }

  /** The status for a form with an `email` and, to verify it, a `code`. */
  private async answer({ url, body }: ReceivedRequest): Promise<number> {
    const form = new URLSearchParams(body)
    const email = form.get('email') ?? ''
    if (url === '/sign-up') {
      const code = String(randomInt(100_000, 1_000_000))
      this.codes.set(email, code)
      await send(this.mayfly, email, mail('Your code', `Your code is ${code}.`))
      return 202
    }
    if (url !== '/verify' || this.codes.get(email) !== form.get('code')) return 400
    this.codes.delete(email)
    this.verified += 1
    return 200
  }
}
