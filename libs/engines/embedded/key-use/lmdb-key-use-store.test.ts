import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { describeKeyUse } from '#libs/ports/key-use/key-use.contract.js'
import { openLmdbKeyUse } from './lmdb-key-use-store.js'

describeKeyUse('LMDB', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-key-use-'))
  const store = openLmdbKeyUse(join(folder, 'key-use.mdb'))
  return {
    store,
    // Only one process uses the folder.
    other: store,
    async close() {
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
})

describe('key use in LMDB', () => {
  it('is kept over a restart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-key-use-'))
    const path = join(folder, 'key-use.mdb')
    const keyId = idFromBytes('key', Buffer.alloc(16, 1))
    const before = openLmdbKeyUse(path)
    await before.put(new Map([[keyId, new Date(5)]]))
    await before.close()
    const after = openLmdbKeyUse(path)
    expect(await after.get([keyId])).toEqual(new Map([[keyId, new Date(5)]]))
    await after.close()
    await rm(folder, { recursive: true })
  })
})
