import { cp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'
import { auditLogOf, fileOf, verifyCheckpoint, type AuditLogJson } from '#test/harness/transparency-log.js'
import { messageOf } from '#libs/runtime/errors.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { Auditor, digestsOf } from './auditor.js'
import { openLog } from './stored-log.js'

const ROUNDS = 3
/** Leaves are appended, and shown, within this time. */
const MAX_PAUSE_MS = 1_000

describe('the audit log, killed at random moments', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it(
    'never contradicts a checkpoint that it has signed, or a state as of it, and has every event once, also after the views are lost',
    async () => {
      const auditor = await Auditor.of(mayfly)
      const { id } = await createInbox(mayfly)
      const stateAsOf = async (asOf: number | string) => {
        const path = `/v1/inboxes/${id}?as_of=${asOf}`
        const { headers, body } = await call<Partial<InboxJson>>(mayfly, 'GET', path)
        // The first checkpoint may be from before the inbox.
        return { size: Number(headers.get('mayfly-as-of')), labels: body.labels ?? null }
      }
      const states: Awaited<ReturnType<typeof stateAsOf>>[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        const sizeBefore = auditor.size
        const over = new AbortController()
        const creating = (async () => {
          while (!over.signal.aborted) await createInbox(mayfly).catch(() => null)
        })()
        await until('a further checkpoint', async () => (await auditor.look(mayfly)) > sizeBefore)
        await call(mayfly, 'PATCH', `/v1/inboxes/${id}`, { body: { labels: { round: String(round) } } })
        states.push(await stateAsOf(auditor.size))
        await pause(Math.random() * MAX_PAUSE_MS)
        over.abort()
        await mayfly.end('SIGKILL')
        await creating
        if (round === 1) await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
        mayfly = await mayfly.restart()
        await until('readiness', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
      }
      await createInbox(mayfly)
      await mayfly.end('SIGTERM')
      const log = await openLog(mayfly.dataDir)
      const digests = await digestsOf(log)
      await log.close()
      mayfly = await mayfly.restart()
      const { checkpoints } = auditor
      expect(new Set(checkpoints.map(({ size }) => size)).size).toBeGreaterThanOrEqual(ROUNDS)
      await auditor.verify(mayfly, digests)
      expect(new Set(states.map(({ labels }) => JSON.stringify(labels))).size).toBeGreaterThan(1)
      for (const state of states) expect(await stateAsOf(state.size)).toEqual(state)
      for (const { size, cosignedAt } of checkpoints) {
        expect((await stateAsOf(new Date(cosignedAt * 1_000).toISOString())).size).toBe(size)
      }
    },
    ROUNDS * 60_000,
  )
})

describe('an audit log with a checkpoint that was kept elsewhere', () => {
  let mayfly: Mayfly
  let kept: string

  beforeAll(async () => {
    mayfly = await startMayfly()
    kept = join(mayfly.dataDir, 'kept-checkpoint')
  })
  afterAll(() => mayfly.dispose())

  /** The checkpoint, or the problem that is answered instead. */
  const checkpointOf = (id: string): Promise<string> =>
    fileOf(mayfly, `${id}/checkpoint`).then(String, (error: unknown) => messageOf(error))
  const sized = (id: string, least: number) =>
    until('a checkpoint', async () => {
      const note = await checkpointOf(id)
      return Number(note.split('\n')[1]) >= least ? note : null
    })
  const restartWith = async (env: Record<string, string>) => {
    mayfly = await startMayfly({ env, dataDir: mayfly.dataDir, apiKey: mayfly.apiKey })
    await until('readiness', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
  }

  it('is signed while it continues it, and not after an older backup was restored', async () => {
    const { id } = await auditLogOf(mayfly)
    await mayfly.end('SIGTERM')
    const [eventLog, backup] = ['event-log', 'backup'].map((name) => join(mayfly.dataDir, name)) as [
      string,
      string,
    ]
    await cp(eventLog, backup, { recursive: true })
    await restartWith({})
    for (let number = 0; number < 5; number += 1) await createInbox(mayfly)
    await writeFile(kept, await sized(id, 7))
    await mayfly.end('SIGTERM')
    await restartWith({ MAYFLY_AUDIT_LAST_CHECKPOINT: kept })
    await createInbox(mayfly)
    await sized(id, 8)

    await mayfly.end('SIGTERM')
    await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
    await rm(eventLog, { recursive: true })
    await cp(backup, eventLog, { recursive: true })
    await restartWith({ MAYFLY_AUDIT_LAST_CHECKPOINT: kept })
    for (const detail of [
      /It has \d leaves; the one that was kept has \d+\./,
      /Its first \d+ leaves have the root /,
    ]) {
      await until('a refusal', async () => {
        const answer = await checkpointOf(id)
        expect(answer).not.toContain('\n\n')
        return answer.includes('"audit-log-contradicted"') && detail.test(answer) ? true : null
      })
      for (let number = 0; number < 12; number += 1) await createInbox(mayfly)
    }
  })

  it('does not start with a file without a checkpoint', async () => {
    await mayfly.end('SIGTERM')
    await writeFile(kept, 'none')
    const env = { MAYFLY_AUDIT_LAST_CHECKPOINT: kept }
    const started = startMayfly({ env, dataDir: mayfly.dataDir, apiKey: mayfly.apiKey })
    await expect(started).rejects.toThrow('has no checkpoint')
  })
})

describe('events that the event log no longer has', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('are named as expired: of states as of a moment and of certificates', async () => {
    const { id: logId } = await auditLogOf(mayfly)
    const { id } = await createInbox(mayfly)
    const path = `/v1/inboxes/${id}`
    await call(mayfly, 'DELETE', path)
    const events = await until('a checkpoint with its erasure', async () => {
      const { status, body } = await call<{ index: number; type: string }[]>(
        mayfly,
        'GET',
        `/v1/audit/logs/${logId}/events?subject=${id}`,
      )
      return status === 200 && body.length === 3 ? body : null
    })
    const asOf = `as_of=${(events[0]?.index ?? 0) + 1}`
    for (const route of [`${path}?${asOf}`, `${path}/messages?${asOf}`, `${path}/erasure`]) {
      expect([route, (await call(mayfly, 'GET', route)).status]).toEqual([route, 200])
    }
    await mayfly.end('SIGTERM')
    const log = await openLog(mayfly.dataDir, (topic) => (topic === 'inbox-events' ? 0 : null))
    await log.prune()
    await log.close()
    mayfly = await mayfly.restart()
    await until('readiness', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
    for (const route of [`${path}?${asOf}`, `${path}/messages?${asOf}`, `${path}/erasure`]) {
      expectProblem(await call(mayfly, 'GET', route), { status: 410, code: 'history-expired' })
    }
    const history = await call<{ type: string }[]>(mayfly, 'GET', `${path}/history?${asOf}`)
    expect(history.body.map(({ type }) => type)).toEqual(['inbox.created'])
  })
})

describe('a checkpoint of an audit log that does not grow', () => {
  it('is signed again after ten minutes', async () => {
    const folder = await makeFolder()
    const mayfly = await startWithClock(folder.path, Date.now())
    try {
      await mayfly.runAhead(0)
      const log: AuditLogJson = await auditLogOf(mayfly)
      const read = async () =>
        verifyCheckpoint((await fileOf(mayfly, `${log.id}/checkpoint`)).toString(), log.public_key)
      await until('the first checkpoint', () => read().catch(() => null))
      await mayfly.skip(15_000)
      const whole = await until('a checkpoint of all', async () => {
        const checkpoint = await read()
        return checkpoint.size === (await auditLogOf(mayfly)).size && checkpoint
      })
      await mayfly.skip(9 * 60_000)
      expect(await read()).toEqual(whole)
      await mayfly.skip(2 * 60_000)
      const again = await read()
      expect(again).toEqual({ ...whole, cosignedAt: again.cosignedAt })
      expect(again.cosignedAt - whole.cosignedAt).toBeGreaterThanOrEqual(600)
    } finally {
      await mayfly.close()
      await folder.remove()
    }
  })
})
