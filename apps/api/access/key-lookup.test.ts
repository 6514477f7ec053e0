import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { issued, KEY_FACTS, opened, revoked, day } from '#libs/domain/account/account.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { atOffset } from '#libs/ports/read-model/read-model-harness.contract.js'
import { ViewsCatchingUpError } from '#libs/ports/read-model/consistent-views.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-view-store.js'
import { accountSliceBefore, projectAccountEvent } from '#libs/ports/read-model/projections.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { until } from '#test/harness/until.js'
import { Views } from '../views.js'
import { KnownKeys } from './key-lookup.js'

const { secretHash } = KEY_FACTS
const partition = { topic: 'account-events', partition: 0 } as const

describe('known keys without signals', () => {
  let folder: string
  let model: LmdbReadModel
  let keys: KnownKeys
  let offset: number

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'), 1)
    const { queries, accounts } = model
    const noKeys = () => Promise.reject(new Error('no inbox is read'))
    const vault = { create: noKeys, find: noKeys }
    const log = layoutOf({ partitionCount: () => 1, topology: noKeys })
    keys = new KnownKeys(new Views(log, queries, accounts, vault, new InProcessSignals()), () => day(2))
    offset = 0
    await model.store.begin('the-log', { ...partition, first: 0, end: 0 })
  })
  afterEach(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })

  async function project(...events: AccountEvent[]): Promise<void> {
    for (const event of events) {
      const before = await accountSliceBefore(model.store, event)
      const changes = projectAccountEvent(before, atOffset(offset, event))
      await model.store.apply({ ...partition, from: offset, to: offset + 1, changes, contents: [] })
      offset += 1
    }
  }

  const isRevoked = async () => (await keys.find(secretHash))?.key.revokedAt != null

  it('are revoked soon', async () => {
    await project(opened, issued)
    expect(await isRevoked()).toBe(false)
    await project(revoked(day(2)))
    await until('the revocation', isRevoked, 5_000)
  })

  it('end the sessions that they started, which also end by themselves, soon', async () => {
    const { accountId, keyId } = KEY_FACTS
    const sessionIds = [1, 2].map((n) => idFromBytes('ses', Buffer.alloc(16, n)))
    const start = {
      startedBy: keyId,
      memberId: null,
      isIdentified: false,
      secretHash,
      startedAt: day(1),
      expiresAt: day(3),
    }
    const started = sessionIds.map((sessionId) => ({ accountId, sessionId, ...start }))
    const active = async () => {
      const known = await Promise.all(sessionIds.map((id) => keys.session(accountId, id)))
      return known.map((each) => each !== null)
    }
    await project(opened, issued)
    expect(await active()).toEqual([false, false])
    await project(...started.map((facts) => ({ type: 'ConsoleSessionStarted', ...facts }) as const))
    expect(await active()).toEqual([true, true])
    const [sessionId = idFromBytes('ses', Buffer.alloc(16))] = sessionIds
    await project({ type: 'ConsoleSessionEnded', accountId, sessionId, endedAt: day(2) })
    await until('the end of the first', async () => !(await active())[0], 5_000)
    expect(await active()).toEqual([false, true])
    await project(revoked(day(2)))
    await until('the end of the second', async () => !(await active())[1], 5_000)
  })

  it('are looked up again after they are forgotten', async () => {
    await project(opened, issued)
    expect(await isRevoked()).toBe(false)
    await project(revoked(day(2)))
    keys.forgetAll()
    expect(await isRevoked()).toBe(true)
  })

  it('work immediately after they are issued, even if they were looked up before', async () => {
    expect(await keys.find(secretHash)).toBeNull()
    await project(opened, issued)
    expect(await keys.find(secretHash)).not.toBeNull()
  })

  it('are not found while the views catch up, since they may have been revoked', async () => {
    await project(opened, issued)
    await model.store.begin('the-log', { ...partition, first: 0, end: 3 })
    await expect(keys.find(secretHash)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await project(revoked(day(2)))
    expect(await isRevoked()).toBe(true)
  })
})
