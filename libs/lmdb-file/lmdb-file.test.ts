import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeLmdbFile, commit, openLmdbFile } from './lmdb-file.js'

describe('an LMDB file', () => {
  it('keeps nothing of a transaction that throws, and all of its neighbours', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-lmdb-'))
    const root = openLmdbFile<string, string>({ path: join(dir, 'file.mdb'), isSynced: 'before-seen' })
    const put = (key: string) => commit(root, () => root.putSync(key, 'value'))
    const broken = commit(root, () => {
      root.putSync('half', 'value')
      throw new Error('midway')
    })
    const outcomes = await Promise.allSettled([put('before'), broken, put('after')])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect([...root.getKeys({})]).toEqual(['after', 'before'])
    await closeLmdbFile(root)
    await rm(dir, { recursive: true })
  })
})
