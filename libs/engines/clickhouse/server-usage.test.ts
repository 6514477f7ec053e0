import { randomUUID } from 'node:crypto'
import { clickhouseUrl, describeOn } from '#test/harness/servers.js'
import type { UsageHarness } from '#libs/ports/usage/usage-harness.contract.js'
import { describeUsageExports } from '#libs/ports/usage/usage-exports.contract.js'
import { describeUsageQueries } from '#libs/ports/usage/usage-queries.contract.js'
import { describeUsageSink } from '#libs/ports/usage/usage-sink.contract.js'
import { serverUsage } from './clickhouse-usage.js'

describeOn('clickhouse')('over HTTP', () => {
  describeUsageSink('ClickHouse', open)
  describeUsageQueries('ClickHouse', open)
  describeUsageExports('ClickHouse', open)

  describe('the tables', () => {
    it('are migrated once, even if several processes start together', async () => {
      const address = addressOf()
      const stores = Array.from({ length: 4 }, () => serverUsage(address))
      try {
        await Promise.all(stores.map((store) => store.prepare()))
        await Promise.all(stores.map((store) => store.prepare()))
        expect(await stores[0]?.sink.writtenTo('log', 'usage-events')).toEqual(new Map())
      } finally {
        await Promise.all(stores.map((store) => store.close()))
      }
    })
  })
})

describe('a ClickHouse server that is unavailable', () => {
  it('is reported as unavailable figures', async () => {
    const store = serverUsage({ ...addressOf(), url: 'http://127.0.0.1:1' })
    try {
      await expect(store.prepare()).rejects.toThrow(/^ClickHouse: .*ECONNREFUSED/)
      await expect(store.sink.writtenTo('log', 'usage-events')).rejects.toThrow('ClickHouse: ')
    } finally {
      await store.close()
    }
  })
})

function addressOf() {
  const database = `suite_${randomUUID().replaceAll('-', '')}`
  return { url: clickhouseUrl(), database, username: 'default', password: '', ca: null }
}

async function open(): Promise<UsageHarness> {
  const store = serverUsage(addressOf())
  await store.prepare()
  return store
}
