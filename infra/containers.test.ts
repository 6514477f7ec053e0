import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parse } from 'yaml'
import { readSettings, unknownVariables } from '#libs/runtime/config/settings.js'

/* Needs no container engine: compares infra/compose.yml and the Dockerfile with Mayfly, and with each other. */

interface Service {
  image: string
  command?: string[]
  environment?: Record<string, string>
  depends_on?: Record<string, { condition: string }>
  volumes?: string[]
  healthcheck?: unknown
  profiles?: string[]
}

interface Compose {
  services: Record<string, Service>
  volumes: Record<string, null>
}

const GIVEN = {
  MAYFLY_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  MAYFLY_BOOTSTRAP_API_KEY: 'a-key-for-the-compose-file',
}

describe('infra/compose.yml', () => {
  const { services, volumes } = parse(readFileSync('infra/compose.yml', 'utf8'), { merge: true }) as Compose
  const roles = Object.entries(services).filter(([, { image }]) => image === 'mayfly')

  it('has exactly the roles', () => {
    const mains = globSync('apps/*/main.ts')
    const alone = mains.filter((main) => readFileSync(main, 'utf8').includes('runRole('))
    expect(roles.map(([name]) => name).toSorted()).toEqual(
      alone.map((main) => basename(dirname(main))).toSorted(),
    )
    for (const [name, { command }] of roles) expect(command).toEqual([`dist/apps/${name}/main.js`])
  })

  it.each(roles)('gives %s settings that it starts with', (_name, { environment = {} }) => {
    const filled = Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [name, interpolate(value, GIVEN)]),
    )
    expect(unknownVariables(filled)).toEqual([])
    const settings = readSettings({ ...imageEnvironment(), ...filled })
    expect(settings).toMatchObject({
      kafkaBrokers: ['kafka:9092'],
      kafkaReplication: 1,
      httpHost: '0.0.0.0',
      clickhouseUrl: 'http://clickhouse:8123',
    })
  })

  it('has the same user, password and database for ClickHouse and every role', () => {
    const { environment: server = {}, image } = services.clickhouse ?? { image: '' }
    expect(image).toMatch(/^clickhouse\/clickhouse-server:\d+\.\d+$/)
    for (const [, { environment: role = {} }] of roles) {
      expect([role.CLICKHOUSE_DATABASE, role.CLICKHOUSE_USERNAME, role.CLICKHOUSE_PASSWORD]).toEqual([
        server.CLICKHOUSE_DB,
        server.CLICKHOUSE_USER,
        server.CLICKHOUSE_PASSWORD,
      ])
    }
    expect(server.CLICKHOUSE_USER).toBeDefined()
    expect(server.CLICKHOUSE_PASSWORD).toBeDefined()
  })

  it.each(roles)('checks the readiness of %s on its metrics port', (_name, { healthcheck }) => {
    const { metricsPort } = readSettings(imageEnvironment())
    expect(JSON.stringify(healthcheck)).toContain(`http://127.0.0.1:${metricsPort}/readyz`)
  })

  it.each(Object.keys(GIVEN))('refuses to start without %s', (missing) => {
    const given = Object.fromEntries(Object.entries(GIVEN).filter(([name]) => name !== missing))
    const fill = () =>
      Object.values(services.api?.environment ?? {}).map((value) => interpolate(value, given))
    expect(fill).toThrow(missing)
  })

  it('waits only for services with a health check, and keeps data in named volumes', () => {
    const waitedFor = roles.flatMap(([, role]) => Object.entries(role.depends_on ?? {}))
    expect(waitedFor.length).toBeGreaterThan(0)
    for (const [name, { condition }] of waitedFor) {
      expect(condition).toBe('service_healthy')
      expect(services[name]?.healthcheck).toBeDefined()
    }
    const mounted = Object.values(services).flatMap((service) => service.volumes ?? [])
    const sources = mounted.map((mount) => mount.split(':')[0] ?? '').filter((source) => !isFile(source))
    expect(sources.toSorted()).toEqual(Object.keys(volumes).toSorted())
  })

  it('mounts existing files read-only', () => {
    const mounts = Object.values(services).flatMap((service) => service.volumes ?? [])
    const files = mounts.filter((mount) => isFile(mount))
    expect(files.length).toBeGreaterThan(0)
    for (const mount of files) {
      const [source = '', , mode] = mount.split(':')
      expect([mount, existsSync(join('infra', source)), mode]).toEqual([mount, true, 'ro'])
    }
  })

  describe('has a Grafana', () => {
    const {
      environment: grafana = {},
      profiles,
      image,
      volumes: mounts = [],
    } = services.grafana ?? { image: '' }

    it('that is optional, with a pinned version', () => {
      expect(profiles).toEqual(['dashboards'])
      expect(image).toMatch(/^grafana\/grafana:12\.\d+\.\d+$/)
      expect(grafana.GF_PLUGINS_PREINSTALL_SYNC).toMatch(/^grafana-clickhouse-datasource@4\.\d+\.\d+$/)
      expect(grafana.GF_SECURITY_ADMIN_PASSWORD).toBe('${GRAFANA_ADMIN_PASSWORD:-}')
    })

    it('with all variables of its data source, and dashboards in the configured folder', () => {
      const [source = ''] = provisioning('datasources')
      const wanted = [...source.matchAll(/\$(\w+)/g)].map(([, name]) => name)
      expect(wanted).toContain('CLICKHOUSE_HOST')
      expect(Object.keys(grafana)).toEqual(expect.arrayContaining(wanted))
      const [provider = ''] = provisioning('dashboards')
      const { providers } = parse(provider) as { providers: { options: { path: string } }[] }
      expect(mounts).toContain(`./grafana/dashboards:${providers[0]?.options.path}:ro`)
    })

    it('that reads as a separate, read-only user', () => {
      const user = readFileSync('infra/grafana/clickhouse-user.xml', 'utf8')
      const { environment: server = {}, volumes: files } = services.clickhouse ?? { image: '' }
      expect(files?.some((file) => file.startsWith('./grafana/clickhouse-user.xml:'))).toBe(true)
      const password = /<password from_env="(\w+)"/.exec(user)?.[1] ?? ''
      expect(server[password]).toBe(grafana.CLICKHOUSE_PASSWORD)
      expect(user).toContain(`<${grafana.CLICKHOUSE_USERNAME}>`)
      expect(user).toContain('<readonly>2</readonly>')
      expect([...user.matchAll(/<query>(.*)<\/query>/g)].map(([, query]) => query)).toEqual([
        `GRANT SELECT ON ${grafana.CLICKHOUSE_DATABASE}.*`,
        'GRANT SELECT ON system.parts',
      ])
    })
  })
})

