import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database, RootDatabase } from 'lmdb'
import { closeLmdbFile, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { rowEncoding, type Row } from './log-file.js'

let folder: string
let root: RootDatabase<unknown, string>
let rows: Database<Row, number>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-rows-'))
  root = openLmdbFile({ path: join(folder, 'rows.mdb'), syncMode: 'after-visible', maxDbs: 2 })
  rows = root.openDB<Row, number>({ name: 'rows', ...rowEncoding() })
})
afterEach(async () => {
  await closeLmdbFile(root)
  await rm(folder, { recursive: true })
})

function bytesOf(key: number): string {
  const bytes = rows.getBinary(key)
  return Buffer.from(bytes ?? []).toString('latin1')
}

const ATTRIBUTES = {
  ...{ ce_specversion: '1', ce_id: '2', ce_type: '3', ce_source: '4', ce_subject: '5', ce_time: '6' },
  ...{ ce_schemaversion: '7', 'content-type': '8' },
}
const ACCOUNT_EVENT = { ...ATTRIBUTES, ce_accountid: '9', ce_environment: 'a' }
const KNOWN = [ATTRIBUTES, ACCOUNT_EVENT, { ...ACCOUNT_EVENT, ce_keyid: 'b' }]

const rowOf = (h: Row['h']): Row => ({ t: 1, k: 'k', h, v: Buffer.from('v') })

it('does not store the names of attributes in each row', () => {
  const recorded = {
    ...{ id: mintId('evt'), time: new Date(), source: '/mayfly/api', accountId: mintId('acc') },
    ...{ environment: '', keyId: mintId('key') },
  }
  const about = { keyId: recorded.keyId, inboxId: mintId('inb'), labels: {} }
  const {
    key: k,
    headers: h,
    value: v,
  } = usageEventCodec.encode({
    ...recorded,
    event: { type: 'MailRefused', ...about, reason: 'inbox-full', code: 552, refusedAt: new Date() },
  })
  rows.putSync(1, { t: 1, k, h, v: Buffer.from(v) })
  expect(bytesOf(1)).not.toContain('ce_')
  expect(rows.get(1)?.h).toEqual(h)
})

it('stores rows in the same form as ever', () => {
  const values = Array.from({ length: 11 }, (_, index) => `\xa1${(index + 1).toString(16)}`)
  for (const [index, headers] of KNOWN.entries()) {
    rows.putSync(index, rowOf(headers))
    const known = String.fromCharCode(0x41 + index) + values.slice(0, Object.keys(headers).length).join('')
    expect(bytesOf(index)).toBe(`\x40\x01\xa1k${known}\xc4\x01v`)
  }
})

it('stores headers with any names, and reads them after a restart', async () => {
  const odd = Array.from({ length: 100 }, (_, n) => ({ [`name-${n % 7}`]: `${n}`, [`other-${n % 11}`]: '' }))
  const all = odd.flatMap((headers, n) => [headers, KNOWN[n % KNOWN.length] ?? {}, {}])
  for (const [index, headers] of all.entries()) {
    rows.putSync(index, rowOf(headers))
    expect(rows.get(index)?.h).toEqual(headers)
  }
  await closeLmdbFile(root)
  root = openLmdbFile({ path: join(folder, 'rows.mdb'), syncMode: 'after-visible', maxDbs: 2 })
  rows = root.openDB<Row, number>({ name: 'rows', ...rowEncoding() })
  for (const [index, headers] of all.entries()) expect(rows.get(index)).toEqual(rowOf(headers))
})

it('reads rows of an older form, which contain all names', async () => {
  const plain = root.openDB<Row, number>({ name: 'rows' })
  for (const [index, headers] of KNOWN.entries()) plain.putSync(index, rowOf(headers))
  await closeLmdbFile(root)
  root = openLmdbFile({ path: join(folder, 'rows.mdb'), syncMode: 'after-visible', maxDbs: 2 })
  rows = root.openDB<Row, number>({ name: 'rows', ...rowEncoding() })
  for (let round = 0; round < 2; round += 1) {
    for (const [index, headers] of KNOWN.entries()) {
      expect(rows.get(index)).toEqual(rowOf(headers))
      rows.putSync(100, rowOf(headers))
      expect(rows.get(100)).toEqual(rowOf(headers))
    }
  }
})
