import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unknownPlan } from '#libs/domain/account/access.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { after, served, TENANT, write } from '#libs/ports/usage/usage-harness.contract.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import type { Principal } from '../access/principal.js'
import { ReadUsage } from './usage-parameters.dto.js'
import { Usage } from './usage.service.js'

const principal: Principal = {
  ...{
    ...TENANT,
    scopes: ['admin'],
    plan: unknownPlan('enterprise'),
    defaultFaults: [],
    requestsPerMinute: 100,
    accountRequestsPerMinute: null,
  },
  ...{ inboxPassword: null, subject: null },
  ...{ countedBy: TENANT.keyId, actor: null, expiresAt: null, inboxId: null, member: null, sessionId: null },
}

describe('usage by time', () => {
  let folder: string
  let store: UsageStore
  let usage: Usage

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-usage-'))
    const opened = await openChdbUsage(folder)
    if (opened === null) throw new Error('chDB is not installed')
    store = opened
    await store.prepare()
    const now = () => after(12_000_000)
    const { queries } = store
    const ports = {
      queries,
      accounts: { listKeys: () => Promise.resolve([]) },
      countedUpTo: null,
      onUnavailable: () => undefined,
    }
    const settings = readSettings({})
    usage = new Usage(ports, {
      ...{ now, settings },
      isStarted: () => true,
      smtpPort: () => settings.smtpPort,
    })
  })
  afterAll(async () => {
    await store.close()
    await rm(folder, { recursive: true })
  })

  it('has at most 10,000 rows: intervals without usage do not count', async () => {
    const bySecond = Object.assign(new ReadUsage(), { interval: 'second' })
    const seconds = (first: number, count: number) =>
      write(
        store.sink,
        Array.from({ length: count }, (_, n) => served(after((first + n) * 1_000))),
      )
    await seconds(0, 10_000)
    expect(await usage.figures(principal, bySecond)).toHaveLength(10_000)
    await seconds(10_000, 1)
    await expect(usage.figures(principal, bySecond)).rejects.toMatchObject({
      code: 'invalid-request',
      status: 400,
      options: { detail: expect.stringContaining('more than 10000 rows') as string },
    })
    const shorter = Object.assign(new ReadUsage(), { interval: 'second', from: after(1_000).toISOString() })
    expect(await usage.figures(principal, shorter)).toHaveLength(10_000)
  })
})
