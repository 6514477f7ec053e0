import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readLeaf, writeLeaf, type Leaf } from '#libs/domain/audit/leaf.js'
import { openCheckpoint, type OpenedCheckpoint } from '#libs/domain/audit/checkpoint.js'
import { readEntries, tilePath } from '#libs/domain/audit/tiles.js'
import {
  append,
  EMPTY_TREE,
  hashOfLeaf,
  rootOf,
  TILE_HEIGHT,
  TILE_WIDTH,
  type Tree,
} from '#libs/domain/audit/tree.js'
import { messageOf } from '#libs/runtime/errors.js'
import { recordsRange } from './export-files.js'

export interface Verification {
  /** Of the last checkpoint; null if it is not genuine. */
  size: number | null
  /** When the log has signed it. */
  signed_at: string | null
  /** The checkpoints that are genuine and fit the leaves. */
  checkpoints: number
  /** The records that fit their leaves. */
  records: number
  /** The leaves without a record in the export. */
  without_record: number
  /** What does not fit: the file or the leaf, and why. The first of them. */
  problems: string[]
  problem_count: number
}

const MAX_PROBLEMS = 20

/**
 * Verifies an export without a network: the signatures of its checkpoints, its leaves against each checkpoint, its tiles
 * against the leaves, the order of the leaves of each partition, and each record against its leaf. A checkpoint
 * is genuine if one of the keys has signed it. Keys are verifier keys.
 */
export async function verifyExport(folder: string, publicKeys: readonly string[]): Promise<Verification> {
  const problems: string[] = []
  let problemCount = 0
  const report = (what: string, why: string) => {
    problemCount += 1
    if (problems.length < MAX_PROBLEMS) problems.push(`${what}: ${why}`)
  }
  const files = new ExportFiles(folder)
  const last = await files.checkpoint('checkpoint', publicKeys, report)
  const earlier: OpenedCheckpoint[] = []
  for (const name of await files.names('checkpoints')) {
    const opened = await files.checkpoint(`checkpoints/${name}`, publicKeys, report)
    if (opened !== null) earlier.push(opened)
  }
  const all = [...(last === null ? [] : [last]), ...earlier]
  const size = all.reduce((largest, each) => Math.max(largest, each.size), 0)
  if (last !== null && last.size < size) report('checkpoint', `an earlier one has ${size} leaves`)
  const records = new Records(files, report)
  const tree = new VerifiedTree(files, report)
  const order = new Map<string, number>()
  const fitting = new Set<OpenedCheckpoint>()
  const compare = () => {
    for (const checkpoint of all.filter(({ size: at }) => at === tree.size)) {
      if (tree.root() === checkpoint.root) fitting.add(checkpoint)
      else report(`checkpoint of ${checkpoint.size} leaves`, 'the leaves have another root')
    }
  }
  compare()
  for await (const text of leavesOf(files, size, report)) {
    const index = tree.size
    const leaf = parsed(text)
    if (leaf === null) report(`leaf ${index}`, 'it is not the canonical JSON of a leaf')
    await records.check(index, leaf)
    if (leaf !== null) {
      const partition = `${leaf.topic}/${leaf.partition}`
      if (leaf.offset <= (order.get(partition) ?? -1))
        report(`leaf ${index}`, `it is out of the order of ${partition}`)
      order.set(partition, leaf.offset)
    }
    await tree.add(text)
    compare()
  }
  await tree.end()
  await records.end(tree.size)
  return {
    size: last === null ? null : last.size,
    signed_at: last?.cosignedAt?.toISOString() ?? null,
    checkpoints: fitting.size,
    records: records.fitting,
    without_record: records.missing,
    problems,
    problem_count: problemCount,
  }
}

type Report = (what: string, why: string) => void

function parsed(text: string): Leaf | null {
  try {
    const leaf = readLeaf(text)
    return writeLeaf(leaf) === text ? leaf : null
  } catch {
    return null
  }
}

interface RecordsFile {
  from: number
  to: number
  name: string
}

class ExportFiles {
  constructor(readonly folder: string) {}

  /** Null if there is no such file. */
  async read(path: string): Promise<Buffer | null> {
    return readFile(join(this.folder, path)).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
      throw error
    })
  }

  /** The names of the files of a folder; none if it does not exist. */
  async names(path: string): Promise<string[]> {
    const names = await readdir(join(this.folder, path)).catch(() => [])
    return names.filter((name) => !name.endsWith('.partial'))
  }

  /** Null, and a report, if it is missing or not genuine. */
  async checkpoint(
    path: string,
    publicKeys: readonly string[],
    report: Report,
  ): Promise<OpenedCheckpoint | null> {
    const note = await this.read(path)
    let why = 'it is missing'
    for (const publicKey of note === null ? [] : publicKeys) {
      try {
        return openCheckpoint(note?.toString() ?? '', publicKey)
      } catch (error) {
        why = messageOf(error)
      }
    }
    report(path, why)
    return null
  }

  /** The files of records, by the index of their first leaf. */
  async recordsByStart(): Promise<Map<number, RecordsFile>> {
    const names = await this.names('records')
    return new Map(
      names.flatMap((name) => {
        const range = recordsRange(name)
        return range === null ? [] : [[range.from, { ...range, name }] as const]
      }),
    )
  }

  /** A tile or a bundle of entries, of at least `width` hashes or entries. */
  async tile(level: string, index: number, width: number): Promise<{ path: string; bytes: Buffer } | null> {
    const path = `tile/${level}/${tilePath(index)}`
    for (const each of [path, `${path}.p/${width}`]) {
      const bytes = await this.read(each)
      if (bytes !== null) return { path: each, bytes }
    }
    return null
  }
}

