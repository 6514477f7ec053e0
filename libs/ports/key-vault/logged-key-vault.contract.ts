import { MASTER_KEY_SUBJECT } from '#libs/ports/event-log/cloud-event.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { until } from '#test/harness/until.js'
import { KeyVaultUnavailableError } from './key-vault.js'
import type { LoggedKeyVault } from './logged-key-vault.js'
import { masterKeys, type VaultHarness } from './logged-key-vault-harness.contract.js'
import { MasterKeyMissingError } from './master-key.js'
import { makeSecretKey, type SecretKey } from './content.js'
import type { InboxKeyWrapped } from '#libs/domain/inbox/key-events.js'

type Harness = VaultHarness & { vault: LoggedKeyVault }

/** A key that is not served from memory any more, as a process has it that did not ask of late. */
const PAST_THE_CACHE_MS = 2_000

export function describeLoggedKeyVault(name: string, make: () => Promise<Harness>): void {
  describe(`keys on ${name}`, () => {
    let harness: Harness
    let vault: LoggedKeyVault
    let inboxId: InboxId

    beforeEach(async () => {
      harness = await make()
      vault = harness.vault
      inboxId = mintId('inb')
    })
    afterEach(() => harness.close())

    const forgetCached = () => (harness.nowMs += PAST_THE_CACHE_MS)
    const known = (key: SecretKey) => ({ state: 'known', key })
    const wrappedOf = (id: InboxId, key = makeSecretKey()): InboxKeyWrapped => ({
      type: 'InboxKeyWrapped',
      inboxId: id,
      ...masterKeys(harness.masterText).wrap(id, key),
    })

    describe('a view', () => {
      it('that was flushed is built again', async () => {
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

      it('that was restored from an older copy brings no forgotten key back', async () => {
        await vault.create(inboxId)
        const partition = harness.partitionOf(inboxId)
        const restore = await harness.copyView()
        await vault.forget([inboxId])
        await until('the view to be past the record', async () => {
          const { standing } = await harness.view.find(partition, [])
          return standing !== null && standing.next >= (await harness.recordsBeside(inboxId)).length
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
        const { standing } = await harness.view.find(partition, [])
        await harness.view.begin(partition, { logId: 'another', next: 0 }, standing)
        const key = { masterKeyId: 'another', wrapped: Buffer.from('key') }
        await harness.view.take(partition, inboxId, key)
        const other = await harness.open()
        expect(await other.find(inboxId)).toEqual({ state: 'unknown' })
      })

      it('is caught up with the log though nobody asks', async () => {
        await vault.create(inboxId)
        const end = (await harness.recordsBeside(inboxId)).length
        const partition = harness.partitionOf(inboxId)
        await until('the view to stand at the end', async () => {
          const { standing } = await harness.view.find(partition, [])
          return standing !== null && standing.next >= end
        })
        expect(harness.errors).toEqual([])
      })
    })

    describe('two processes', () => {
      it('have the keys and the ends of each other', async () => {
        const other = await harness.open()
        const key = await vault.create(inboxId)
        expect(await other.find(inboxId)).toEqual(known(key))
        await vault.forget([inboxId])
        forgetCached()
        expect(await other.find(inboxId)).toEqual({ state: 'forgotten' })
      })

      it('that make a key for one inbox at once have the same, which the log keeps', async () => {
        const other = await harness.open()
        const [one, two] = await Promise.all([vault.create(inboxId), other.create(inboxId)])
        expect(two).toEqual(one)
        const third = await harness.open()
        await third.find(mintId('inb'))
        await until('the log to have the last word on it', async () => {
          const word = await harness.lastWordOn(inboxId)
          if (word?.type !== 'InboxKeyWrapped') return false
          return masterKeys(harness.masterText).unwrap(inboxId, word).equals(one)
        })
        await harness.flushView()
        forgetCached()
        expect(await third.find(inboxId)).toEqual(known(one))
      })
    })

    describe('a log', () => {
      it('that is away says nothing false, and is used again once it is back', async () => {
        const key = await vault.create(inboxId)
        harness.fickle.isAway = true
        const late = mintId('inb')
        await expect(vault.create(late)).rejects.toThrow(KeyVaultUnavailableError)
        await expect(vault.find(late)).rejects.toThrow(KeyVaultUnavailableError)
        await expect(vault.forget([inboxId])).rejects.toThrow(KeyVaultUnavailableError)
        await expect(harness.open()).rejects.toThrow(KeyVaultUnavailableError)
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
        harness.fickle.isAway = false
        expect(await vault.find(late)).toEqual({ state: 'unknown' })
        const made = await vault.create(late)
        forgetCached()
        expect(await vault.find(late)).toEqual(known(made))
      })

      it('that took a key and said it failed keeps one key, the one that was given out', async () => {
        harness.fickle.isSilent = true
        await expect(vault.create(inboxId)).rejects.toThrow(KeyVaultUnavailableError)
        harness.fickle.isSilent = false
        const key = await vault.create(inboxId)
        await harness.flushView()
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
        expect(await vault.create(inboxId)).toEqual(key)
      })

      it('on which a key comes late is told again which one is in use', async () => {
        const key = await vault.create(inboxId)
        const late = await harness.append(wrappedOf(inboxId))
        await vault.find(mintIdIn(harness.partitionOf(inboxId)))
        await until('the log to have the last word on it', async () => {
          const word = await harness.lastWordOn(inboxId)
          if (word?.type !== 'InboxKeyWrapped') return false
          return masterKeys(harness.masterText).unwrap(inboxId, word).equals(key)
        })
        expect((await harness.recordsBeside(inboxId)).at(-1)?.offset).toBeGreaterThan(late.offset)
        await harness.flushView()
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
      })

      it('on which a key comes late while one is made has the one that is given out', async () => {
        const other = await harness.open()
        harness.fickle.onDurable = async () => {
          await harness.append(wrappedOf(inboxId))
          await other.find(mintIdIn(harness.partitionOf(inboxId)))
        }
        const key = await vault.create(inboxId)
        const word = await harness.lastWordOn(inboxId)
        if (word?.type !== 'InboxKeyWrapped') throw new Error('the log has no key')
        expect(masterKeys(harness.masterText).unwrap(inboxId, word)).toEqual(key)
      })

      it('on which a key comes behind its end is told again that it is forgotten', async () => {
        await vault.create(inboxId)
        await vault.forget([inboxId])
        await harness.append(wrappedOf(inboxId))
        await until('the log to have the last word on it', async () => {
          const word = await harness.lastWordOn(inboxId)
          return word?.type === 'InboxKeyForgotten'
        })
        await harness.flushView()
        expect(await vault.find(inboxId)).toEqual({ state: 'forgotten' })
      })

      it('has keys that never came to the view, as a process leaves them that is killed in between', async () => {
        const key = makeSecretKey()
        await harness.append(wrappedOf(inboxId, key))
        expect(await vault.find(inboxId)).toEqual(known(key))
        const forgotten = mintId('inb')
        await vault.create(forgotten)
        await harness.append({ type: 'InboxKeyForgotten', inboxId: forgotten, forgottenAt: new Date() })
        await until('its end', async () => {
          forgetCached()
          return (await vault.find(forgotten)).state === 'forgotten'
        })
        await expect(vault.create(forgotten)).rejects.toThrow(/has been forgotten/)
      })

      it('from a newer version stops: keys are out of reach, not unknown', async () => {
        const key = await vault.create(inboxId)
        await vault.find(mintIdIn(harness.partitionOf(inboxId)))
        const record = (await harness.recordsBeside(inboxId)).find((candidate) => candidate.key === inboxId)
        if (record === undefined) throw new Error('the key is not on the log')
        const headers = { ...record.headers, ce_schemaversion: '2' }
        await harness.ground.log.append('inbox-keys', { ...record, headers })
        const late = mintIdIn(harness.partitionOf(inboxId))
        await expect(vault.find(late)).rejects.toThrow(/schema version 2.*deploy a newer one/)
        await expect(vault.find(late)).rejects.toThrow(KeyVaultUnavailableError)
        forgetCached()
        expect(await vault.find(inboxId)).toEqual(known(key))
      })

      it('with a record that is no event is read past it, and it is told of', async () => {
        const key = makeSecretKey()
        const value = Buffer.from('nothing of ours')
        await harness.ground.log.append('inbox-keys', { key: inboxId, headers: {}, value })
        await harness.append(wrappedOf(inboxId, key))
        expect(await vault.find(inboxId)).toEqual(known(key))
        expect(harness.errors.map(String)).toContainEqual(expect.stringMatching(/passed over.*unknown type/))
      })

      it('is not read again for each of many unknown keys', async () => {
        await vault.find(inboxId)
        const before = harness.fickle.looks
        const found = await Promise.all(Array.from({ length: 500 }, () => vault.find(mintId('inb'))))
        expect(new Set(found.map(({ state }) => state))).toEqual(new Set(['unknown']))
        expect(harness.fickle.looks - before).toBeLessThan(30)
      })

      it('takes the ends of hundreds of inboxes at once, and none twice', async () => {
        const ids = Array.from({ length: 300 }, () => mintId('inb'))
        await Promise.all(ids.slice(0, 20).map((id) => vault.create(id)))
        await vault.forget([...ids, ...ids])
        const count = async () => (await harness.recordsBeside(inboxId)).length
        const before = await count()
        await vault.forget(ids)
        expect(await count()).toBe(before)
        const found = await Promise.all(ids.map((id) => vault.find(id)))
        expect(new Set(found.map(({ state }) => state))).toEqual(new Set(['forgotten']))
      })
    })

    describe('a master key', () => {
      it('that served last must be configured', async () => {
        const key = await vault.create(inboxId)
        await vault.close()
        const fresh = makeSecretKey().toString('base64')
        const without = harness.open({ masterKeys: masterKeys(fresh) })
        await expect(without).rejects.toThrow(MasterKeyMissingError)
        await harness.flushView()
        const rotated = await harness.open({ masterKeys: masterKeys(`${fresh},${harness.masterText}`) })
        expect(await rotated.find(inboxId)).toEqual(known(key))
        await expect(harness.open()).rejects.toThrow(MasterKeyMissingError)
        expect(await harness.lastWordOn(MASTER_KEY_SUBJECT)).toEqual({
          type: 'MasterKeyTaken',
          masterKeyId: masterKeys(fresh).current,
        })
      })

      it('that another process took first, at the same moment, is the one that counts', async () => {
        const [mine, theirs] = [1, 2].map(() => makeSecretKey().toString('base64'))
        const open = () => harness.open({ masterKeys: masterKeys(`${mine ?? ''},${harness.masterText}`) })
        const taken = { type: 'MasterKeyTaken', masterKeyId: masterKeys(theirs ?? '').current } as const
        harness.fickle.beforeAppend = async () => {
          await harness.append(taken)
        }
        await expect(open()).rejects.toThrow(MasterKeyMissingError)
        expect(await harness.lastWordOn(MASTER_KEY_SUBJECT)).toEqual(taken)
        await expect(open()).rejects.toThrow(MasterKeyMissingError)
      })

      it('that was taken before another process did, at the same moment, goes on to count', async () => {
        const [mine, theirs] = [1, 2].map(() => makeSecretKey().toString('base64'))
        const taken = { type: 'MasterKeyTaken', masterKeyId: masterKeys(theirs ?? '').current } as const
        harness.fickle.onDurable = async () => {
          await harness.append(taken)
        }
        const first = await harness.open({ masterKeys: masterKeys(`${mine ?? ''},${harness.masterText}`) })
        await expect(first.create(inboxId)).resolves.toBeDefined()
      })
    })

    describe('heartbeats', () => {
      it('go to every partition, again and again under one key, and hide nothing', async () => {
        const key = await vault.create(inboxId)
        const beating = await harness.open({ heartbeatEveryMs: 20 })
        const { partitions } = await harness.ground.log.topology('inbox-keys')
        for (const { partition } of partitions) {
          const beside = mintIdIn(partition)
          const beats = await until(`beats in partition ${partition}`, async () => {
            const records = await harness.recordsBeside(beside)
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
