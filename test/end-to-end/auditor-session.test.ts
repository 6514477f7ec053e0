import { hash } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Replay } from '#apps/cli/audit/replay-export.js'
import type { Verification } from '#apps/cli/audit/verify-export.js'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  inboxWith,
  mail,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startKafka } from '#test/harness/kafka.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { startRedis } from '#test/harness/redis.js'
import { runCli, runProgram } from '#test/harness/run-program.js'
import { describeWith } from '#test/harness/tools.js'
import {
  auditLogOf,
  factsOf,
  leafHash,
  type AuditLogJson,
  type ErasureJson,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'
import { untilReady } from '../faults/api-snapshot.js'

/** What is lost, or restored from a backup, as a whole. */
type Store = 'views' | 'log'

interface Stores {
  env: Record<string, string>
  /** The folder of each, from the data folder of Mayfly. */
  folderOf(store: Store, dataDir: string): string
  /** Empties the views while Mayfly runs; null if the engine can't. */
  flushViews: (() => Promise<void>) | null
  stop(): Promise<void>
  start(): Promise<void>
  dispose(): Promise<void>
}

/** A session of the past, whose results must stay as they were. */
interface Past {
  /** The size of the log with the mail of the inbox, before its deletion. */
  asOf: number
  path: string
  inbox: InboxJson
  certificate: ErasureJson
  size: number
  digest: string
}

const HASHES = 'tile/0/000'
const ENTRIES = 'tile/entries/000'
const CARGO_TARGET = join(process.cwd(), 'node_modules/.cache/tlog-tiles')
/** Includes downloads from crates.io at the first time. */
const BUILD_WITHIN_MS = 600_000

async function startStores(): Promise<Stores> {
  if (engineUnderTest() === 'embedded') {
    const nothing = () => Promise.resolve()
    const folders = { views: 'read-model', log: 'event-log' }
    const folderOf = (store: Store, dataDir: string) => join(dataDir, folders[store])
    return { env: {}, folderOf, flushViews: null, stop: nothing, start: nothing, dispose: nothing }
  }
  const [kafka, redis] = await Promise.all([startKafka(), startRedis({ persistence: 'dump' })])
  const servers = [...kafka.nodes, redis]
  const each = async (work: (server: (typeof servers)[number]) => Promise<void>) => {
    await Promise.all(servers.map(work))
  }
  return {
    env: { KAFKA_BROKERS: kafka.brokers.join(','), REDIS_URL: redis.url },
    folderOf: (store) => (store === 'views' ? redis.dataDir : (kafka.nodes[0]?.dataDir ?? '')),
    async flushViews() {
      const client = new Redis(redis.url)
      await client.flushall()
      client.disconnect()
    },
    stop: () => each((server) => server.kill('SIGTERM')),
    start: () => each((server) => server.restart()),
    async dispose() {
      await Promise.all([kafka.dispose(), redis.dispose()])
    },
  }
}

/** Changes a byte of the first leaf or of its hash. */
async function alter(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.writeUInt8(bytes.readUInt8(10) ^ 1, 10)
  await writeFile(path, bytes)
}

async function alterEntryAndHash(folder: string): Promise<void> {
  await alter(join(folder, ENTRIES))
  const entries = await readFile(join(folder, ENTRIES))
  const hashes = await readFile(join(folder, HASHES))
  leafHash(entries.toString('utf8', 2, 2 + entries.readUInt16BE())).copy(hashes)
  await writeFile(join(folder, HASHES), hashes)
}

/** Walks through docs/audit.md, again after Mayfly was killed, its views were lost, and older backups were restored. */
describeWith('tessera-fsck', 'cargo')('the session of an auditor', () => {
  let stores: Stores
  let mayfly: Mayfly
  let key: { secret: string }
  let log: AuditLogJson
  let folder: string
  const past: Past[] = []
  /** How often the folder `whole` was exported to. */
  let exports = 0

  const auditor = (): Target => withKey(mayfly, key)
  const within = (name: string) => join(folder, name)

  beforeAll(async () => {
    const built = await runProgram('cargo', ['build', '--release', '--locked', '--quiet'], {
      cwd: 'test/clients/tlog-tiles',
      env: { ...process.env, CARGO_TARGET_DIR: CARGO_TARGET },
    })
    expect(built).toMatchObject({ code: 0 })
    folder = await mkdtemp(join(tmpdir(), 'mayfly-auditor-'))
    stores = await startStores()
    mayfly = await startMayfly({ env: stores.env })
    key = await issueKey(mayfly, { scopes: ['audit', 'inboxes'] })
    log = await auditLogOf(auditor())
    await create(auditor(), '/v1/inboxes/bulk', { count: 300 })
  }, BUILD_WITHIN_MS)
  afterAll(async () => {
    await mayfly.dispose()
    await stores.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  const keptElsewhere = () => ({ MAYFLY_AUDIT_LAST_CHECKPOINT: within('whole/checkpoint') })

  /** Ends Mayfly and its servers, works on their folders, and starts them again. */
  async function restartAfter(
    work: () => Promise<void>,
    { signal = 'SIGTERM', env = {} }: { signal?: NodeJS.Signals; env?: Record<string, string> } = {},
  ): Promise<void> {
    await mayfly.end(signal)
    await stores.stop()
    await work()
    await stores.start()
    const { dataDir, apiKey } = mayfly
    mayfly = await startMayfly({ env: { ...stores.env, ...env }, dataDir, apiKey })
    await untilReady(mayfly)
  }

  /** Files keep their times, without which the views would be built anew. */
  const copy = (from: string, to: string) => cp(from, to, { recursive: true, preserveTimestamps: true })
  const backUp = (store: Store) => copy(stores.folderOf(store, mayfly.dataDir), within(`backup-${store}`))
  const lose = (store: Store) => rm(stores.folderOf(store, mayfly.dataDir), { recursive: true })
  async function restore(store: Store): Promise<void> {
    await lose(store)
    await copy(within(`backup-${store}`), stores.folderOf(store, mayfly.dataDir))
  }

  const exportTo = (to: string) => runCli(auditor(), 'audit', 'export', '--to', to)

  async function exported(to: string): Promise<number> {
    const { code, stdout, stderr } = await exportTo(to)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return (JSON.parse(stdout) as { size: number }).size
  }

  async function replayed(from: string, size: number): Promise<{ digest: string; state: string }> {
    const path = within('state.ndjson')
    const { code, stdout, stderr } = await runCli(
      null,
      'audit',
      'replay',
      from,
      '--size',
      `${size}`,
      '--to',
      path,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const state = await readFile(path, 'utf8')
    const { digest } = JSON.parse(stdout) as Replay
    expect(digest).toBe(hash('sha256', state))
    return { digest, state }
  }

  async function recordsOf(from: string): Promise<string[]> {
    const names = await readdir(join(from, 'records'))
    const files = await Promise.all(names.map((name) => readFile(join(from, 'records', name), 'utf8')))
    return files.flatMap((file) => file.split('\n'))
  }

  async function verified(from: string, publicKey = log.public_key): Promise<Verification> {
    const { code, stdout } = await runCli(null, 'audit', 'verify', from, '--public-key', publicKey)
    const verification = JSON.parse(stdout) as Verification
    expect(code).toBe(verification.problems.length === 0 ? 0 : 6)
    return verification
  }

  /** fsck ends with 0 in any case. With a single worker it does not end if something does not fit. */
  async function fsckAccepts(url: string, publicKey: string, ...options: string[]): Promise<boolean> {
    await writeFile(within('public_key'), publicKey)
    const args = [`--storage_url=${url}`, `--public_key=${within('public_key')}`, '--ui=false', '-N=3']
    const { stderr } = await runProgram('tessera-fsck', [...args, ...options], { timeout: 60_000 })
    expect(stderr).toMatch(/Successfully fsck'd log with size \d{3}|fsck failed/)
    return !stderr.includes('fsck failed')
  }

  /** Whether each of the other two verifiers accepts an export. */
  async function othersAccept(from: string, publicKey = log.public_key): Promise<boolean[]> {
    const crate = await runProgram(join(CARGO_TARGET, 'release/verify-audit-log'), [from, publicKey], {})
    expect(crate.stdout || crate.stderr).toMatch(
      /^\d{3} leaves|invalid transparency proof|inconsistent tile|UnverifiedNote/,
    )
    return [await fsckAccepts(`file://${from}/`, publicKey), crate.code === 0]
  }

  const asOf = async (path: string, moment: number) => {
    const { status, headers, body } = await call(auditor(), 'GET', `${path}?as_of=${moment}`)
    return { status, size: Number(headers.get('mayfly-as-of')), body }
  }

  const certificateOf = (path: string) =>
    until('the certificate', async () => {
      const { status, body } = await call<ErasureJson>(auditor(), 'GET', `${path}/erasure`)
      return status === 200 ? body : null
    })

  /** The state before a deletion, from the API and from a replay, and the certificate of the erasure. */
  async function verifyPast(past: Past, from: string): Promise<void> {
    const { path, certificate, inbox, asOf: moment } = past
    const { name: _name, ...before } = inbox
    expect(await asOf(path, moment)).toMatchObject({ status: 200, size: moment, body: before })
    expect((await asOf(path, moment + 1)).status).toBe(410)
    const now = await certificateOf(path)
    expect(now).toEqual({ ...certificate, proof: now.proof })
    expect(factsOf(now, log.public_key)).toMatchObject({ inbox_id: inbox.id, state: 'deleted' })
    expect(await recordsOf(from)).toContain(certificate.record)
    const { state } = await replayed(from, moment)
    const line = state.split('\n').find((each) => each.includes(inbox.id)) ?? '{}'
    expect(JSON.parse(line)).toMatchObject({ state: 'active', labels: before.labels, message_count: 1 })
    expect((await replayed(from, past.size)).digest).toBe(past.digest)
  }

  /** Makes history, and expects that it and everything before it is proved by an export that is continued and by a new one. */
  async function session(name: string): Promise<void> {
    const { id } = await inboxWith(auditor(), mail(name))
    const path = `/v1/inboxes/${id}`
    const { body: inbox } = await call<InboxJson>(auditor(), 'GET', path)
    expect((await call(auditor(), 'DELETE', path)).status).toBe(200)
    const certificate = await certificateOf(path)
    const whole = within('whole')
    const size = await exported(whole)
    exports += 1
    const [, deleted] = await until('the leaves of the inbox', async () => {
      const route = `/v1/audit/logs/${log.id}/events?subject=${id}&order=desc`
      const { body } = await call<{ index: number }[]>(auditor(), 'GET', route)
      return body.length === 4 ? body : null
    })
    const { digest } = await replayed(whole, size)
    past.push({ asOf: deleted?.index ?? 0, path, inbox, certificate, size, digest })

    const anew = await mkdtemp(within('anew-'))
    await exported(anew)
    for (const [each, checkpoints] of [
      [whole, exports],
      [anew, 1],
    ] as const) {
      expect(await verified(each)).toMatchObject({ checkpoints, without_record: 0, problems: [] })
      expect(await othersAccept(each)).toEqual([true, true])
    }
    const url = `${mayfly.url}/v1/audit/logs/${log.id}/`
    expect(await fsckAccepts(url, log.public_key, `--bearer_token=${key.secret}`)).toBe(true)
    for (const each of past) await verifyPast(each, anew)
  }

  it('shows what happened, was signed and was erased', () => session('first'))

  it('is the same after Mayfly was killed', async () => {
    await restartAfter(async () => {
      for (const store of ['views', 'log'] as const) await backUp(store)
    })
    const creating = Array.from({ length: 20 }, () => createInbox(auditor()))
    const created = Promise.allSettled(creating)
    await Promise.any(creating)
    await restartAfter(() => Promise.resolve(), { signal: 'SIGKILL', env: keptElsewhere() })
    await created
    await session('killed')
  })

  it('is the same after the views were lost', async () => {
    if (stores.flushViews === null) await restartAfter(() => lose('views'))
    else await stores.flushViews()
    await session('lost')
  })

  it('is the same after the views of an older backup were restored', async () => {
    await restartAfter(() => restore('views'))
    await session('restored')
  })

  it('is refused with an older log, which is signed again without the checkpoint that was kept', async () => {
    await restartAfter(() => restore('log'), { env: keptElsewhere() })
    for (const reason of ['the one that was kept has', 'leaves have the root']) {
      await until('the refusal', async () => {
        const { code, stderr } = await exportTo(within('whole'))
        expect(code).not.toBe(0)
        return stderr.includes(reason)
      })
      await create(auditor(), '/v1/inboxes/bulk', { count: 100 })
    }
    await restartAfter(() => Promise.resolve())
    // Once the log is larger than the export, only its verification shows that it is another one.
    await until('an export of it', async () => (await exportTo(within('whole'))).code === 0)
    expect((await verified(within('whole'))).problems).toContainEqual(
      expect.stringMatching(/^checkpoint of .* its root is not/),
    )
    past.splice(1)
    await rm(within('whole'), { recursive: true })
    exports = 0
    await session('older')
  })

  it.each([
    ['hash', (altered: string) => alter(join(altered, HASHES)), /^tile\/0\/000: /],
    ['entry', (altered: string) => alter(join(altered, ENTRIES)), /^leaf 0: /],
    ['entry and its hash', alterEntryAndHash, /^leaf 0: /],
  ])('names an altered %s, and no verifier accepts it', async (_what, change, named) => {
    const altered = await mkdtemp(within('altered-'))
    await cp(within('whole'), altered, { recursive: true })
    await change(altered)
    expect(await othersAccept(altered)).toEqual([false, false])
    const { problems } = await verified(altered)
    expect(problems).toContainEqual(expect.stringMatching(named))
  })

  it('accepts nothing with the key of another log', async () => {
    const admin = withKey(mayfly, (await openAccount(mayfly)).key)
    const other = await auditLogOf(withKey(mayfly, await issueKey(admin, { scopes: ['audit'] })))
    expect((await verified(within('whole'), other.public_key)).problems).not.toEqual([])
    expect(await othersAccept(within('whole'), other.public_key)).toEqual([false, false])
  })
})
