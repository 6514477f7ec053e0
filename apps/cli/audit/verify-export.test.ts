import { hash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { signCheckpoint, signingKey, verifierKey } from '#libs/domain/audit/checkpoint.js'
import { writeLeaf, writeRecord, type Leaf } from '#libs/domain/audit/leaf.js'
import { writeEntries } from '#libs/domain/audit/tiles.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { leafHash, merkleTreeHash, tilePath as fileOfTile } from '#test/harness/transparency-log.js'
import { verifyExport, type Verification } from './verify-export.js'

const ORIGIN = 'mayfly.example.com/v1/audit/logs/log_01jd6b2k8nf3gq6r9t2w5y8z1c'
const KEY = signingKey(Buffer.alloc(32, 1))
const PUBLIC_KEY = verifierKey(ORIGIN, KEY)
const SIGNED_AT = new Date('2026-11-21T09:30:00.000Z')
const SIZE = 600
const EARLIER = 300

const record = (index: number) =>
  writeRecord({ key: 'inb_1', headers: { ce_id: `evt_${index}` }, value: Buffer.from(`value ${index}`) })

/** The leaf with that index, except for `facts`. */
function leafOf(index: number, facts: Partial<Leaf> = {}): string {
  const id = idFromBytes('evt', Buffer.alloc(16, index % 256))
  const about = { actor: null, environment: 'staging', subject: 'inb_1', type: 'mayfly.inbox.created' }
  const position = { topic: 'inbox-events', partition: index % 3, offset: index }
  return writeLeaf({
    id,
    time: SIGNED_AT,
    recordSha256: hash('sha256', record(index)),
    ...about,
    ...position,
    ...facts,
  })
}

function checkpointOf(leaves: readonly string[]): string {
  const root = merkleTreeHash(leaves.map(leafHash)).toString('base64')
  return signCheckpoint(ORIGIN, { size: leaves.length, root }, [KEY], SIGNED_AT)
}

/** Writes an export of a log with these leaves, with an earlier checkpoint. */
async function writeExport(folder: string, leaves: readonly string[]): Promise<void> {
  const write = async (path: string, content: string | Buffer) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  const inTiles = async (level: number | 'entries', parts: readonly (string | Buffer)[]) => {
    for (let tile = 0; tile * 256 < parts.length; tile += 1) {
      const some = parts.slice(tile * 256, (tile + 1) * 256)
      const bytes = level === 'entries' ? writeEntries(some as string[]) : Buffer.concat(some as Buffer[])
      await write(fileOfTile(level, tile, parts.length) ?? '', bytes)
    }
  }
  await inTiles('entries', leaves)
  const hashes = leaves.map(leafHash)
  await inTiles(0, hashes)
  await inTiles(
    1,
    [0, 256].map((from) => merkleTreeHash(hashes.slice(from, from + 256))),
  )
  for (const [from, to] of [
    [0, 256],
    [256, EARLIER],
    [EARLIER, 556],
    [556, SIZE],
  ] as const) {
    const lines = leaves.slice(from, to).map((_, at) => `${record(from + at)}\n`)
    await write(`records/${from}-${to}.ndjson`, lines.join(''))
  }
  await write(`checkpoints/${EARLIER}`, checkpointOf(leaves.slice(0, EARLIER)))
  await write('checkpoint', checkpointOf(leaves))
  await write('README.md', 'An export')
}

const LEAVES = Array.from({ length: SIZE }, (_, index) => leafOf(index))

describe('the verification of an export', () => {
  let original: string
  let copy: string

  beforeAll(async () => {
    original = await mkdtemp(join(tmpdir(), 'mayfly-export-'))
    await writeExport(original, LEAVES)
  })
  afterAll(() => rm(original, { recursive: true }))
  beforeEach(async () => {
    copy = await mkdtemp(join(tmpdir(), 'mayfly-altered-'))
  })
  afterEach(() => rm(copy, { recursive: true }))

  const verify = (folder: string, keptCheckpoints: readonly string[] = []): Promise<Verification> =>
    verifyExport(folder, { publicKeys: [PUBLIC_KEY], keptCheckpoints })

  const VERIFIED: Verification = {
    ...{ size: SIZE, signed_at: SIGNED_AT.toISOString(), checkpoints: 2, records: SIZE, without_record: 0 },
    ...{ problems: [], problem_count: 0 },
  }

  it('finds nothing wrong with a log and its records', async () => {
    expect(await verify(original)).toEqual(VERIFIED)
  })

  it('counts the records that the event log no longer had', async () => {
    await cp(original, copy, { recursive: true })
    const path = join(copy, 'records/0-256.ndjson')
    const lines = (await readFile(path, 'utf8')).split('\n')
    await writeFile(path, lines.fill('', 10, 20).join('\n'))
    expect(await verify(copy)).toEqual({ ...VERIFIED, records: SIZE - 10, without_record: 10 })
  })

  it('verifies a folder whose next export was interrupted', async () => {
    await cp(original, copy, { recursive: true })
    await writeFile(join(copy, 'tile/0/002.p/200'), 'later')
    await writeFile(join(copy, `records/${SIZE}-700.ndjson`), 'later\n')
    await writeFile(join(copy, 'tile/0/002.p/201.7.partial'), 'incomplete')
    // Begins where others have not ended.
    await writeFile(join(copy, 'records/100-256.ndjson'), '')
    expect(await verify(copy)).toEqual(VERIFIED)
  })

  it('compares a checkpoint that was kept elsewhere', async () => {
    const kept = join(copy, 'kept')
    await writeFile(kept, checkpointOf(LEAVES.slice(0, 10)))
    expect(await verify(original, [kept])).toEqual({ ...VERIFIED, checkpoints: 3 })
    await writeFile(kept, checkpointOf(LEAVES.toSpliced(3, 1, leafOf(3, { actor: 'key_1' }))))
    expect((await verify(original, [kept])).problems).toEqual([
      `checkpoint of ${SIZE} leaves: its root is not that of the leaves`,
    ])
    await writeFile(kept, checkpointOf([...LEAVES, leafOf(SIZE)]))
    expect((await verify(original, [kept])).problems[0]).toBe(
      `checkpoint: it has fewer leaves than ${kept} with ${SIZE + 1}`,
    )
  })

  it('refuses what is no public key of an audit log', async () => {
    for (const key of ['', 'x', `${PUBLIC_KEY}x`, PUBLIC_KEY.replace('+', '+0')]) {
      const verified = verifyExport(original, { publicKeys: [key], keptCheckpoints: [] })
      await expect(verified).rejects.toThrow('the public key is not one of an audit log')
    }
    const other = verifierKey(ORIGIN, signingKey(Buffer.alloc(32, 2)))
    const { problems } = await verifyExport(original, { publicKeys: [other], keptCheckpoints: [] })
    expect(problems).toEqual([
      'checkpoint: it has no signature of that key',
      `checkpoints/${EARLIER}: it has no signature of that key`,
    ])
  })

  /** Replaces leaves, so that all hashes are right but those of the genuine checkpoints. */
  const withLeaves = async (leaves: readonly string[]) => {
    await writeExport(copy, leaves)
    await cp(join(original, 'checkpoint'), join(copy, 'checkpoint'))
    await cp(join(original, 'checkpoints'), join(copy, 'checkpoints'), { recursive: true })
  }
  const move = async (from: string, to: string) => {
    await cp(join(original, from), join(copy, to))
  }
  const altered: { what: string; alter: () => Promise<unknown>; named: string[] }[] = [
    {
      what: 'another leaf, with all hashes computed again',
      alter: () => withLeaves(LEAVES.toSpliced(400, 1, leafOf(400, { actor: 'key_1' }))),
      named: [`checkpoint of ${SIZE} leaves: its root is not that of the leaves`],
    },
    {
      what: 'an early leaf, with all hashes computed again',
      alter: () => withLeaves(LEAVES.toSpliced(4, 1, leafOf(4, { actor: 'key_1' }))),
      named: [300, SIZE].map((size) => `checkpoint of ${size} leaves: its root is not that of the leaves`),
    },
    {
      what: 'leaves in another order, signed',
      alter: () => writeExport(copy, LEAVES.toSpliced(7, 1, leafOf(7, { offset: 1 }))),
      named: ['leaf 7: it is not in the order of inbox-events/1'],
    },
    {
      what: 'a leaf without an offset, signed',
      alter: () => writeExport(copy, LEAVES.toSpliced(7, 1, leafOf(7).replace('"offset":7,', ''))),
      named: [
        'leaf 7: it is not a leaf in canonical JSON',
        'record of leaf 7: it is not the one that was logged',
      ],
    },
    {
      what: 'entries of another log',
      alter: () => move('tile/entries/001', 'tile/entries/000'),
      named: ['record of leaf 0: it is not the one that was logged'],
    },
    {
      what: 'a missing bundle',
      alter: () => rm(join(copy, 'tile/entries/001')),
      named: [
        'tile/entries/001: it is missing',
        'tile/entries/001: it does not have the 256 leaves from 256: the rest is not read',
      ],
    },
    {
      what: 'an older checkpoint',
      alter: () => move(`checkpoints/${EARLIER}`, 'checkpoint'),
      named: ['tile/entries/001.p/44: it is missing'],
    },
    {
      what: 'a later checkpoint beside an older one',
      alter: async () => {
        await move(`checkpoints/${EARLIER}`, 'checkpoint')
        await move('checkpoint', 'checkpoints/600')
      },
      named: [`checkpoint: it has fewer leaves than checkpoints/600 with ${SIZE}`],
    },
    {
      what: 'no records',
      alter: () => rm(join(copy, 'records'), { recursive: true }),
      named: ['records: there are no records of the leaves from 0'],
    },
    {
      what: 'records of other leaves',
      alter: () => move('records/300-556.ndjson', 'records/0-256.ndjson'),
      named: ['record of leaf 0: it is not the one that was logged'],
    },
    {
      what: 'a folder instead of records',
      alter: async () => {
        await rm(join(copy, 'records/0-256.ndjson'))
        await mkdir(join(copy, 'records/0-256.ndjson'))
      },
      named: ['records/0-256.ndjson: it is not a file'],
    },
    {
      what: 'a huge checkpoint',
      alter: () => writeFile(join(copy, 'checkpoint'), Buffer.alloc(65_537)),
      named: ['checkpoint: it has more than 65536 bytes'],
    },
    {
      what: 'a checkpoint of another log',
      alter: async () => {
        const note = await readFile(join(copy, 'checkpoint'), 'utf8')
        await writeFile(join(copy, 'checkpoint'), note.replaceAll('mayfly.example.com', 'other.example.com'))
      },
      named: [`checkpoint: it is of the log ${ORIGIN.replace('mayfly', 'other')}`],
    },
  ]
  it.each(altered)('names $what', async ({ alter, named }) => {
    await cp(original, copy, { recursive: true })
    await alter()
    const { problems } = await verify(copy)
    expect(problems).toEqual(expect.arrayContaining(named))
  })

  it('finds any altered byte, cut, surplus or lost file', async () => {
    const files = (await readdir(original, { recursive: true, withFileTypes: true }))
      .filter((each) => each.isFile() && each.name !== 'README.md')
      .map(({ parentPath, name }) => join(parentPath, name).slice(original.length + 1))
    expect(files.length).toBeGreaterThan(12)
    const alteration = fc.record({
      file: fc.constantFrom(...files),
      kind: fc.constantFrom('flip', 'cut', 'add', 'remove'),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      bit: fc.integer({ min: 0, max: 7 }),
    })
    await cp(original, copy, { recursive: true })
    await fc.assert(
      fc.asyncProperty(alteration, async ({ file, kind, at, bit }) => {
        const path = join(copy, file)
        const bytes = await readFile(path)
        const offset = Math.floor(at * bytes.length)
        if (kind === 'remove') await rm(path)
        else if (kind === 'cut') await writeFile(path, bytes.subarray(0, offset))
        else if (kind === 'add') await writeFile(path, Buffer.concat([bytes, Buffer.from([offset % 256])]))
        else await writeFile(path, bytes.with(offset, (bytes[offset] ?? 0) ^ (1 << bit)))
        const found = await verify(copy)
        await writeFile(path, bytes)
        // An earlier checkpoint that is lost is not missed, and text after a signature is not signed.
        const isNote = file.startsWith('checkpoint')
        const withoutEarlier = { ...VERIFIED, checkpoints: 1 }
        if (isNote && found.problem_count === 0) expect([VERIFIED, withoutEarlier]).toContainEqual(found)
        else expect(found.problem_count).toBeGreaterThan(0)
      }),
      { numRuns: 150 },
    )
  })
})
