import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { generate } from 'selfsigned'
import { startStandalone } from '#apps/standalone/standalone.js'
import { readSettings } from '#libs/config/settings.js'
import type { Target } from './client.js'

/** Every role within this process, on a clock that the test moves. */
export interface Roles extends Target {
  dataDir: string
  close(): Promise<void>
}

export interface RolesOptions {
  dataDir: string
  now: () => Date
}

const API_KEY = 'a-key-for-the-end-to-end-suites'

/** Resolves once all roles run. */
export async function startRoles({ dataDir, now }: RolesOptions): Promise<Roles> {
  const tls = await makeFolder()
  const [certificate, key] = [join(tls.path, 'cert.pem'), join(tls.path, 'key.pem')]
  const made = await generate([{ name: 'commonName', value: 'mayfly.test' }])
  await Promise.all([writeFile(certificate, made.cert), writeFile(key, made.private)])
  const settings = readSettings({
    MAYFLY_DATA_DIR: dataDir,
    MAYFLY_HTTP_PORT: '0',
    MAYFLY_SMTP_PORT: '0',
    MAYFLY_SMTP_TLS_CERT: certificate,
    MAYFLY_SMTP_TLS_KEY: key,
    MAYFLY_PARSE_THREADS: '1',
    MAYFLY_BOOTSTRAP_API_KEY: API_KEY,
  })
  const logger = pino({ level: 'silent' })
  const started = await startStandalone({ settings, logger, now, announce: () => undefined })
  await tls.remove()
  return { ...started, apiKey: API_KEY, dataDir }
}

/** An empty folder, and the way to be rid of it. */
export async function makeFolder(): Promise<{ path: string; remove: () => Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'mayfly-'))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
