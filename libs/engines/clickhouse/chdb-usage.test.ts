import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UsageHarness } from '#libs/ports/usage/usage-harness.contract.js'
import { describeUsageExports } from '#libs/ports/usage/usage-exports.contract.js'
import { describeUsageQueries } from '#libs/ports/usage/usage-queries.contract.js'
import { describeUsageSink } from '#libs/ports/usage/usage-sink.contract.js'
import { openChdbUsage } from './clickhouse-usage.js'
import { chdbClient } from './clients.js'

describeUsageSink('chDB', () => open())
describeUsageQueries('chDB', () => open())
describeUsageExports('chDB', () => open())

describe('the tables on chDB', () => {
  it('are migrated after a process died during the migration', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-usage-'))
    const client = await chdbClient(join(folder, 'tables'))
    if (client === null) throw new Error('chDB is not installed')
    await client.command({ query: 'CREATE DATABASE mayfly' })
    await client.command({ query: 'CREATE TABLE mayfly.migration_lock (taken UInt8) ENGINE = Memory' })
    await client.close()
    const usage = await open(folder)
    expect(await usage.sink.writtenTo('log', 'usage-events')).toEqual(new Map())
    await usage.close()
  })
})

async function open(inFolder?: string): Promise<UsageHarness> {
  const folder = inFolder ?? (await mkdtemp(join(tmpdir(), 'mayfly-usage-')))
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
