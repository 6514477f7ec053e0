import { writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { accepting } from './accepting.js'
import { creating } from './creating.js'
import { findingOf, type Finding } from './figure.js'
import { footprint } from './footprint.js'
import { latency } from './latency.js'
import { manyInboxes } from './many-inboxes.js'
import { readCommand, USAGE, type Command } from './plan.js'
import type { Section } from './section.js'
import { showing } from './showing.js'
import { starting } from './starting.js'
import { tableOf } from './table.js'

/*
 * The benchmark: the standalone build on the embedded engine, in processes of its own on free ports of the
 * loopback, with folders of their own that are removed. What each figure means stands in docs/benchmarks.md.
 */

const SECTIONS: Readonly<Record<string, Section>> = {
  accepting,
  showing,
  latency,
  creating,
  footprint,
  'many-inboxes': manyInboxes,
  starting,
}

try {
  await run(readCommand(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(
    `${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n\n${USAGE}`,
  )
  process.exitCode = 1
}

async function run({ plan, only, jsonPath, profileDir }: Command): Promise<void> {
  const unknown = only?.find((name) => !(name in SECTIONS))
  if (unknown !== undefined) {
    throw new Error(`there is no section "${unknown}"; there are ${Object.keys(SECTIONS).join(', ')}`)
  }
  const findings: Finding[] = []
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (only !== null && !only.includes(name)) continue
    const say = (line: string) => process.stderr.write(`${name}: ${line}\n`)
    const started = performance.now()
    const figures = await section({ plan, profileDir, say })
    say(`${((performance.now() - started) / 1000).toFixed(0)} s`)
    findings.push(...figures.map(findingOf))
  }
  process.stdout.write(
    `\n${availableParallelism()} cores, Node ${process.versions.node}\n\n${tableOf(findings)}`,
  )
  if (jsonPath !== null) await writeFile(jsonPath, `${JSON.stringify(findings, null, 2)}\n`)
}
