import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:tls'
import { LOOPBACK } from '#infra/servers/ports.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { StartError } from '#libs/runtime/errors.js'
import { Authority } from '#test/harness/certificates.js'
import { NotStartedError, startProcess } from '#test/harness/mayfly-process.js'
import { KAFKA_PASSWORD, REDIS_PASSWORD, USER, type SecuredServers } from './secured-servers.js'

interface RefusedStart {
  env: Readonly<Record<string, string>>
  /** Text of the error line, including the name of the variable. */
  says: RegExp
}

const WITHIN_MS = 60_000
const WRONG = 'a-wrong-secret-1618'

/** Expects that wrong credentials of every kind end the start in time with a helpful error without secrets. */
export async function verifyRefusedStarts(servers: SecuredServers): Promise<void> {
  const stranger = await Authority.make('a stranger')
  const expired = await startExpired(servers.authority)
  try {
    const right = { ...servers.settings(), KAFKA_REPLICATION: '1', ...MASTER }
    const starts = await refusedStarts(servers, stranger, expired)
    const lines = await Promise.all(starts.map(({ env }) => lineOf({ ...right, ...env })))
    expect(lines).toEqual(starts.map(({ says }) => expect.stringMatching(says) as unknown))
    for (const secret of [KAFKA_PASSWORD, REDIS_PASSWORD, WRONG])
      expect(lines.join('\n')).not.toContain(secret)

    const env = { ...right, KAFKA_SASL_PASSWORD: WRONG }
    const ended: unknown = await startProcess({ app: 'lifecycle', env }).catch((error: unknown) => error)
    if (!(ended instanceof NotStartedError)) throw new Error('a role started with a wrong password')
    expect(ended.ending).toBe(1)
    expect(ended.stderr).toMatch(/^mayfly: .*KAFKA_SASL_PASSWORD$/m)
    expect(ended.stderr).not.toContain(WRONG)
  } finally {
    expired.close()
    await stranger.dispose()
  }
}

const MASTER = {
  MAYFLY_MASTER_KEY: `${'A'.repeat(43)}=`,
  MAYFLY_BOOTSTRAP_API_KEY: 'a-key-for-the-suite-of-credentials',
}

