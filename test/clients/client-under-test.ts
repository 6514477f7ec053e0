import type { Document } from '#apps/api/openapi/openapi-json.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { RecordingProxy } from './recording-proxy.js'

/** Operations for programs that run Mayfly, for exports of audit logs, and pages for people. Clients leave them out. */
export const LEFT_OUT = [
  ...[
    'listAuditRecords',
    'getHealth',
    'getReadiness',
    'getMetrics',
    'getProblemPage',
    'getOpenApi',
    'getDocs',
  ],
]

/** A server for one client, behind a proxy that records which operations the client calls. */
export class ClientUnderTest implements AsyncDisposable {
  private constructor(
    private readonly mayfly: Mayfly,
    private readonly proxy: RecordingProxy,
  ) {}

  static async start(): Promise<ClientUnderTest> {
    const env = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', ...NO_DNS }
    const mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env })
    return new ClientUnderTest(mayfly, await RecordingProxy.start(mayfly.url))
  }

  get server(): { url: string; apiKey: string; smtp: string } {
    const { apiKey, smtpPort } = this.mayfly
    return { url: this.proxy.url, apiKey, smtp: `127.0.0.1:${smtpPort}` }
  }

  /** The ids of operations that the client has not called, without aliases. */
  async uncalledOperations(): Promise<string[]> {
    const document = (await (await fetch(`${this.mayfly.url}/openapi.json`)).json()) as Document
    return Object.entries(document.paths).flatMap(([path, operations]) => {
      const pattern = path.replaceAll(/\{\w+\}/g, '[^/]+')
      return Object.entries(operations)
        .filter(([, operation]) => operation['x-alias-of'] === undefined)
        .filter(([method]) => {
          const expression = new RegExp(`^${method.toUpperCase()} ${pattern}$`)
          return ![...this.proxy.requests].some((each) => expression.test(each))
        })
        .map(([, { operationId }]) => operationId)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]()
    await this.mayfly.dispose()
  }
}
