import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintId } from '#libs/domain/ids/mint.js'
import { describeKeyVault } from '#libs/ports/key-vault/key-vault.contract.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { openLmdbKeyVault } from './lmdb-key-vault.js'

const masterText = makeSecretKey().toString('base64')

function masterKeys(text = masterText): MasterKeys {
  const keys = MasterKeys.parse(text)
  if (keys === null) throw new Error('the test has no master key')
  return keys
}

async function makeVault() {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-vault-'))
  const path = join(dir, 'keys.mdb')
  const open = (text?: string) =>
    openLmdbKeyVault({
      path,
      masterKeys: masterKeys(text),
      now: () => new Date(),
      onRewriteError: (error) => {
        throw error
      },
    })
  const harness = {
    path,
    vault: await open(),
    async reopen(text?: string) {
      await harness.vault.close()
      harness.vault = await open(text)
      return harness.vault
    },
    async close() {
      await harness.vault.close()
      await rm(dir, { recursive: true })
    },
  }
  return harness
}

describeKeyVault('LMDB', makeVault)

describe('LMDB key vault', () => {
  it('has no bytes of a forgotten key in its file after a rewrite, and keeps the other keys', async () => {
    const harness = await makeVault()
    const ids = Array.from({ length: 50 }, () => mintId('inb'))
    await Promise.all(ids.map((id) => harness.vault.create(id)))
    const before = await readFile(harness.path)
    const forgotten = ids.slice(0, 25)
    const wrapped = forgotten.map((id) => wrappedIn(before, id))
    await harness.vault.forget(forgotten)
    await Promise.all([harness.vault.rewrite(), harness.vault.create(mintId('inb'))])
    const after = await readFile(harness.path)
    for (const bytes of wrapped) {
      expect(before.includes(bytes)).toBe(true)
      expect(after.includes(bytes)).toBe(false)
    }
    for (const id of ids) {
      const { state } = await harness.vault.find(id)
      expect(state).toBe(forgotten.includes(id) ? 'forgotten' : 'known')
    }
    const late = mintId('inb')
    const key = await harness.vault.create(late)
    const vault = await harness.reopen()
    expect(await vault.find(late)).toEqual({ state: 'known', key })
    await harness.close()
  })

  it('decrypts keys with a retired master key, and rejects if it is missing', async () => {
    const harness = await makeVault()
    const inboxId = mintId('inb')
    const key = await harness.vault.create(inboxId)
    const fresh = makeSecretKey().toString('base64')
    const rotated = await harness.reopen(`${fresh},${masterText}`)
    expect(await rotated.find(inboxId)).toEqual({ state: 'known', key })
    const lost = await harness.reopen(fresh)
    await expect(lost.find(inboxId)).rejects.toThrow(/not configured/)
    await harness.close()
  })
})

/** The wrapped key of an inbox in the bytes of the file. It follows the inbox id and the names of its fields. */
function wrappedIn(file: Buffer, inboxId: string): Buffer {
  const at = file.lastIndexOf(inboxId)
  if (at < 0) throw new Error(`${inboxId} is not in the file`)
  const start = at + inboxId.length + 60
  return file.subarray(start, start + 24)
}
