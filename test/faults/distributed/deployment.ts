import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { freePort, freePorts } from '#infra/servers/ports.js'
import type { Target } from '#test/harness/client.js'
import { startProcess, type Ending, type MayflyProcess } from '#test/harness/mayfly-process.js'
import { distributedEnvironment } from '#test/harness/mayfly.js'
import { untilReady } from '../api-snapshot.js'

/** Whether faults last as long as in production, with `npm run test:faults`, or as short as possible. */
export const IS_LONG = Number(process.env.MAYFLY_FAULT_ROUNDS ?? 0) >= 20

export const ROLES = ['projector', 'lifecycle', 'api', 'smtp'] as const
export type Role = (typeof ROLES)[number] | 'webhooks' | 'analytics'

export interface DeploymentOptions {
  /** Number of processes of each role. */
  instances?: number
  /** Also runs one process of webhooks. Load tests then verify deliveries to an endpoint. */
  hasWebhooks?: boolean
  /** Also runs one process of analytics. */
  hasAnalytics?: boolean
  env?: Readonly<Record<string, string>>
}

interface Instance {
  role: Role
  env: Record<string, string>
  process: MayflyProcess
}

const API_KEY = 'a-key-for-the-fault-suites'

/** An attempt with an unknown outcome is repeated after this timeout and 15 s. */
const WEBHOOKS_ENV = { MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true', MAYFLY_WEBHOOK_TIMEOUT_MS: '5000' }

/** Processes of every role, each of which keeps its ports when it is restarted. */
export class Deployment {
  /** Stopped before the deployment. */
  readonly users: { stop: () => Promise<unknown> }[] = []

  private constructor(
    private readonly folder: string,
    private readonly instances: Instance[],
    /** One for each instance of api and smtp. */
    readonly targets: readonly Target[],
    readonly topicPrefix: string,
  ) {}

  static async start({
    instances = 1,
    hasWebhooks = false,
    hasAnalytics = false,
    env = {},
  }: DeploymentOptions = {}): Promise<Deployment> {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
    const name = basename(folder)
    const common = {
      ...distributedEnvironment(name),
      MAYFLY_BOOTSTRAP_API_KEY: API_KEY,
      MAYFLY_PARSE_THREADS: '1',
      ...env,
    }
    const ports = await freePorts(instances * 2)
    const metricsPorts = await freePorts(instances * ROLES.length + 2)
    const targets: Target[] = []
    const running: Instance[] = []
    const start = async (role: Role, index: number, own: Record<string, string>) => {
      const [metricsPort = 0] = metricsPorts.splice(0, 1)
      const MAYFLY_DATA_DIR = join(folder, `${role}-${index}`)
      const all = { ...common, ...own, MAYFLY_DATA_DIR, MAYFLY_METRICS_PORT: String(metricsPort) }
      running.push({ role, env: all, process: await startProcess({ app: role, env: all }) })
    }
    const deployment = new Deployment(folder, running, targets, `${name}.`)
    try {
      await start('projector', 0, {})
      const starts: Promise<void>[] = []
      if (hasWebhooks) starts.push(start('webhooks', 0, WEBHOOKS_ENV))
      if (hasAnalytics) starts.push(start('analytics', 0, {}))
      for (let index = 0; index < instances; index += 1) {
        const [httpPort = 0, smtpPort = 0] = ports.slice(index * 2)
        if (index > 0) starts.push(start('projector', index, {}))
        starts.push(
          start('lifecycle', index, {}),
          start('api', index, { MAYFLY_HTTP_PORT: String(httpPort) }),
          start('smtp', index, { MAYFLY_SMTP_PORT: String(smtpPort) }),
        )
        targets.push({ url: `http://127.0.0.1:${httpPort}`, smtpPort, apiKey: API_KEY })
      }
      await Promise.all(starts)
      await Promise.all(targets.map((target) => untilReady(target)))
      return deployment
    } catch (error) {
      await deployment.dispose()
      throw error
    }
  }

  /** The first api and the first smtp. */
  get target(): Target {
    const [target] = this.targets
    if (target === undefined) throw new Error('nothing listens')
    return target
  }

  process(role: Role): MayflyProcess {
    return this.instanceOf(role).process
  }

  /** The metrics endpoints of a role. */
  metricsOf(role: Role): Target[] {
    return this.instances
      .filter((each) => each.role === role)
      .map(({ env }) => ({
        url: `http://127.0.0.1:${env.MAYFLY_METRICS_PORT}`,
        smtpPort: 0,
        apiKey: API_KEY,
      }))
  }

  /** Ends the first instance of a role and starts it again. */
  async restart(role: Role, signal: NodeJS.Signals): Promise<Ending> {
    const instance = this.instanceOf(role)
    const code = await instance.process.end(signal)
    instance.process = await startProcess({ app: role, env: instance.env })
    return code
  }

  /** Starts one more instance of a role that serves no clients. */
  async add(role: 'projector' | 'lifecycle' | 'analytics'): Promise<MayflyProcess> {
    const metricsPort = await freePort()
    const env = { ...this.instanceOf(role).env, MAYFLY_METRICS_PORT: String(metricsPort) }
    const process = await startProcess({ app: role, env })
    this.instances.push({ role, env, process })
    return process
  }

  output(): string {
    return this.instances.map(({ process }) => process.output().stderr).join('')
  }

  async dispose(): Promise<void> {
    await Promise.all(this.users.map((user) => user.stop()))
    await Promise.all(this.instances.map(({ process }) => process.end('SIGKILL')))
    await rm(this.folder, { recursive: true, force: true })
  }

  private instanceOf(role: Role): Instance {
    const instance = this.instances.find((each) => each.role === role)
    if (instance === undefined) throw new Error(`the deployment has no ${role}`)
    return instance
  }
}