async function refusedStarts(
  servers: SecuredServers,
  stranger: Authority,
  expired: Server,
): Promise<RefusedStart[]> {
  const { sasl, saslTls, mutualTls } = servers.kafka.secured
  const { port } = expired.address() as AddressInfo
  const alien = await stranger.issue(USER)
  const noLogIn = { KAFKA_SASL_MECHANISM: '', KAFKA_SASL_USERNAME: '', KAFKA_SASL_PASSWORD: '' }
  const open = { KAFKA_TLS: '', KAFKA_TLS_CA: '' }
  const authority = (variable: string) => new RegExp(`authority that is not trusted: .* ${variable}$`)
  return [
    {
      env: { KAFKA_SASL_PASSWORD: WRONG },
      says: /login of mayfly with scram-sha-512: .*KAFKA_SASL_PASSWORD$/,
    },
    { env: { KAFKA_SASL_PASSWORD: WRONG, KAFKA_SASL_MECHANISM: 'plain' }, says: /KAFKA_SASL_PASSWORD$/ },
    { env: { KAFKA_SASL_USERNAME: 'nobody' }, says: /login of nobody .*KAFKA_SASL_USERNAME/ },
    { env: { KAFKA_TLS_CA: stranger.certFile }, says: authority('KAFKA_TLS_CA') },
    { env: { KAFKA_TLS_CA: '' }, says: authority('KAFKA_TLS_CA') },
    { env: { KAFKA_BROKERS: onLocalhost(saslTls) }, says: /for another host: write in KAFKA_BROKERS/ },
    { env: { KAFKA_BROKERS: `${LOOPBACK}:${port}` }, says: /certificate has expired: .*KAFKA_TLS_CA/ },
    { env: open, says: /require TLS\? Check KAFKA_TLS/ },
    { env: { KAFKA_BROKERS: sasl }, says: /use TLS\? Check KAFKA_TLS/ },
    { env: { ...open, ...noLogIn, KAFKA_BROKERS: sasl }, says: /KAFKA_SASL_MECHANISM$/ },
    { env: { ...noLogIn, KAFKA_BROKERS: mutualTls }, says: /KAFKA_TLS_CERT and KAFKA_TLS_KEY$/ },
    {
      env: { ...noLogIn, KAFKA_BROKERS: mutualTls, KAFKA_TLS_CERT: alien.cert, KAFKA_TLS_KEY: alien.key },
      says: /certificate unknown\): look at KAFKA_TLS_CERT/,
    },
    {
      env: {
        KAFKA_BROKERS: mutualTls,
        KAFKA_TLS_CERT: servers.client.cert,
        KAFKA_TLS_KEY: servers.client.key,
      },
      says: /do not support logins at this port: unset KAFKA_SASL_MECHANISM/,
    },
    { env: { KAFKA_TLS_CA: servers.client.key }, says: /KAFKA_TLS_CA .* holds no certificate in PEM form/ },
    { env: { REDIS_URL: servers.redisUrl(WRONG) }, says: /the user or password in REDIS_URL is wrong$/ },
    { env: { REDIS_TLS_CA: stranger.certFile }, says: authority('REDIS_TLS_CA') },
    { env: { REDIS_TLS_CA: '' }, says: authority('REDIS_TLS_CA') },
    {
      env: { REDIS_URL: servers.redisUrl(REDIS_PASSWORD, 'localhost') },
      says: /for another host: write in REDIS_URL/,
    },
    {
      env: { REDIS_URL: `rediss://${USER}:${REDIS_PASSWORD}@${LOOPBACK}:${port}` },
      says: /certificate has expired: .*REDIS_TLS_CA/,
    },
    {
      env: { REDIS_URL: servers.redisUrl().replace('rediss:', 'redis:'), REDIS_TLS_CA: '' },
      says: /require TLS\? Check REDIS_URL$/,
    },
    { env: { REDIS_URL: servers.openRedisUrl }, says: /use TLS\? Check REDIS_URL$/ },
    { env: { REDIS_URL: `rediss://${USER}:${WRONG}` }, says: /REDIS_URL/ },
    {
      env: { REDIS_TLS_CERT: alien.cert, REDIS_TLS_KEY: alien.key },
      says: /REDIS_TLS_CERT/,
    },
    { env: { MAYFLY_TOPIC_PREFIX: 'another.' }, says: /lacks a permission listed in docs\/distributed\.md/ },
  ]
}

/** The error line of a start with this environment. */
async function lineOf(env: Readonly<Record<string, string>>): Promise<string> {
  const begunAt = Date.now()
  const options = {
    settings: readSettings(env),
    role: 'test',
    now: () => new Date(),
    onError: () => undefined,
  }
  const opened = await openEngine(options).catch((error: unknown) => error)
  if (!(opened instanceof StartError)) throw new Error(`${JSON.stringify(env)} was not refused`)
  if (Date.now() - begunAt > WITHIN_MS)
    throw new Error(`it took ${Date.now() - begunAt} ms to say: ${opened.message}`)
  return opened.message
}

/** A TLS server with a certificate that expired yesterday. */
async function startExpired(authority: Authority): Promise<Server> {
  const yesterday = new Date(Date.now() - 86_400_000)
  const { cert, key } = await authority.issue('expired', { hosts: [LOOPBACK], until: yesterday })
  const [certPem, keyPem] = await Promise.all([readFile(cert), readFile(key)])
  const server = createServer({ cert: certPem, key: keyPem }).listen(0, LOOPBACK)
  server.on('tlsClientError', () => undefined)
  await once(server, 'listening')
  return server
}

function onLocalhost(address: string): string {
  return address.replace(LOOPBACK, 'localhost')
}
