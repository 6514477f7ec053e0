import { mkdir, readFile, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Connection } from '#clients/typescript/src/connection.js'
import type { Schemas } from '#clients/typescript/src/options.js'
import { openCheckpoint, type OpenedCheckpoint } from '#libs/domain/audit/checkpoint.js'
import { RECORDS_AT_ONCE, tileFile } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { codeOf } from '#libs/runtime/errors.js'
import { EXIT, Failure } from '../failure.js'
import { writeFileAtomically } from '../files.js'
import {
  CHECKPOINT_FILE,
  CHECKPOINTS,
  knownRecords,
  ORIGIN_FILE,
  RECORDS,
  recordsFile,
  type RecordsFile,
} from './export-files.js'

export interface Exported {
  folder: string
  origin: string
  size: number
  /** How many files were downloaded. */
  files: number
}

/** Of a request with its retries: a limit of requests may last a minute. */
const TIMEOUT_MS = 90_000

const README = (origin: string) => `# An export of a Mayfly audit log

The log is ${origin}.

- \`checkpoint\`: its signed size and root. \`checkpoints/\` has those of earlier exports.
- \`tile/\`: its hashes, and in \`tile/entries/\` its leaves (https://c2sp.org/tlog-tiles).
- \`records/<from>-<to>.ndjson\`: a line for each leaf from one index up to, not including, the other. It is the record of the event, whose SHA-256 the leaf has, or empty if the event log no longer had it. Mail, names and email addresses in it are encrypted, and no key is here. Events of early versions of Mayfly have names and email addresses as text.

Verify it without a network, with the public key from a source that you trust:

    mayfly audit verify . --public-key "<name>+<hash>+<key>"
`

/**
 * Downloads an account's audit log into a folder, up to its last checkpoint. What the folder has is kept, so it can be
 * repeated, also after it was interrupted: the folder always has all of its `checkpoint`. Rejects with Failure if the log
 * contradicts that one.
 */
export async function exportLog(api: Connection, folder: string): Promise<Exported> {
  const call = { timeoutMs: TIMEOUT_MS }
  const [log] = await api.get<Schemas['AuditLog'][]>('/v1/audit/logs', call)
  if (log === undefined) throw new Failure(EXIT.notFound, 'the account has no audit log')
  const { origin, public_key: publicKey } = log
  const path = `/v1/audit/logs/${encodeURIComponent(log.id)}`
  let files = 0
  const write = (file: string, content: Uint8Array | string) => writeWhole(join(folder, file), [content])
  await requireSameLog(folder, origin)
  const note = new TextDecoder().decode(await api.bytes(`${path}/checkpoint`, call))
  const checkpoint = openCheckpoint(note, publicKey)
  await requireConsistent(folder, checkpoint)
  const { size } = checkpoint
  await write(ORIGIN_FILE, `${origin}\n`)
  await write('README.md', README(origin))

  const downloadTiles = async (level: string, hashes: number) => {
    for (let from = 0; from < hashes; from += TILE_WIDTH) {
      const width = Math.min(hashes - from, TILE_WIDTH)
      const tile = tileFile(level, from / TILE_WIDTH, width)
      if (await exists(join(folder, tile))) continue
      await write(tile, await api.bytes(`${path}/${tile}`, call))
      files += 1
    }
  }
  await downloadTiles('entries', size)
  for (let level = 0, hashes = size; hashes > 0; level += 1, hashes = Math.floor(hashes / TILE_WIDTH)) {
    await downloadTiles(String(level), hashes)
  }
  for (const file of missingRecords(await namesIn(join(folder, RECORDS)), size)) {
    const { from, to } = file
    const answer = await api.stream(`${path}/records`, { from, to, ...call }, 'application/x-ndjson')
    await writeWhole(join(folder, file.path), wholeLines(answer, to - from))
    files += 1
  }
  // The one that is replaced is kept.
  const replaced = await textOf(folder, CHECKPOINT_FILE)
  if (replaced !== null) await write(`${CHECKPOINTS}/${sizeAndRootOf(replaced).size}`, replaced)
  await write(CHECKPOINT_FILE, note)
  return { folder, origin, size, files }
}

/** Rejects if the folder has something else than an export of that log. */
async function requireSameLog(folder: string, origin: string): Promise<void> {
  const known = (await textOf(folder, ORIGIN_FILE))?.trim() ?? null
  if (known === origin) return
  if (known !== null)
    throw new Failure(EXIT.usage, `${folder} has an export of another log: ${known.slice(0, 200)}`)
  const names = await namesIn(folder)
  if (names.length > 0) throw new Failure(EXIT.usage, `${folder} is neither empty nor an export`)
}

/** Rejects if the log has become smaller than the folder's checkpoint, or has another root for the same size. */
async function requireConsistent(folder: string, { size, root }: OpenedCheckpoint): Promise<void> {
  const note = await textOf(folder, CHECKPOINT_FILE)
  if (note === null) return
  const known = sizeAndRootOf(note)
  if (size > known.size || (size === known.size && root === known.root)) return
  throw new Failure(
    EXIT.differs,
    `the log has ${size} leaves with the root ${root}, which contradicts the checkpoint in ${folder} of ` +
      `${known.size} leaves with the root ${known.root}: nothing was written`,
  )
}

function sizeAndRootOf(note: string): { size: number; root: string } {
  const [, size = '', root = ''] = note.split('\n')
  return { size: Number(size), root }
}

/** The files of records that a folder with those names lacks of a log of that size. */
function missingRecords(names: readonly string[], size: number): RecordsFile[] {
  const known = knownRecords(names)
  const starts = [...known.keys()].toSorted((one, other) => one - other)
  const missing: RecordsFile[] = []
  for (let from = 0; from < size;) {
    const existing = known.get(from)
    const next = starts.find((start) => start > from) ?? size
    const file = existing ?? recordsFile(from, Math.min(from + RECORDS_AT_ONCE, size, next))
    if (existing === undefined) missing.push(file)
    from = file.to
  }
  return missing
}

/** Null if there is no such file. */
async function textOf(folder: string, file: string): Promise<string | null> {
  return readFile(join(folder, file), 'utf8').catch(orNull)
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(orNull)) ?? []
}

/** For the error of a file or folder that does not exist. */
function orNull(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null
  throw error
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(orNull)) !== null
}

async function writeWhole(
  path: string,
  content: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFileAtomically(path, () => Promise.resolve(content))
}

/** The bytes of an answer. Throws Failure unless it has that number of lines, none of which is a problem. */
async function* wholeLines(answer: AsyncIterable<Uint8Array>, lines: number): AsyncGenerator<Uint8Array> {
  const problem = Buffer.from('{"problem":')
  let start = Buffer.alloc(0)
  let count = 0
  for await (const piece of orIncomplete(answer)) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    let from = 0
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, from)) {
      start = withStart(start, bytes.subarray(from, end))
      if (start.equals(problem)) throw incomplete()
      start = Buffer.alloc(0)
      count += 1
      from = end + 1
    }
    start = withStart(start, bytes.subarray(from))
    yield bytes
  }
  if (count !== lines) throw incomplete()

  function withStart(before: Buffer<ArrayBuffer>, more: Buffer): Buffer<ArrayBuffer> {
    return before.length < problem.length ? Buffer.concat([before, more]).subarray(0, problem.length) : before
  }
}

async function* orIncomplete(answer: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* answer
  } catch {
    throw incomplete()
  }
}

function incomplete(): Failure {
  return new Failure(EXIT.unavailable, 'the records could not be read to the end: run the command again')
}