/** The leaves of a log of that size, up to the first one that is missing. */
async function* leavesOf(files: ExportFiles, size: number, report: Report): AsyncGenerator<string> {
  for (let from = 0; from < size; from += TILE_WIDTH) {
    const width = Math.min(size - from, TILE_WIDTH)
    const index = from / TILE_WIDTH
    const bundle = await files.tile('entries', index, width)
    const entries = bundle === null ? null : readEntries(bundle.bytes)
    if (entries === null || entries.length < width) {
      const why = bundle === null ? 'it is missing' : 'it is cut'
      report(
        bundle?.path ?? `tile/entries/${tilePath(index)}`,
        `${why}: leaves from ${from} on are not verified`,
      )
      return
    }
    yield* entries.slice(0, width)
  }
}

/** Adds leaves to a tree, and compares the tiles of its hashes. */
class VerifiedTree {
  private tree: Tree = EMPTY_TREE
  /** For each level, the hashes of its last tile so far. */
  private readonly levels: Buffer[][] = []

  constructor(
    private readonly files: ExportFiles,
    private readonly report: Report,
  ) {}

  get size(): number {
    return this.tree.size
  }

  root(): string {
    return rootOf(this.tree).toString('base64')
  }

  async add(leaf: string): Promise<void> {
    const { tree, completed } = append(this.tree, leaf)
    this.tree = tree
    await this.addHash(0, tree.size - 1, hashOfLeaf(leaf))
    for (const { height, index, hash } of completed) {
      if (height % TILE_HEIGHT === 0)
        await this.addHash(height / TILE_HEIGHT, index, Buffer.from(hash, 'base64'))
    }
  }

  /** Compares the tiles that are not full. */
  async end(): Promise<void> {
    for (const [level, hashes] of this.levels.entries()) {
      const count = Math.floor(this.size / TILE_WIDTH ** level)
      if (hashes.length > 0) await this.compare(level, Math.floor(count / TILE_WIDTH), hashes)
    }
  }

  private async addHash(level: number, index: number, hash: Buffer): Promise<void> {
    const hashes = (this.levels[level] ??= [])
    hashes.push(hash)
    if (hashes.length < TILE_WIDTH) return
    this.levels[level] = []
    await this.compare(level, Math.floor(index / TILE_WIDTH), hashes)
  }

  private async compare(level: number, index: number, hashes: readonly Buffer[]): Promise<void> {
    const tile = await this.files.tile(String(level), index, hashes.length)
    const expected = Buffer.concat(hashes)
    if (tile === null) this.report(`tile/${level}/${tilePath(index)}`, 'it is missing')
    else if (!tile.bytes.subarray(0, expected.length).equals(expected)) {
      this.report(tile.path, 'it does not fit the leaves')
    }
  }
}

/** The digests of the exported records, read file by file while the leaves are. */
class Records {
  fitting = 0
  missing = 0
  private ranges: Map<number, RecordsFile> | null = null
  private digests: Digests | null = null

  constructor(
    private readonly files: ExportFiles,
    private readonly report: Report,
  ) {}

  /** Must be called for each leaf in turn; with null for one that can't be read. */
  async check(index: number, leaf: Leaf | null): Promise<void> {
    this.ranges ??= await this.files.recordsByStart()
    const range = this.ranges.get(index)
    if (range !== undefined) {
      this.ranges.delete(index)
      await this.close()
      this.digests = new Digests(join(this.files.folder, 'records', range.name), range)
    }
    const digest = (await this.digests?.next()) ?? null
    if (digest === null) this.missing += 1
    else if (leaf === null || digest === leaf.recordSha256) this.fitting += leaf === null ? 0 : 1
    else this.report(`record of leaf ${index}`, 'it is not the one that was logged')
  }

  /** Reports what the files have beside the records of the leaves. */
  async end(size: number): Promise<void> {
    await this.close()
    for (const { name } of this.ranges?.values() ?? [])
      this.report(`records/${name}`, `it is not of the first ${size} leaves`)
  }

  private async close(): Promise<void> {
    const surplus = (await this.digests?.close()) ?? null
    if (surplus !== null) this.report(`records/${surplus.name}`, surplus.why)
    this.digests = null
  }
}

/** The SHA-256 of each line of a file of records. Lines may be longer than memory should hold. */
class Digests {
  private readonly lines: AsyncGenerator<string | null>
  private left: number

  constructor(
    path: string,
    private readonly range: RecordsFile,
  ) {
    this.lines = digestsOf(path)
    this.left = range.to - range.from
  }

  /** Null for an empty line, and after the end. */
  async next(): Promise<string | null> {
    if (this.left === 0) return null
    this.left -= 1
    const line = await this.lines.next()
    return line.done === true ? null : line.value
  }

  /** Resolves with what is wrong with the number of lines; null if it is right. */
  async close(): Promise<{ name: string; why: string } | null> {
    const more = this.left > 0 ? null : await this.lines.next()
    await this.lines.return(null)
    const { name } = this.range
    return more?.done === false ? { name, why: 'it has more lines than leaves' } : null
  }
}

async function* digestsOf(path: string): AsyncGenerator<string | null> {
  let hash = createHash('sha256')
  let isEmpty = true
  for await (const piece of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, from)) {
      if (end > from) isEmpty = false
      hash.update(piece.subarray(from, end))
      yield isEmpty ? null : hash.digest('hex')
      hash = createHash('sha256')
      isEmpty = true
      from = end + 1
    }
    if (from < piece.length) isEmpty = false
    hash.update(piece.subarray(from))
  }
  if (!isEmpty) yield hash.digest('hex')
}
