import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface ScramUser {
  /** Folder of Kafka's jars, see jars.ts. */
  jars: string
  /** host:port of a broker's listener without authentication. */
  broker: string
  name: string
  /** For SCRAM-SHA-512 only; null removes it. */
  password: string | null
}

const run = promisify(execFile)
const MECHANISM = 'SCRAM-SHA-512'
const WITHIN_MS = 60_000

/** Resolves once the user is changed. Existing sessions stay authenticated until they end. */
export async function changeScramUser({ jars, broker, name, password }: ScramUser): Promise<void> {
  const change =
    password === null
      ? ['--delete-config', MECHANISM]
      : ['--add-config', `${MECHANISM}=[password=${password}]`]
  const user = ['--entity-type', 'users', '--entity-name', name]
  const flags = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', join(jars, '*')]
  const command = ['kafka.admin.ConfigCommand', '--bootstrap-server', broker, '--alter', ...change, ...user]
  await run('java', [...flags, ...command], { timeout: WITHIN_MS, killSignal: 'SIGKILL' })
}
