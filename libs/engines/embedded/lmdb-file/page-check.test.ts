import { open as openFile, copyFile, mkdtemp, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { closeLmdbFile, commit, conditionOf, openLmdbFile } from './lmdb-file.js'
import { checkPages, DamagedFileError } from './page-check.js'

const PAGE_BYTES = 4096

describe('the check of the pages of an LMDB file', () => {
  let folder: string
  let path: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-pages-'))
    path = join(folder, 'file.mdb')
  })
  afterEach(() => rm(folder, { recursive: true }))

  /** Fills named databases with values of all sizes, and removes some. Copies the open file after each round. */
  async function fill(syncMode: 'before-visible' | 'after-visible', rounds = 4): Promise<string[]> {
    const root = openLmdbFile<Buffer, string>({ path, syncMode, maxDbs: 4 })
    const names = ['rows', 'other']
    const databases = names.map((name) => root.openDB<Buffer, string>({ name, encoding: 'binary' }))
    const copies: string[] = []
    for (let round = 0; round < rounds; round += 1) {
      await commit(root, () => {
        for (const database of databases) {
          for (let key = 0; key < 300; key += 1) {
            if ((key + round) % 3 === 0) database.removeSync(`key ${key}`)
            else database.putSync(`key ${key}`, Buffer.alloc((key * 37 * (round + 1)) % 9_000, round))
          }
        }
      })
      const copy = join(folder, `${round}.mdb`)
      await copyFile(path, copy)
      copies.push(copy)
    }
    await closeLmdbFile(root)
    return copies
  }

  it.each(['before-visible', 'after-visible'] as const)('passes files that are whole (%s)', async (mode) => {
    for (const copy of [...(await fill(mode)), path, join(folder, 'missing.mdb')]) checkPages(copy)
  })

  it('finds a file that ends before the end of its trees', async () => {
    await fill('before-visible')
    await truncate(path, 5 * PAGE_BYTES)
    expect(() => checkPages(path)).toThrow(/file\.mdb is damaged: page \d+ is not among its 5 pages/)
  })

  it('finds a named database that became a value', async () => {
    await fill('before-visible')
    const file = await openFile(path, 'r+')
    const bytes = await file.readFile()
    // The flags of a node are two bytes, before the two bytes of its key's length.
    for (
      let at = bytes.indexOf('\x02\x00\x05\x00rows\0');
      at >= 0;
      at = bytes.indexOf('\x02\x00\x05\x00rows\0', at + 1)
    ) {
      await file.write(Buffer.from([0]), 0, 1, at)
    }
    await file.close()
    expect(() => checkPages(path)).toThrow(/is damaged: an entry is not a named database/)
  })

  it('finds damage to any page that would crash the process, or reads everything', async () => {
    await fill('before-visible')
    const damage = fc.array(
      fc.record({ at: fc.double({ min: 0, max: 0.999_999, noNaN: true }), bit: fc.nat(7) }),
      {
        minLength: 1,
        maxLength: 20,
      },
    )
    let found = 0
    await fc.assert(
      fc.asyncProperty(damage, fc.boolean(), async (places, isZeroed) => {
        const copy = join(folder, `${Math.random()}.mdb`)
        await copyFile(path, copy)
        const file = await openFile(copy, 'r+')
        const { size } = await file.stat()
        for (const { at, bit } of places) {
          const offset = Math.floor(at * size)
          if (isZeroed)
            await file.write(Buffer.alloc(PAGE_BYTES), 0, PAGE_BYTES, offset - (offset % PAGE_BYTES))
          else {
            const { buffer } = await file.read(Buffer.alloc(1), 0, 1, offset)
            await file.write(Buffer.from([(buffer[0] ?? 0) ^ (1 << bit)]), 0, 1, offset)
          }
        }
        await file.close()
        try {
          checkPages(copy)
        } catch (error) {
          expect(error).toBeInstanceOf(DamagedFileError)
          found += 1
          return
        }
        const root = openLmdbFile<Buffer, string>({ path: copy, syncMode: 'before-visible', maxDbs: 4 })
        for (const name of ['rows', 'other']) {
          const database = root.openDB<Buffer, string>({ name, encoding: 'binary' })
          for (const { value } of database.getRange({})) expect(value.length).toBeLessThan(9_000)
        }
        await root.close()
      }),
      { numRuns: 100 },
    )
    expect(found).toBeGreaterThan(0)
  })

  it('is left out for a file that is as it was when it was closed', async () => {
    const [copy = ''] = await fill('before-visible')
    expect(conditionOf(path)).toBe('closed')
    expect(conditionOf(copy)).toBe('not-closed')
    await truncate(path, 5 * PAGE_BYTES)
    expect(conditionOf(path)).toBe('changed')
    const open = (isDerived: boolean) => openLmdbFile({ path, syncMode: 'before-visible', isDerived })
    expect(() => open(false)).toThrow(/is damaged: page/)
    expect(() => open(true)).toThrow(/changed since Mayfly closed it/)
  })
})
