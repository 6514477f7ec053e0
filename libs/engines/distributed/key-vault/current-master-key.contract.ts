import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { MASTER_KEY_SUBJECT } from '#libs/ports/event-log/cloud-event.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { masterKeys, type VaultHarness } from './logged-key-vault-harness.contract.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { MasterKeyMissingError } from '#libs/ports/key-vault/master-key.js'

export function describeCurrentMasterKey(current: () => VaultHarness & { vault: KeyVault }): void {
  let inboxId: InboxId

  beforeEach(() => {
    inboxId = mintId('inb')
  })

  it('that was current last must be configured', async () => {
    const harness = current()
    const key = await harness.vault.create(inboxId)
    await harness.vault.close()
    const fresh = makeSecretKey().toString('base64')
    const without = harness.open({ masterKeys: masterKeys(fresh) })
    await expect(without).rejects.toThrow(MasterKeyMissingError)
    await harness.flushView()
    const rotated = await harness.open({ masterKeys: masterKeys(`${fresh},${harness.masterText}`) })
    expect(await rotated.find(inboxId)).toEqual({ state: 'known', key })
    await expect(harness.open()).rejects.toThrow(MasterKeyMissingError)
    expect(await harness.lastEventOf(MASTER_KEY_SUBJECT)).toEqual({
      type: 'MasterKeyTaken',
      masterKeyId: masterKeys(fresh).current,
    })
  })

  it('that another process took first at the same time wins', async () => {
    const harness = current()
    const [mine, theirs] = [1, 2].map(() => makeSecretKey().toString('base64'))
    const open = () => harness.open({ masterKeys: masterKeys(`${mine ?? ''},${harness.masterText}`) })
    const taken = { type: 'MasterKeyTaken', masterKeyId: masterKeys(theirs ?? '').current } as const
    harness.faultyLog.beforeAppend = async () => {
      await harness.append(taken)
    }
    await expect(open()).rejects.toThrow(MasterKeyMissingError)
    expect(await harness.lastEventOf(MASTER_KEY_SUBJECT)).toEqual(taken)
    await expect(open()).rejects.toThrow(MasterKeyMissingError)
  })

  it('that was taken before another process took one at the same time stays current', async () => {
    const harness = current()
    const [mine, theirs] = [1, 2].map(() => makeSecretKey().toString('base64'))
    const taken = { type: 'MasterKeyTaken', masterKeyId: masterKeys(theirs ?? '').current } as const
    harness.faultyLog.onDurable = async () => {
      await harness.append(taken)
    }
    const first = await harness.open({ masterKeys: masterKeys(`${mine ?? ''},${harness.masterText}`) })
    await expect(first.create(inboxId)).resolves.toBeDefined()
  })
}
