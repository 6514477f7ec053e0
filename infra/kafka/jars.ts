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

/** Kafka's jars are not there, and Maven could not bring them. */
export class NoKafkaJarsError extends Error {
  override readonly name = 'NoKafkaJarsError'
}

/** The folder of Kafka's jars, named for the pom.xml that they follow from: whole, or not there. */
export function jarsFolder(): string {
  const pom = createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12)
  return join(process.cwd(), 'node_modules/.cache/mayfly', `kafka-${pom}`)
}

export function hasJars(): boolean {
  return existsSync(jarsFolder())
}

/**
 * Resolves with the folder of Kafka's jars once they are there, from Maven Central where need be (43 MB), in so
 * many attempts. Rejects with NoKafkaJarsError.
 */
export async function bringJars({ attempts }: { attempts: number }): Promise<string> {
  const folder = jarsFolder()
  for (let attempt = 1; !hasJars(); attempt += 1) {
    try {
      await copyJars(folder, attempt > 1)
    } catch (error) {
      if (attempt >= attempts) throw new NoKafkaJarsError(reasonOf(error))
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
    // Maven remembers for a day what it did not find, unless told to look again.
    const flags = ['-q', '-B', ...(again ? ['-U'] : []), '-f', POM]
    const bounds = { timeout: WITHIN_MS, killSignal: 'SIGKILL', maxBuffer: 1 << 26 } as const
    await run('mvn', [...flags, COPY_DEPENDENCIES, ...output], bounds)
    await rename(unfinished, folder)
  } catch (error) {
    // Another process was quicker.
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
  const said = typeof stdout === 'string' ? stdout : String(error)
  const faults = said.split('\n').filter((line) => line.includes('[ERROR]'))
  return `Maven could not bring Kafka's jars. ${advice}.\n${(faults[0] ?? String(error)).slice(0, 1_000)}`
}
