import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { EngineName } from '#test/harness/mayfly.js'
import { endSharedServers, startSharedServers } from '#test/harness/shared-servers.js'
import { accepting } from './accepting.js'
import { beside } from './beside.js'
import { clientLibrary } from './client-library.js'
import { compare, comparisonTable, type Compared } from './comparison.js'
import { cpu } from './cpu.js'
import { creating } from './creating.js'
import { crowd } from './crowd.js'
import { extraction } from './extraction.js'
import { findingOf, type Finding } from './figure.js'
import { fairness } from './fairness.js'
import { footprint } from './footprint.js'
import { latency } from './latency.js'
import { manyInboxes } from './many-inboxes.js'
import { listing } from './listing.js'
import { CannotRunError, readCommand, USAGE, type Command } from './plan.js'
import { recipients } from './recipients.js'
import type { Section } from './section.js'
import { showing } from './showing.js'
import { starting } from './starting.js'
import { findingsTable } from './table.js'
import { underBombs } from './under-bombs.js'
import { usageStorage } from './usage-storage.js'
import { usage } from './usage.js'
import { waking } from './waking.js'
import { webConsole } from './web-console.js'
import { webhooks } from './webhooks.js'

/*
 * The benchmark of the standalone build on the embedded engine, or of one process of each role with a Kafka and a Redis
 * on the same machine. It uses free loopback ports and temporary folders. docs/benchmarks.md explains each figure.
 */

const ON_BOTH_ENGINES = {
  accepting,
  cpu,
  showing,
  latency,
  'under-bombs': underBombs,
  creating,
  listing,
  waking,
  fairness,
  recipients,
  'many-inboxes': manyInboxes,
}
const SECTIONS: Readonly<Record<EngineName, Readonly<Record<string, Section>>>> = {
  embedded: {
    ...ON_BOTH_ENGINES,
    extraction,
    footprint,
    crowd,
    client: clientLibrary,
    console: webConsole,
    webhooks,
    usage,
    'usage-storage': usageStorage,
    starting,
  },
  distributed: ON_BOTH_ENGINES,
}

/** Sections that run parts of this build in this process, so they can't measure another build. */
const IN_PROCESS_SECTIONS: ReadonlySet<string> = new Set(['extraction', 'usage', 'usage-storage', 'client'])

try {
  await run(readCommand(process.argv.slice(2)))
} catch (error) {
  const isExplained = error instanceof CannotRunError
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.stderr.write(isExplained ? `${error.message}\n` : `${stack}\n\n${USAGE}`)
  process.exitCode = 1
}

async function run(command: Command): Promise<void> {
  const { engine, only } = command
  const sections = SECTIONS[engine]
  const unknown = only?.find((name) => !(name in sections))
  if (unknown !== undefined) {
    throw new CannotRunError(
      `there is no section "${unknown}"; there are ${Object.keys(sections).join(', ')}`,
    )
  }
  if (command.beside.length > 0) {
    const compared = await beside(command, (line) => process.stderr.write(`${line}\n`))
    return report(command, comparisonTable(compared), compared)
  }
  if (engine === 'embedded') {
    await measure(command)
    return
  }
  process.env.TEST_ENGINE = engine
  await startSharedServers()
  try {
    await measure(command)
  } finally {
    await endSharedServers()
  }
}

async function measure(command: Command): Promise<void> {
  const { plan, engine, only, profileDir, compareWith } = command
  const findings: Finding[] = []
  const compared: Compared[] = []
  for (const [name, section] of Object.entries(SECTIONS[engine])) {
    if (only !== null && !only.includes(name)) continue
    const say = (line: string) => process.stderr.write(`${name}: ${line}\n`)
    if (compareWith !== null && IN_PROCESS_SECTIONS.has(name)) {
      say('skipped: it runs parts of this build in the benchmark itself')
      continue
    }
    const started = performance.now()
    const context = { plan, engine, profileDir, say }
    if (compareWith === null) findings.push(...(await section(context)).map(findingOf))
    else compared.push(...(await compare(section, context, compareWith)))
    say(`${((performance.now() - started) / 1000).toFixed(0)} s`)
  }
  if (compareWith === null) await report(command, findingsTable(findings), findings)
  else await report(command, comparisonTable(compared), compared)
}

async function report(
  { engine, jsonPath }: Command,
  table: string,
  results: readonly Finding[] | readonly Compared[],
): Promise<void> {
  process.stdout.write(
    `\n${engine} engine, ${availableParallelism()} cores, Node ${process.versions.node}\n\n${table}`,
  )
  if (jsonPath !== null) await writeFile(jsonPath, `${JSON.stringify(results, null, 2)}\n`)
}
