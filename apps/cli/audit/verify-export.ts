import { createHash, hash, type Hash } from 'node:crypto'
import { openWithAny, readVerifierKey, type OpenedCheckpoint } from '#libs/domain/audit/checkpoint.js'
import { parseLeaf, type Leaf } from '#libs/domain/audit/leaf.js'
import { tileFile } from '#libs/domain/audit/tiles.js'
import { fold, hashOfLeaf, join, subtreesOf, TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { messageOf } from '#libs/runtime/errors.js'
import {
  CHECKPOINT_FILE,
  CHECKPOINTS,
  ExportFiles,
  knownRecords,
  leavesOf,
  linesOf,
  MAX_NOTE_BYTES,
  RECORDS,
  type RecordsFile,
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
  const last = readCheckpoint(files, CHECKPOINT_FILE, publicKeys)
  const size = last?.size ?? 0
  const earlier = (await files.names(CHECKPOINTS)).map((name) => `${CHECKPOINTS}/${name}`)
  const others = [
    ...readCheckpoints(files, earlier, publicKeys),
    ...readCheckpoints(new ExportFiles('', report), keptCheckpoints, publicKeys),
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
  const records = new Records(files, knownRecords(await files.names(RECORDS)))
  const order = new Map<string, number>()
  compareRoots()
  for (const bytes of leavesOf(files, size)) {
    const index = tree.size
    const leaf = parseLeaf(bytes)
    if (leaf === null) report(`leaf ${index}`, 'it is not a leaf in canonical JSON')
    else {
      const partition = `${leaf.topic}/${leaf.partition}`
      if (leaf.offset <= (order.get(partition) ?? -1))
        report(`leaf ${index}`, `it is not in the order of ${partition}`)
      order.set(partition, leaf.offset)
    }
    records.compare(index, leaf)
    tree.add(bytes)
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
function readCheckpoint(
  files: ExportFiles,
  path: string,
  publicKeys: readonly string[],
): OpenedCheckpoint | null {
  const note = files.read(path, MAX_NOTE_BYTES)
  try {
    return note === null ? null : openWithAny(note.toString(), publicKeys)
  } catch (error) {
    files.report(path, messageOf(error))
    return null
  }
}

function readCheckpoints(
  files: ExportFiles,
  paths: readonly string[],
  publicKeys: readonly string[],
): (readonly [string, OpenedCheckpoint])[] {
  return paths.flatMap((path) => {
    const checkpoint = readCheckpoint(files, path, publicKeys)
    return checkpoint === null ? [] : [[path, checkpoint] as const]
  })
}

/** The tree of the leaves so far. Compares its tiles. */
class VerifiedTree {
  size = 0
  /** For each level, the hashes of its last tile so far, less than a full tile. */
  private readonly levels: Buffer[][] = []

  /** `finalSize` is that of the log. */
  constructor(
    private readonly files: ExportFiles,
    private readonly finalSize: number,
  ) {}

  root(): string {
    const subtrees = this.levels.toReversed().flatMap((hashes) =>
      subtreesOf(0, hashes.length).map(({ height, index }) => {
        const width = 2 ** height
        return fold(hashes.slice(index * width, (index + 1) * width))
      }),
    )
    return join(subtrees).toString('base64')
  }

  add(leaf: Buffer): void {
    this.size += 1
    this.addHash(0, hashOfLeaf(leaf))
    if (this.size < this.finalSize) return
    for (const [level, hashes] of this.levels.entries()) {
      if (hashes.length > 0) this.compare(level, hashes)
    }
  }

  private addHash(level: number, hash: Buffer): void {
    const hashes = (this.levels[level] ??= [])
    hashes.push(hash)
    if (hashes.length < TILE_WIDTH) return
    this.levels[level] = []
    this.compare(level, hashes)
    this.addHash(level + 1, fold(hashes))
  }

  /** Compares the last tile of a level. */
  private compare(level: number, hashes: readonly Buffer[]): void {
    const count = Math.floor(this.size / TILE_WIDTH ** level)
    const path = tileFile(String(level), Math.floor((count - 1) / TILE_WIDTH), hashes.length)
    const tile = this.files.read(path, MAX_TILE_BYTES)
    if (tile?.equals(Buffer.concat(hashes)) === false)
      this.files.report(path, 'its hashes are not those of the leaves')
  }
}

/** Compares the exported records with the leaves, file by file. */
class Records {
  matching = 0
  missing = 0
  private current: { from: number; to: number; digests: (string | null)[] } = { from: 0, to: 0, digests: [] }

  constructor(
    private readonly files: ExportFiles,
    private readonly known: ReadonlyMap<number, RecordsFile>,
  ) {}

  /** Must be called for each leaf in turn; with null for one that can't be read. */
  compare(index: number, leaf: Leaf | null): void {
    const { report } = this.files
    if (index === this.current.to) {
      const file = this.known.get(index)
      this.current =
        file === undefined
          ? { from: index, to: this.nextFrom(index), digests: [] }
          : { ...file, digests: this.digestsOf(file) }
      if (file === undefined) report(RECORDS, `there are no records of the leaves from ${index}`)
    }
    const digest = this.current.digests[index - this.current.from]
    // The whole file is reported.
    if (digest === undefined) return
    if (digest === null) this.missing += 1
    else if (digest === leaf?.recordSha256) this.matching += 1
    else report(`record of leaf ${index}`, 'it is not the one that was logged')
  }

  private nextFrom(index: number): number {
    const later = [...this.known.keys()].filter((from) => from > index)
    return later.reduce((first, from) => Math.min(first, from), Infinity)
  }

  /** The SHA-256 of each line of a file; null for an empty line. None if it is wrong. */
  private digestsOf(file: RecordsFile): (string | null)[] {
    const digests: (string | null)[] = []
    // Of the beginning of a line.
    let begun: Hash | null = null
    try {
      for (const { bytes, isLast } of linesOf(this.files.folder, file)) {
        if (!isLast) {
          begun = (begun ?? createHash('sha256')).update(bytes)
          continue
        }
        if (begun !== null) digests.push(begun.update(bytes).digest('hex'))
        else digests.push(bytes.length === 0 ? null : hash('sha256', bytes))
        begun = null
      }
      return digests
    } catch (error) {
      this.files.report(file.path, messageOf(error))
      return []
    }
  }
}
