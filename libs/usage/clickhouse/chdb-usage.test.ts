import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UsageHarness } from '../usage-harness.contract.js'
import { describeUsageQueries } from '../usage-queries.contract.js'
import { describeUsageSink } from '../usage-sink.contract.js'
import { openChdbUsage } from './clickhouse-usage.js'

describeUsageSink('chDB', open)
describeUsageQueries('chDB', open)

async function open(): Promise<UsageHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-usage-'))
  const usage = await openChdbUsage(folder)
  if (usage === null) throw new Error('chDB is not installed')
  await usage.prepare()
  return {
    ...usage,
    async close() {
      await usage.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
