import { createHash, hash, type Hash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { openWithAny, readVerifierKey, type OpenedCheckpoint } from '#libs/domain/audit/checkpoint.js'
import { parseLeaf, type Leaf } from '#libs/domain/audit/leaf.js'
import { tileFile } from '#libs/domain/audit/tiles.js'
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
import {
  CHECKPOINT_FILE,
  CHECKPOINTS,
  ExportFiles,
  knownRecords,
  leavesOf,
  MAX_NOTE_BYTES,
  READ_FLAGS,
  RECORDS,
  type RecordsFile,
  type Report,
} from './export-files.js'

export interface Verification {
  /** Of the export's checkpoint; null if it is not genuine. */
  size: number | null
  /** When the log has signed it. */
  signed_at: string | null
  /** How many checkpoints are genuine and match the leaves. */
  checkpoints: number
  /** How many records match their leaves. */
  records: number
  /** How many leaves have no record, because the event log no longer had it. */
  without_record: number
  /** The first problems: each names the file, the leaf or the record that is wrong. */
  problems: string[]
  problem_count: number
}

interface VerifyOptions {
  /** Verifier keys. A checkpoint is genuine if one of them has signed it. */
  publicKeys: readonly string[]
  /** Files with checkpoints that were kept elsewhere. */
  keptCheckpoints: readonly string[]
}

const MAX_PROBLEMS = 20
const MAX_TILE_BYTES = TILE_WIDTH * 32

/**
 * Verifies an export without a network: the signatures of its checkpoints, its leaves against each checkpoint, its tiles
 * against the leaves, the order of the leaves of each partition, and each record against its leaf. Throws CheckpointError
 * for what is not a verifier key.
 */
export async function verifyExport(
  folder: string,
  { publicKeys, keptCheckpoints }: VerifyOptions,
): Promise<Verification> {
  publicKeys.forEach(readVerifierKey)
  const problems: string[] = []
  let problemCount = 0
  const report = (what: string, why: string) => {
    problemCount += 1
    if (problems.length < MAX_PROBLEMS) problems.push(`${what}: ${why}`)
  }
  const files = new ExportFiles(folder, report)
  const last = await readCheckpoint(files, CHECKPOINT_FILE, publicKeys)
  const size = last?.size ?? 0
  const earlier = (await files.names(CHECKPOINTS)).map((name) => `${CHECKPOINTS}/${name}`)
  const others = [
    ...(await readCheckpoints(files, earlier, publicKeys)),
    ...(await readCheckpoints(new ExportFiles('', report), keptCheckpoints, publicKeys)),
  ]
  for (const [path, { size: larger }] of others.filter(([, each]) => each.size > size)) {
    report(CHECKPOINT_FILE, `it has fewer leaves than ${path} with ${larger}`)
  }
  const bySize = Map.groupBy(
    [...(last === null ? [] : [last]), ...others.map(([, each]) => each)],
    (each) => each.size,
  )
  let matching = 0
  const compareRoots = () => {
    const checkpoints = bySize.get(tree.size) ?? []
    const root = checkpoints.length === 0 ? '' : tree.root()
    const genuine = checkpoints.filter((each) => each.root === root)
    if (genuine.length > 0) matching += 1
    if (genuine.length < checkpoints.length) {
      report(`checkpoint of ${tree.size} leaves`, 'its root is not that of the leaves')
    }
  }

  const tree = new VerifiedTree(files, size)
  const records = new Records(files, report)
  const order = new Map<string, number>()
  compareRoots()
  for await (const bytes of leavesOf(files, size)) {
    const index = tree.size
    const leaf = parseLeaf(bytes)
    if (leaf === null) report(`leaf ${index}`, 'it is not a leaf in canonical JSON')
    else {
      const partition = `${leaf.topic}/${leaf.partition}`
      if (leaf.offset <= (order.get(partition) ?? -1))
        report(`leaf ${index}`, `it is not in the order of ${partition}`)
      order.set(partition, leaf.offset)
    }
    await records.compare(index, leaf)
    await tree.add(bytes)
    compareRoots()
  }
  return {
    size: last === null ? null : size,
    signed_at: last?.cosignedAt.toISOString() ?? null,
    checkpoints: matching,
    records: records.matching,
    without_record: records.missing,
    problems,
    problem_count: problemCount,
  }
}

/** Null if it is missing or not genuine, which is reported. */
async function readCheckpoint(
  files: ExportFiles,
  path: string,
  publicKeys: readonly string[],
): Promise<OpenedCheckpoint | null> {
  const note = await files.read(path, MAX_NOTE_BYTES)
  try {
    return note === null ? null : openWithAny(note.toString(), publicKeys)
  } catch (error) {
    files.report(path, messageOf(error))
    return null
  }
}

async function readCheckpoints(
  files: ExportFiles,
  paths: readonly string[],
  publicKeys: readonly string[],
): Promise<(readonly [string, OpenedCheckpoint])[]> {
  const opened: (readonly [string, OpenedCheckpoint])[] = []
  for (const path of paths) {
    const checkpoint = await readCheckpoint(files, path, publicKeys)
    if (checkpoint !== null) opened.push([path, checkpoint])
  }
  return opened
}

/** Adds leaves to a tree, and compares the tiles of its hashes. */
class VerifiedTree {
  private tree: Tree = EMPTY_TREE
  /** For each level, the hashes of its last tile so far. */
  private readonly levels: Buffer[][] = []

  /** `finalSize` is that of the log. */
  constructor(
    private readonly files: ExportFiles,
    private readonly finalSize: number,
  ) {}

  get size(): number {
    return this.tree.size
  }

  root(): string {
    return rootOf(this.tree).toString('base64')
  }

  async add(leaf: Buffer): Promise<void> {
    const leafHash = hashOfLeaf(leaf)
    const { tree, completed } = append(this.tree, leafHash)
    this.tree = tree
    await this.addHash(0, leafHash)
    for (const { height, hash: text } of completed) {
      if (height % TILE_HEIGHT === 0) await this.addHash(height / TILE_HEIGHT, Buffer.from(text, 'base64'))
    }
    if (tree.size < this.finalSize) return
    for (const [level, hashes] of this.levels.entries()) {
      if (hashes.length > 0) await this.compare(level, hashes)
    }
  }

  private async addHash(level: number, hash: Buffer): Promise<void> {
    const hashes = (this.levels[level] ??= [])
    hashes.push(hash)
    if (hashes.length < TILE_WIDTH) return
    this.levels[level] = []
    await this.compare(level, hashes)
  }

  /** Compares the last tile of a level. */
  private async compare(level: number, hashes: readonly Buffer[]): Promise<void> {
    const count = Math.floor(this.size / TILE_WIDTH ** level)
    const path = tileFile(String(level), Math.floor((count - 1) / TILE_WIDTH), hashes.length)
    const tile = await this.files.read(path, MAX_TILE_BYTES)
    if (tile?.equals(Buffer.concat(hashes)) === false)
      this.files.report(path, 'its hashes are not those of the leaves')
  }
}

/** Compares the exported records with the leaves, file by file. */
class Records {
  matching = 0
  missing = 0
  private known: ReadonlyMap<number, RecordsFile> | null = null
  private current: { from: number; to: number; digests: (string | null)[] } = { from: 0, to: 0, digests: [] }

  constructor(
    private readonly files: ExportFiles,
    private readonly report: Report,
  ) {}

  /** Must be called for each leaf in turn; with null for one that can't be read. */
  async compare(index: number, leaf: Leaf | null): Promise<void> {
    this.known ??= knownRecords(await this.files.names(RECORDS))
    if (index === this.current.to) {
      const file = this.known.get(index)
      this.current =
        file === undefined
          ? { from: index, to: this.nextFrom(index), digests: [] }
          : { ...file, digests: await this.digestsOf(file) }
      if (file === undefined) this.report(RECORDS, `there are no records of the leaves from ${index}`)
    }
    const digest = this.current.digests[index - this.current.from]
    // The whole file is reported.
    if (digest === undefined) return
    if (digest === null) this.missing += 1
    else if (digest === leaf?.recordSha256) this.matching += 1
    else this.report(`record of leaf ${index}`, 'it is not the one that was logged')
  }

  private nextFrom(index: number): number {
    const later = [...(this.known?.keys() ?? [])].filter((from) => from > index)
    return later.reduce((first, from) => Math.min(first, from), Infinity)
  }

  /** The SHA-256 of each line of a file; null for an empty line. None if it is wrong. Lines may be long. */
  private async digestsOf({ path, from, to }: RecordsFile): Promise<(string | null)[]> {
    const digests: (string | null)[] = []
    // Of the beginning of a line whose end is in the next piece.
    let begun: Hash | null = null
    try {
      await using file = await open(join(this.files.folder, path), READ_FLAGS)
      if (!(await file.stat()).isFile()) throw new Error('it is not a file')
      for await (const piece of file.createReadStream() as AsyncIterable<Buffer>) {
        let start = 0
        for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, start)) {
          const line = piece.subarray(start, end)
          if (begun !== null) digests.push(begun.update(line).digest('hex'))
          else digests.push(line.length === 0 ? null : hash('sha256', line))
          begun = null
          start = end + 1
        }
        if (digests.length > to - from) break
        if (start < piece.length) begun = (begun ?? createHash('sha256')).update(piece.subarray(start))
      }
    } catch (error) {
      this.report(path, messageOf(error))
      return []
    }
    if (begun === null && digests.length === to - from) return digests
    this.report(path, `it does not have ${to - from} lines`)
    return []
  }
}
