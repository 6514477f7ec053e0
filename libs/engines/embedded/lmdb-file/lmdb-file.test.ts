import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeLmdbFile, commit, openLmdbFile } from './lmdb-file.js'

describe('an LMDB file', () => {
  it('rolls back a transaction that throws, and keeps those before and after it', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-lmdb-'))
    const root = openLmdbFile<string, string>({ path: join(dir, 'file.mdb'), syncMode: 'before-visible' })
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

  it('is closed even if it has been removed', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-lmdb-'))
    const root = openLmdbFile<string, string>({ path: join(dir, 'file.mdb'), syncMode: 'before-visible' })
    await rm(dir, { recursive: true })
    await expect(closeLmdbFile(root)).resolves.toBeUndefined()
  })

  const linux = process.platform === 'linux' ? it : it.skip
  linux('is mapped only once while it grows, so that its pages are resident once', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-lmdb-'))
    const path = join(dir, 'file.mdb')
    const root = openLmdbFile<Buffer, number>({ path, syncMode: 'after-visible' })
    const mappings = async () =>
      (await readFile('/proc/self/maps', 'utf8')).split('\n').filter((line) => line.endsWith(path))
    const value = Buffer.alloc(2 ** 20, 1)
    for (let key = 0; key < 100; key += 1) await commit(root, () => root.putSync(key, value))
    expect(await mappings()).toHaveLength(1)
    await closeLmdbFile(root)
    await rm(dir, { recursive: true })
  })
})
