import { mintId } from '#libs/domain/ids/mint.js'
import { seal, unseal } from './sealing.js'
import { KeyForgottenError, type KeyVault } from './key-vault.js'

export interface KeyVaultHarness {
  vault: KeyVault
  /** Closes the vault and opens it again with its stored data. */
  reopen(): Promise<KeyVault>
  close(): Promise<void>
}

export function describeKeyVault(name: string, make: () => Promise<KeyVaultHarness>): void {
  describe(`${name} as a key vault`, () => {
    let harness: KeyVaultHarness

    beforeEach(async () => {
      harness = await make()
    })
    afterEach(() => harness.close())

    it('creates keys that can be found and forgotten, also after a restart', async () => {
      const owners = [mintId('inb'), mintId('acc'), mintId('mem')]
      const keys = await Promise.all(owners.map((owner) => harness.vault.create(owner)))
      const vault = await harness.reopen()
      const lookups = () => Promise.all(owners.map((owner) => vault.find(owner)))
      expect(await lookups()).toEqual(keys.map((key) => ({ state: 'known', key })))
      await vault.forget(owners)
      expect(await lookups()).toEqual(owners.map(() => ({ state: 'forgotten' })))
    })

    it('returns the existing key of an inbox, also after a restart', async () => {
      const inboxId = mintId('inb')
      const key = await harness.vault.create(inboxId)
      expect(await harness.vault.create(inboxId)).toEqual(key)
      const vault = await harness.reopen()
      expect(await vault.create(inboxId)).toEqual(key)
      expect(await vault.find(inboxId)).toEqual({ state: 'known', key })
    })

    it('creates different keys for different inboxes, and one for concurrent calls', async () => {
      const [one, other] = [mintId('inb'), mintId('inb')]
      const [first, again, second] = await Promise.all([
        harness.vault.create(one),
        harness.vault.create(one),
        harness.vault.create(other),
      ])
      expect(again).toEqual(first)
      expect(second).not.toEqual(first)
    })

    it('distinguishes unknown and forgotten keys', async () => {
      const [unknown, forgotten] = [mintId('inb'), mintId('inb')]
      await harness.vault.create(forgotten)
      await harness.vault.forget([forgotten])
      expect(await harness.vault.find(unknown)).toEqual({ state: 'unknown' })
      expect(await harness.vault.find(forgotten)).toEqual({ state: 'forgotten' })
    })

    it('forgets permanently: known and unknown keys, repeatedly, and after a restart', async () => {
      const [known, unknown] = [mintId('inb'), mintId('inb')]
      const key = await harness.vault.create(known)
      const sealed = seal(key, 'test', Buffer.from('secret'))
      expect(unseal(key, 'test', sealed).toString()).toBe('secret')
      await harness.vault.forget([known, unknown])
      await harness.vault.forget([known])
      const vault = await harness.reopen()
      expect(await vault.find(known)).toEqual({ state: 'forgotten' })
      expect(await vault.find(unknown)).toEqual({ state: 'forgotten' })
      await expect(vault.create(known)).rejects.toThrow(KeyForgottenError)
    })
  })
}
