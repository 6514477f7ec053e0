import { setTimeout as pause } from 'node:timers/promises'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { InboxKeyWrapped } from '#libs/domain/inbox/key-events.js'
import { until } from '#test/harness/until.js'
import { makeSecretKey, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import { describeCurrentMasterKey } from './current-master-key.contract.js'
import { KeyVaultUnavailableError, type KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { masterKeys, type VaultHarness } from './logged-key-vault-harness.contract.js'

type Harness = VaultHarness & { vault: KeyVault }

/** How long a process caches a key: after that time it looks it up again. */
const CACHE_MS = 2_000

export function describeLoggedKeyVault(name: string, make: () => Promise<Harness>): void {
  describe(`keys on ${name}`, () => {
    let harness: Harness
    let vault: KeyVault
    let inboxId: InboxId

    beforeEach(async () => {
      harness = await make()
      vault = harness.vault
      inboxId = mintId('inb')
    })
    afterEach(() => harness.close())

    const forgetCached = () => (harness.nowMs += CACHE_MS)
    const known = (key: SecretKey) => ({ state: 'known', key })
    const wrappedOf = (id: InboxId, key = makeSecretKey()): InboxKeyWrapped => ({
      type: 'InboxKeyWrapped',
      inboxId: id,
      ...masterKeys(harness.masterText).wrap(id, key),
    })

    describe('a view', () => {
      it('that was flushed is rebuilt', async () => {
        const forgotten = mintId('inb')
        const key = await vault.create(inboxId)
        await vault.create(forgotten)
        await vault.forget([forgotten])
        await harness.flushView()
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
        expect(await vault.find(forgotten)).toEqual({ state: 'forgotten' })
        await harness.flushView()
        const other = await harness.open()
        expect(await other.find(forgotten)).toEqual({ state: 'forgotten' })
        expect(await other.find(inboxId)).toEqual(known(key))
      })

      it('that was restored from an older copy does not restore forgotten keys', async () => {
        await vault.create(inboxId)
        const partition = harness.partitionOf(inboxId)
        const restore = await harness.copyView()
        await vault.forget([inboxId])
        await until('the view to be past the record', async () => {
          const { progress } = await harness.view.find(partition, [])
          return progress !== null && progress.next >= (await harness.recordsInPartitionOf(inboxId)).length
        })
        expect(await vault.find(inboxId)).toEqual({ state: 'forgotten' })
        await restore()
        const { entries } = await harness.view.find(partition, [inboxId])
        expect(entries).toMatchObject([{ state: 'wrapped' }])
        expect(await vault.find(inboxId)).toEqual({ state: 'forgotten' })
        await restore()
        const other = await harness.open()
        expect(await other.find(inboxId)).toEqual({ state: 'forgotten' })
      })

      it('of another log is emptied', async () => {
        const partition = harness.partitionOf(inboxId)
        await vault.close()
        const { progress } = await harness.view.find(partition, [])
        await harness.view.begin(partition, { logId: 'another', next: 0 }, progress)
        const key = { masterKeyId: 'another', wrapped: Buffer.from('key') }
        await harness.view.take(partition, inboxId, key)
        const other = await harness.open()
        expect(await other.find(inboxId)).toEqual({ state: 'unknown' })
      })

      it('catches up with the log without lookups', async () => {
        await vault.create(inboxId)
        const end = (await harness.recordsInPartitionOf(inboxId)).length
        const partition = harness.partitionOf(inboxId)
        await until('the view to reach the end', async () => {
          const { progress } = await harness.view.find(partition, [])
          return progress !== null && progress.next >= end
        })
        expect(harness.errors).toEqual([])
      })
    })

    describe('two processes', () => {
      it('see each other’s keys, and that they are forgotten', async () => {
        const other = await harness.open()
        const key = await vault.create(inboxId)
        expect(await other.find(inboxId)).toEqual(known(key))
        await vault.forget([inboxId])
        forgetCached()
        expect(await other.find(inboxId)).toEqual({ state: 'forgotten' })
      })

      it('that create a key for one inbox at the same time get the same key, which the log keeps', async () => {
        const other = await harness.open()
        const [one, two] = await Promise.all([vault.create(inboxId), other.create(inboxId)])
        expect(two).toEqual(one)
        const third = await harness.open()
        await third.find(mintId('inb'))
        await until('the last record to be the right one', async () => {
          const last = await harness.lastEventOf(inboxId)
          if (last?.type !== 'InboxKeyWrapped') return false
          return masterKeys(harness.masterText).unwrap(inboxId, last).equals(one)
        })
        await harness.flushView()
        forgetCached()
        expect(await third.find(inboxId)).toEqual(known(one))
      })
    })

    describe('a log', () => {
      it('that is unavailable causes no false answers, and is used again when it is available', async () => {
        const key = await vault.create(inboxId)
        harness.faultyLog.isUnavailable = true
        const late = mintId('inb')
        await expect(vault.create(late)).rejects.toThrow(KeyVaultUnavailableError)
        await expect(vault.find(late)).rejects.toThrow(KeyVaultUnavailableError)
        await expect(vault.forget([inboxId])).rejects.toThrow(KeyVaultUnavailableError)
        await expect(harness.open()).rejects.toThrow(KeyVaultUnavailableError)
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
        harness.faultyLog.isUnavailable = false
        expect(await vault.find(late)).toEqual({ state: 'unknown' })
        const made = await vault.create(late)
        forgetCached()
        expect(await vault.find(late)).toEqual(known(made))
      })

      it('that reported a failure for a stored key keeps one key, the one that was returned', async () => {
        harness.faultyLog.reportsFailure = true
        await expect(vault.create(inboxId)).rejects.toThrow(KeyVaultUnavailableError)
        harness.faultyLog.reportsFailure = false
        const key = await vault.create(inboxId)
        await harness.flushView()
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
        expect(await vault.create(inboxId)).toEqual(key)
      })

      it('with a late record of another key gets the key in use again', async () => {
        const key = await vault.create(inboxId)
        const late = await harness.append(wrappedOf(inboxId))
        await vault.find(mintIdIn(harness.partitionOf(inboxId)))
        await until('the last record to be the right one', async () => {
          const last = await harness.lastEventOf(inboxId)
          if (last?.type !== 'InboxKeyWrapped') return false
          return masterKeys(harness.masterText).unwrap(inboxId, last).equals(key)
        })
        expect((await harness.recordsInPartitionOf(inboxId)).at(-1)?.offset).toBeGreaterThan(late.offset)
        await harness.flushView()
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
      })

      it('with a late record of another key during a creation ends with the key that is returned', async () => {
        const other = await harness.open()
        harness.faultyLog.onDurable = async () => {
          await harness.append(wrappedOf(inboxId))
          await other.find(mintIdIn(harness.partitionOf(inboxId)))
        }
        const key = await vault.create(inboxId)
        const last = await harness.lastEventOf(inboxId)
        if (last?.type !== 'InboxKeyWrapped') throw new Error('the log has no key')
        expect(masterKeys(harness.masterText).unwrap(inboxId, last)).toEqual(key)
      })

      it('with a late record of a forgotten key gets the forgotten record again', async () => {
        await vault.create(inboxId)
        await vault.forget([inboxId])
        await harness.append(wrappedOf(inboxId))
        await until('the last record to be the right one', async () => {
          const last = await harness.lastEventOf(inboxId)
          return last?.type === 'InboxKeyForgotten'
        })
        await harness.flushView()
        expect(await vault.find(inboxId)).toEqual({ state: 'forgotten' })
      })

      it('may have keys that the view lacks, after a process was killed in between', async () => {
        const key = makeSecretKey()
        await harness.append(wrappedOf(inboxId, key))
        expect(await vault.find(inboxId)).toEqual(known(key))
        const forgotten = mintId('inb')
        await vault.create(forgotten)
        await harness.append({ type: 'InboxKeyForgotten', inboxId: forgotten, forgottenAt: new Date() })
        await until('it to be forgotten', async () => {
          forgetCached()
          return (await vault.find(forgotten)).state === 'forgotten'
        })
        await expect(vault.create(forgotten)).rejects.toThrow(/has been forgotten/)
      })

      it('with a record of a newer version makes keys unavailable, not unknown', async () => {
        const key = await vault.create(inboxId)
        await vault.find(mintIdIn(harness.partitionOf(inboxId)))
        const record = (await harness.recordsInPartitionOf(inboxId)).find(
          (candidate) => candidate.key === inboxId,
        )
        if (record === undefined) throw new Error('the key is not on the log')
        const headers = { ...record.headers, ce_schemaversion: '2' }
        await harness.stores.log.append('inbox-keys', { ...record, headers })
        const late = mintIdIn(harness.partitionOf(inboxId))
        await expect(vault.find(late)).rejects.toThrow(/schema version 2.*deploy a newer one/)
        await expect(vault.find(late)).rejects.toThrow(KeyVaultUnavailableError)
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
      })

      it('with an undecodable record is read past it, and the record is reported', async () => {
        const key = makeSecretKey()
        const value = Buffer.from('nothing of ours')
        await harness.stores.log.append('inbox-keys', { key: inboxId, headers: {}, value })
        await harness.append(wrappedOf(inboxId, key))
        expect(await vault.find(inboxId)).toEqual(known(key))
        expect(harness.errors.map(String)).toContainEqual(expect.stringMatching(/skipped.*unknown type/))
      })

      it('is not read for each of many unknown keys', async () => {
        await vault.find(inboxId)
        const before = harness.faultyLog.topologyCalls
        const found = await Promise.all(Array.from({ length: 500 }, () => vault.find(mintId('inb'))))
        expect(new Set(found.map(({ state }) => state))).toEqual(new Set(['unknown']))
        expect(harness.faultyLog.topologyCalls - before).toBeLessThan(100)
      })

      it('gets one forgotten record for each of hundreds of inboxes', async () => {
        const ids = Array.from({ length: 300 }, () => mintId('inb'))
        await Promise.all(ids.slice(0, 20).map((id) => vault.create(id)))
        await vault.forget([...ids, ...ids])
        const count = async () => (await harness.recordsInPartitionOf(inboxId)).length
        // The follower may still be writing records of its own.
        const before = await until('the records to be written', async () => {
          const [one, other] = [await count(), await pause(500).then(count)]
          return one === other && one
        })
        await vault.forget(ids)
        expect(await count()).toBe(before)
        const found = await Promise.all(ids.map((id) => vault.find(id)))
        expect(new Set(found.map(({ state }) => state))).toEqual(new Set(['forgotten']))
      })
    })

    describe('a master key', () => describeCurrentMasterKey(() => harness))

    describe('heartbeats', () => {
      it('are appended to every partition repeatedly, with the same key, and hide no keys', async () => {
        const key = await vault.create(inboxId)
        const beating = await harness.open({ heartbeatEveryMs: 20 })
        const { partitions } = await harness.stores.log.topology('inbox-keys')
        for (const { partition } of partitions) {
          const inPartition = mintIdIn(partition)
          const beats = await until(`beats in partition ${partition}`, async () => {
            const records = await harness.recordsInPartitionOf(inPartition)
            const keys = records.map((record) => record.key).filter((each) => each.startsWith('heartbeat-'))
            return keys.length > 1 ? keys : null
          })
          expect(new Set(beats).size).toBe(1)
        }
        await harness.flushView()
        forgetCached()
        expect(await beating.find(inboxId)).toEqual(known(key))
      })
    })

    function mintIdIn(partition: number): InboxId {
      for (;;) {
        const id = mintId('inb')
        if (harness.partitionOf(id) === partition) return id
      }
    }
  })
}
