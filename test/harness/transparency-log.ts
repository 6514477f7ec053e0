import { createPublicKey, hash, verify } from 'node:crypto'
import type { Schemas } from '#clients/typescript/src/options.js'
import { call, type Target } from './client.js'

/*
 * An auditor of a C2SP transparency log, written from the specifications alone: it shares no code with the log.
 */

export type AuditLogJson = Schemas['AuditLog']

export interface LeafJson {
  actor: string | null
  environment: string
  id: string
  offset: number
  partition: number
  record_sha256: string
  subject: string
  time: string
  topic: string
  type: string
}

export type ErasureJson = Schemas['Erasure']

export interface Checkpoint {
  origin: string
  size: number
  root: Buffer
  /** When the log has cosigned it, in seconds since 1970. */
  cosignedAt: number
}

export interface DownloadedLog extends Checkpoint {
  note: string
  /** The entries as they are hashed. */
  entries: string[]
  leaves: LeafJson[]
}

/** Bytes of a file of the log. Throws unless it is answered 200. */
export async function fileOf(target: Target, path: string): Promise<Buffer> {
  const headers = { authorization: `Bearer ${target.apiKey}` }
  const response = await fetch(`${target.url}/v1/audit/logs/${path}`, { headers })
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${bytes.toString()}`)
  return bytes
}

export async function auditLogOf(target: Target): Promise<AuditLogJson> {
  const { body } = await call<AuditLogJson[]>(target, 'GET', '/v1/audit/logs')
  const [log] = body
  if (log === undefined || body.length !== 1) throw new Error('there is not one audit log')
  return log
}

function readKey(verifierKey: string) {
  const [, name = '', text = ''] = /^(.+)\+[0-9a-f]{8}\+(.+)$/.exec(verifierKey) ?? []
  const key = Buffer.from(text, 'base64').subarray(1)
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') }
  return { name, key, publicKey: createPublicKey({ key: jwk, format: 'jwk' }) }
}

function sha256(...parts: readonly (string | Uint8Array)[]): Buffer {
  return hash('sha256', Buffer.concat(parts.map((part) => Buffer.from(part))), 'buffer')
}

/** Reads a checkpoint and verifies both signatures of the key. Throws if one is missing or wrong. */
export function verifyCheckpoint(note: string, verifierKey: string): Checkpoint {
  const { name, key, publicKey } = readKey(verifierKey)
  const [, body = '', signatures = ''] = /^(.*\n)\n((?:\u2014 .*\n)+)$/su.exec(note) ?? []
  const [origin = '', size = '', root = ''] = body.split('\n')
  if (origin !== name) throw new Error(`the origin is "${origin}"`)
  const signatureOf = (type: number) => {
    const id = sha256(`${name}\n`, Buffer.from([type]), key)
    const lines = signatures.split('\n').filter((line) => line.startsWith(`\u2014 ${name} `))
    const found = lines.map((line) => Buffer.from(line.split(' ')[2] ?? '', 'base64'))
    const bytes = found.find((each) => each.subarray(0, 4).equals(id.subarray(0, 4)))
    if (bytes === undefined) throw new Error(`there is no signature of type ${type}`)
    return bytes.subarray(4)
  }
  const cosignature = signatureOf(4)
  const cosignedAt = Number(cosignature.readBigUInt64BE())
  const cosigned = `cosignature/v1\ntime ${cosignedAt}\n${body}`
  const isGenuine =
    verify(null, Buffer.from(body), publicKey, signatureOf(1)) &&
    verify(null, Buffer.from(cosigned), publicKey, cosignature.subarray(8))
  if (!isGenuine) throw new Error('a signature is wrong')
  return { origin, size: Number(size), root: Buffer.from(root, 'base64'), cosignedAt }
}

/** Verifies the cosignature of a witness. Returns its time, in seconds since 1970. Throws if it is missing or wrong. */
export function verifyCosignature(note: string, verifierKey: string): number {
  const { name, publicKey } = readKey(verifierKey)
  const [, body = ''] = /^(.*?\n)\n/s.exec(note) ?? []
  const [line] = note.split('\n').filter((each) => each.startsWith(`\u2014 ${name} `))
  const bytes = Buffer.from(line?.split(' ')[2] ?? '', 'base64').subarray(4)
  if (bytes.length !== 72) throw new Error(`there is no cosignature of ${name}`)
  const cosignedAt = Number(bytes.readBigUInt64BE())
  const cosigned = Buffer.from(`cosignature/v1\ntime ${cosignedAt}\n${body}`)
  if (!verify(null, cosigned, publicKey, bytes.subarray(8))) throw new Error('the cosignature is wrong')
  return cosignedAt
}

export function leafHash(entry: string): Buffer {
  return sha256(Buffer.from([0]), entry)
}

function nodeHash(left: Buffer, right: Buffer): Buffer {
  return sha256(Buffer.from([1]), left, right)
}

/** The Merkle Tree Hash of RFC 6962, section 2.1, from hashes of leaves. */
export function merkleTreeHash(hashes: readonly Buffer[]): Buffer {
  const [only] = hashes
  if (only === undefined) return sha256()
  if (hashes.length === 1) return only
  let middle = 1
  while (middle * 2 < hashes.length) middle *= 2
  return nodeHash(merkleTreeHash(hashes.slice(0, middle)), merkleTreeHash(hashes.slice(middle)))
}

/** Whether hashes prove that a leaf is in a tree: RFC 9162, section 2.1.3.2. */
export function provesInclusion(
  leaf: { index: number; hash: Buffer },
  proof: readonly Buffer[],
  { size, root }: Pick<Checkpoint, 'size' | 'root'>,
): boolean {
  if (leaf.index >= size) return false
  let [fn, sn] = [BigInt(leaf.index), BigInt(size - 1)]
  let hash = leaf.hash
  for (const sibling of proof) {
    if (sn === 0n) return false
    if (fn % 2n === 1n || fn === sn) {
      hash = nodeHash(sibling, hash)
      while (fn % 2n === 0n && fn !== 0n) [fn, sn] = [fn >> 1n, sn >> 1n]
    } else {
      hash = nodeHash(hash, sibling)
    }
    ;[fn, sn] = [fn >> 1n, sn >> 1n]
  }
  return sn === 0n && hash.equals(root)
}

/** Whether a proof (C2SP tlog-proof) shows that the log has an entry at that index. Throws if its checkpoint is not signed. */
export function proves(text: string, index: number, entry: string, verifierKey: string): boolean {
  const [head = '', ...rest] = text.split('\n\n')
  const [form, indexLine, ...hashes] = head.split('\n')
  const checkpoint = verifyCheckpoint(rest.join('\n\n'), verifierKey)
  const proof = hashes.map((line) => Buffer.from(line, 'base64'))
  const isOfIndex = form === 'c2sp.org/tlog-proof@v1' && indexLine === `index ${index}`
  return isOfIndex && provesInclusion({ index, hash: leafHash(entry) }, proof, checkpoint)
}

/** Returns the facts in the record that a certificate of an erasure cites. Throws unless the log has that record. */
export function factsOf(
  { proof, index, leaf, record, event_id, inbox_id }: ErasureJson,
  verifierKey: string,
): object {
  const { id, subject, record_sha256 } = JSON.parse(leaf) as LeafJson
  if (!proves(proof, index, leaf, verifierKey)) throw new Error('the leaf is not proved')
  if (id !== event_id || subject !== inbox_id) throw new Error('the leaf is one of another event')
  if (hash('sha256', record) !== record_sha256) throw new Error('the record is not that of the leaf')
  const { value } = JSON.parse(record) as { value: string }
  return JSON.parse(Buffer.from(value, 'base64').toString()) as object
}

/** The path of a tile, or of a bundle of entries, of a log with so many hashes at its level; null for an empty one. */
export function tilePath(level: number | 'entries', tile: number, hashes: number): string | null {
  const width = Math.min(hashes - tile * 256, 256)
  if (width <= 0) return null
  const [last = '', ...higher] =
    String(tile)
      .padStart(12, '0')
      .replace(/^(000)+(?=\d{3})/, '')
      .match(/\d{3}/g)
      ?.toReversed() ?? []
  const digits = [...higher.toReversed().map((group) => `x${group}`), last].join('/')
  return `tile/${level}/${digits}${width === 256 ? '' : `.p/${width}`}`
}

/** Downloads a log, and verifies its signatures, all entries and all tiles. Throws if anything does not fit. */
export async function downloadLog(target: Target, { id, public_key }: AuditLogJson): Promise<DownloadedLog> {
  const note = (await fileOf(target, `${id}/checkpoint`)).toString()
  const checkpoint = verifyCheckpoint(note, public_key)
  const entries: string[] = []
  for (let tile = 0; ; tile += 1) {
    const path = tilePath('entries', tile, checkpoint.size)
    if (path === null) break
    const bundle = await fileOf(target, `${id}/${path}`)
    for (let at = 0; at < bundle.length;) {
      const end = at + 2 + bundle.readUInt16BE(at)
      entries.push(bundle.subarray(at + 2, end).toString())
      at = end
    }
  }
  if (entries.length !== checkpoint.size) throw new Error(`there are ${entries.length} entries`)
  let hashes = entries.map(leafHash)
  if (!merkleTreeHash(hashes).equals(checkpoint.root))
    throw new Error('the entries are not those of the root')
  for (let level = 0; hashes.length > 0; level += 1) {
    const above: Buffer[] = []
    for (let tile = 0; ; tile += 1) {
      const path = tilePath(level, tile, hashes.length)
      if (path === null) break
      const expected = hashes.slice(tile * 256, (tile + 1) * 256)
      const found = await fileOf(target, `${id}/${path}`)
      if (!found.equals(Buffer.concat(expected))) throw new Error(`${path} does not fit the entries`)
      if (expected.length === 256) above.push(merkleTreeHash(expected))
    }
    hashes = above
  }
  const leaves = entries.map((entry) => JSON.parse(entry) as LeafJson)
  return { ...checkpoint, note, entries, leaves }
}