describe('the Dockerfile', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8')

  it('copies existing files that .dockerignore includes', () => {
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, list = '']) =>
      list.split(' '),
    )
    expect(sources).toContain('apps')
    const permitted = readFileSync('.dockerignore', 'utf8').matchAll(/^!(.+)$/gm)
    expect([...permitted].map(([, path]) => path).toSorted()).toEqual(sources.toSorted())
    for (const source of sources) expect(existsSync(source)).toBe(true)
  })

  it('runs the same Node as npm ci installs, and a file of the build', () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>
    }
    const bases = [...dockerfile.matchAll(/^FROM node:([\d.]+)-/gm)].map(([, version]) => version)
    expect(bases).toEqual([dependencies.node, dependencies.node])
    const [, main = ''] = /^CMD \["(.+)"\]$/m.exec(dockerfile) ?? []
    expect(existsSync(main)).toBe(true)
  })

  it('sets only existing settings', () => {
    expect(unknownVariables(imageEnvironment())).toEqual([])
    expect(readSettings(imageEnvironment())).toMatchObject({ metricsPort: 9464, dataDir: '/data' })
  })
})

function isFile(mount: string): boolean {
  return mount.startsWith('./')
}

function provisioning(kind: string): string[] {
  return globSync(`infra/grafana/provisioning/${kind}/*.yml`).map((path) => readFileSync(path, 'utf8'))
}

/** The environment of the Dockerfile. */
function imageEnvironment(): Record<string, string> {
  const [, lines = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(readFileSync('Dockerfile', 'utf8')) ?? []
  return Object.fromEntries(
    [...lines.matchAll(/(\w+)=("[^"]*"|\S+)/g)].map(([, name = '', value = '']) => [name, value]),
  )
}

/** Replaces Compose's ${NAME:-default} and ${NAME:?message}. */
function interpolate(text: string, given: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+):([-?])([^}]*)\}/g, (_, name: string, form: string, rest: string) => {
    const value = given[name]
    if (value === undefined && form === '?') throw new Error(`${name}: ${rest}`)
    return value ?? rest
  })
}
