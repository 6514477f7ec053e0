import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { issued, KEY_FACTS, opened, revoked, day } from '#libs/domain/account/account.test-support.js'
import { ViewsCatchingUpError } from '#libs/ports/read-model/consistent-views.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { openLmdbReadModel, type LmdbReadModel } from '#libs/engines/embedded/read-model/lmdb-read-model.js'
import { projectAccountEvent, sliceConcerned } from '#libs/ports/read-model/projections.js'
import { InProcessSignals } from '#libs/ports/signals/signals.js'
import { until } from '#test/harness/until.js'
import { Views } from '../http/views.js'
import { KnownKeys } from './authenticator.js'

const { secretHash } = KEY_FACTS
const place = { topic: 'account-events', partition: 0 } as const

describe('known keys, while no signal comes', () => {
  let folder: string
  let model: LmdbReadModel
  let keys: KnownKeys
  let position: number

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    model = await openLmdbReadModel(join(folder, 'views.mdb'))
    const { queries, accounts } = model
    const noKeys = () => Promise.reject(new Error('no inbox is asked for'))
    const vault = { create: noKeys, find: noKeys }
    const log = layoutOf({ partitionCount: () => 1, topology: noKeys })
    keys = new KnownKeys(new Views(log, queries, accounts, vault, new InProcessSignals()))
    position = 0
    await model.store.begin('the-log', { ...place, first: 0, end: 0 })
  })
  afterEach(async () => {
    await model.close()
    await rm(folder, { recursive: true })
  })

  async function follow(...events: AccountEvent[]): Promise<void> {
    for (const event of events) {
      const before = await model.store.accountSlice(sliceConcerned(event))
      const changes = projectAccountEvent(before, event)
      await model.store.apply({ ...place, from: position, to: position + 1, changes, contents: [] })
      position += 1
    }
  }

  const isRevoked = async () => (await keys.find(secretHash))?.key.revokedAt != null

  it('are revoked within a second all the same', async () => {
    await follow(opened, issued)
    expect(await isRevoked()).toBe(false)
    await follow(revoked(day(2)))
    await until('the revocation', isRevoked, 1_000)
  })

  it('are looked up anew at once where they are told to be', async () => {
    await follow(opened, issued)
    expect(await isRevoked()).toBe(false)
    await follow(revoked(day(2)))
    keys.forgetAll()
    expect(await isRevoked()).toBe(true)
  })

  it('are known from their first moment, however often they were asked for before', async () => {
    expect(await keys.find(secretHash)).toBeNull()
    await follow(opened, issued)
    expect(await keys.find(secretHash)).not.toBeNull()
  })

  it('are not told while the views catch up, when one may have been revoked since', async () => {
    await follow(opened, issued)
    await model.store.begin('the-log', { ...place, first: 0, end: 3 })
    await expect(keys.find(secretHash)).rejects.toBeInstanceOf(ViewsCatchingUpError)
    await follow(revoked(day(2)))
    expect(await isRevoked()).toBe(true)
  })
})
