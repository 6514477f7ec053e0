import { mintId } from '#libs/domain/ids/mint.js'
import { KeyForgottenError, type KeyVault } from './key-vault.js'
import { seal, unseal } from './content.js'

export interface KeyVaultHarness {
  vault: KeyVault
  /** Closes the vault and opens it again on what it stored. */
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

    it('makes a key that is found again, also after a restart', async () => {
      const inboxId = mintId('inb')
      const key = await harness.vault.create(inboxId)
      const vault = await harness.reopen()
      expect(await vault.find(inboxId)).toEqual({ state: 'known', key })
    })

    it('gives the same key where an inbox is made again, also after a restart', async () => {
      const inboxId = mintId('inb')
      const key = await harness.vault.create(inboxId)
      expect(await harness.vault.create(inboxId)).toEqual(key)
      const vault = await harness.reopen()
      expect(await vault.create(inboxId)).toEqual(key)
      expect(await vault.find(inboxId)).toEqual({ state: 'known', key })
    })

    it('gives every inbox another key, and one inbox the same', async () => {
      const [one, other] = [mintId('inb'), mintId('inb')]
      const [first, again, second] = await Promise.all([
        harness.vault.create(one),
        harness.vault.create(one),
        harness.vault.create(other),
      ])
      expect(again).toEqual(first)
      expect(second).not.toEqual(first)
    })

    it('tells an unknown key from a forgotten one', async () => {
      const [unknown, forgotten] = [mintId('inb'), mintId('inb')]
      await harness.vault.create(forgotten)
      await harness.vault.forget([forgotten])
      expect(await harness.vault.find(unknown)).toEqual({ state: 'unknown' })
      expect(await harness.vault.find(forgotten)).toEqual({ state: 'forgotten' })
    })

    it('forgets for good: also what it never knew, twice, and after a restart', async () => {
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
