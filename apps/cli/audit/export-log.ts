import { createWriteStream } from 'node:fs'
import { mkdir, readFile, readdir, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Connection } from '#clients/typescript/src/connection.js'
import type { Schemas } from '#clients/typescript/src/options.js'
import { openCheckpoint } from '#libs/domain/audit/checkpoint.js'
import { tilePath } from '#libs/domain/audit/tiles.js'
import { TILE_WIDTH } from '#libs/domain/audit/tree.js'
import { EXIT, Failure } from '../failure.js'
import { checkpointFile, ORIGIN_FILE, RECORDS_AT_ONCE, recordsFile, recordsRange } from './export-files.js'

export interface Exported {
  folder: string
  origin: string
  size: number
  /** The files that were written. */
  files: number
}

/** Until an answer with records begins. */
const RECORDS_TIMEOUT_MS = 60_000

const README = (origin: string) => `# An export of a Mayfly audit log

The log is ${origin}.

- \`checkpoint\`: the last signed size and root. \`checkpoints/\`: each that was exported, by its size.
- \`tile/\`: the log's hashes, and in \`tile/entries/\` its leaves, as in https://c2sp.org/tlog-tiles.
- \`records/<from>-<to>.ndjson\`: the record of each leaf from one index up to another, as the leaf has its SHA-256. A line is empty if the event log no longer had the record. What is personal in them is encrypted, and no key is here.

Verify it without a network, with the public key from a source that you trust:

    mayfly audit verify . --public-key "<name>+<hash>+<key>"
`

/**
 * Downloads an account's audit log into a folder, up to its last checkpoint. What the folder already has is kept, so it
 * can be repeated, also after it was interrupted. The checkpoint is written last.
 */
export async function exportLog(api: Connection, folder: string): Promise<Exported> {
  const [log] = await api.get<Schemas['AuditLog'][]>('/v1/audit/logs')
  if (log === undefined) throw new Failure(EXIT.notFound, 'the account has no audit log')
  const { origin, public_key: publicKey } = log
  const path = `/v1/audit/logs/${encodeURIComponent(log.id)}`
  const known = await readFile(join(folder, ORIGIN_FILE), 'utf8').catch(() => null)
  if (known !== null && known.trim() !== origin) {
    throw new Failure(EXIT.usage, `${folder} has an export of another log: ${known.trim().slice(0, 200)}`)
  }
  let files = 0
  const write = async (file: string, content: Uint8Array | string) => {
    await writeWhole(join(folder, file), (partial) => writeFile(partial, content))
    files += 1
  }
  const note = await textOf(api, `${path}/checkpoint`)
  const { size } = openCheckpoint(note, publicKey)
  if (known === null) await write(ORIGIN_FILE, `${origin}\n`)
  await write('README.md', README(origin))

  const downloadTiles = async (level: string, hashes: number) => {
    for (let from = 0; from < hashes; from += TILE_WIDTH) {
      const width = Math.min(hashes - from, TILE_WIDTH)
      const tile = `tile/${level}/${tilePath(from / TILE_WIDTH)}${width === TILE_WIDTH ? '' : `.p/${width}`}`
      if (!(await exists(join(folder, tile)))) await write(tile, await api.bytes(`${path}/${tile}`))
    }
  }
  await downloadTiles('entries', size)
  for (let level = 0, hashes = size; hashes > 0; level += 1, hashes = Math.floor(hashes / TILE_WIDTH)) {
    await downloadTiles(String(level), hashes)
  }
  for (let from = await recordsUpTo(folder); from < size; from += RECORDS_AT_ONCE) {
    const to = Math.min(from + RECORDS_AT_ONCE, size)
    const query = { from, to, timeoutMs: RECORDS_TIMEOUT_MS }
    const answer = await api.stream(`${path}/records`, query, 'application/x-ndjson')
    await writeWhole(join(folder, recordsFile(from, to)), async (partial) => {
      await pipeline(wholeLines(answer, to - from), createWriteStream(partial))
    })
    files += 1
  }
  await write(checkpointFile(size), note)
  await write('checkpoint', note)
  return { folder, origin, size, files }
}

async function textOf(api: Connection, path: string): Promise<string> {
  return new TextDecoder().decode(await api.bytes(path))
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}

/** Writes a file under another name first, so that it is never incomplete. */
async function writeWhole(path: string, write: (partial: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await write(`${path}.partial`)
  await rename(`${path}.partial`, path)
}

/** The index of the first leaf whose record is not exported yet. */
async function recordsUpTo(folder: string): Promise<number> {
  const names = await readdir(join(folder, 'records')).catch(() => [])
  return names.reduce((last, name) => Math.max(last, recordsRange(name)?.to ?? 0), 0)
}

/** The bytes of an answer. Throws Failure unless it has that number of lines, none of which is a problem. */
async function* wholeLines(answer: AsyncIterable<Uint8Array>, lines: number): AsyncGenerator<Uint8Array> {
  const problem = Buffer.from('{"problem":')
  let start = Buffer.alloc(0)
  let count = 0
  for await (const piece of answer) {
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

function incomplete(): Failure {
  return new Failure(EXIT.unavailable, 'the records could not be read to the end: run the command again')
}
