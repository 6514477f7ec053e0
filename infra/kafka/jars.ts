import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const POM = join(process.cwd(), 'infra/kafka/pom.xml')
const COPY_DEPENDENCIES = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'
const WITHIN_MS = 300_000
const PAUSE_MS = 3_000

/** Kafka's jars are missing, and Maven could not download them. */
export class KafkaJarsUnavailableError extends Error {
  override readonly name = 'KafkaJarsUnavailableError'
}

/** The folder of Kafka's jars, named by a hash of pom.xml: either complete or missing. */
export function jarsFolder(): string {
  const pom = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12)
  return join(process.cwd(), 'node_modules/.cache/mayfly', `kafka-${pom}`)
}

export function hasJars(): boolean {
  return existsSync(jarsFolder())
}

/**
 * Resolves with the folder of Kafka's jars. Downloads them from Maven Central (43 MB) if they are missing, in up to that
 * many attempts. Rejects with KafkaJarsUnavailableError.
 */
export async function installJars({ attempts }: { attempts: number }): Promise<string> {
  const folder = jarsFolder()
  for (let attempt = 1; !hasJars(); attempt += 1) {
    try {
      await copyJars(folder, attempt > 1)
    } catch (error) {
      if (attempt >= attempts) throw new KafkaJarsUnavailableError(reasonOf(error))
      await pause(attempt * PAUSE_MS)
    }
  }
  return folder
}

async function copyJars(folder: string, again: boolean): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  const unfinished = await mkdtemp(`${folder}.`)
  try {
    const output = [`-DoutputDirectory=${unfinished}`, '-DincludeScope=runtime']
    // Maven caches failed lookups for a day, unless `-U` is given.
    const flags = ['-q', '-B', ...(again ? ['-U'] : []), '-f', POM]
    const bounds = { timeout: WITHIN_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26 } as const
    await run('mvn', [...flags, COPY_DEPENDENCIES, ...output], bounds)
    await rename(unfinished, folder)
  } catch (error) {
    // Another process has finished first.
    if (!hasJars()) throw error
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
}

function reasonOf(error: unknown): string {
  const { code, stdout } = error as { code?: unknown; stdout?: unknown }
  const advice =
    'Kafka is fetched once from Maven Central, which takes Maven (apt-get install maven) and a network'
  if (code === 'ENOENT') return `mvn is not installed. ${advice}.`
  const output = typeof stdout === 'string' ? stdout : String(error)
  const lines = output.split('\n').filter((line) => line.includes('[ERROR]'))
  return `Maven could not bring Kafka's jars. ${advice}.\n${(lines[0] ?? String(error)).slice(0, 1_000)}`
}
