import { hash } from 'node:crypto'
import { writeOffsetCursor } from '#apps/api/http/list-pages.js'
import { brand } from '#libs/domain/ids/typeid.js'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, nextOf, send, type Target } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { join } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'
import {
  auditLogOf,
  downloadLog,
  factsOf,
  fileOf,
  proves,
  type AuditLogJson,
  type DownloadedLog,
  type ErasureJson,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'

interface AuditEventJson {
  index: number
  id: string
  type: string
  time: string
  actor: string | null
  environment: string
  subject: string
  position: string
  record_sha256: string
}

const ERASED = 'mayfly.inbox.erased'

interface EventJson {
  id: string
  type: string
  time: string
  key_id: string | null
  position: { topic: string; partition: number; offset: number }
}

describe('the audit log of an account', () => {
  let mayfly: Mayfly
  let auditor: Target
  let log: AuditLogJson

  beforeAll(async () => {
    mayfly = await startMayfly()
    // Waiting for checkpoints takes more requests than smaller plans allow on a fast machine.
    const admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise' })).key)
    auditor = withKey(mayfly, await issueKey(admin, { scopes: ['audit', 'inboxes', 'read', 'admin'] }))
    log = await auditLogOf(auditor)
  })
  afterAll(() => mayfly.dispose())

  /** Downloads it again until a checkpoint has the event. */
  const downloadWith = (eventId: string) =>
    until('a checkpoint with the event', async () => {
      const answer = await fileOf(auditor, `${log.id}/checkpoint`).catch(() => null)
      const found = answer === null ? null : await downloadLog(auditor, log)
      return found?.leaves.some(({ id }) => id === eventId) === true ? found : null
    })

  const eventsOf = async (inboxId: string) =>
    (await call<EventJson[]>(auditor, 'GET', `/v1/inboxes/${inboxId}/history`)).body

  const eventPath = (eventId: string) => `/v1/audit/logs/${log.id}/events/${eventId}`

  async function inboxWithHistory(): Promise<{ id: string; events: EventJson[] }> {
    const { id, address } = await createInbox(auditor)
    await send(auditor, address, mail('one'))
    await until('the mail', async () => (await eventsOf(id)).length === 2)
    await call(auditor, 'DELETE', `/v1/inboxes/${id}`)
    return { id, events: await eventsOf(id) }
  }

  let inbox: { id: string; events: EventJson[] }
  let downloaded: DownloadedLog

  beforeAll(async () => {
    inbox = await inboxWithHistory()
    downloaded = await downloadWith(inbox.events.at(-1)?.id ?? '')
  })

  // First, since a checkpoint has just been taken.
  it('asks to repeat the proof of an event that no checkpoint has yet', async () => {
    const { id } = await createInbox(auditor)
    const [event] = await eventsOf(id)
    const path = `${eventPath(event?.id ?? '')}/proof`
    const first = await call(auditor, 'GET', path)
    expectProblem(first, { status: 409, code: 'not-yet-checkpointed' })
    expect(first.headers.get('retry-after')).toMatch(/^\d+$/)
    await until('the proof', async () => (await call(auditor, 'GET', path)).status === 200)
  })

  it('is signed, and has a leaf for each event of the account and its inboxes', () => {
    const leaves = downloaded.leaves.filter(({ type }) => type !== ERASED)
    expect(downloaded.origin).toBe(log.origin)
    expect(log.origin).toMatch(new RegExp(`^[^/]+/v1/audit/logs/${log.id}$`))
    expect(leaves.filter(({ subject }) => subject === inbox.id)).toMatchObject(
      inbox.events.map(({ id, key_id: actor, position }) => ({
        id,
        actor,
        environment: 'staging',
        ...position,
      })),
    )
    const account = leaves.filter(({ topic }) => topic === 'account-events').map(({ type }) => type)
    expect(account).toEqual([
      'mayfly.account.opened',
      'mayfly.account.api-key-issued',
      'mayfly.account.api-key-issued',
    ])
    const positions = downloaded.leaves.map(
      ({ topic, partition, offset }) => `${topic}/${partition}/${offset}`,
    )
    expect(new Set(positions).size).toBe(downloaded.size)
  })

  it('has canonical JSON without anything personal', () => {
    for (const [at, entry] of downloaded.entries.entries()) {
      const leaf = downloaded.leaves[at] as unknown as Record<string, unknown>
      const sorted = Object.fromEntries(
        Object.keys(leaf)
          .toSorted()
          .map((name) => [name, leaf[name]]),
      )
      expect(entry).toBe(JSON.stringify(sorted))
      expect(entry).not.toContain('@')
    }
  })

  it('proves an event offline', async () => {
    const [event] = inbox.events
    const index = downloaded.leaves.findIndex(({ id }) => id === event?.id)
    const { body } = await call<string>(auditor, 'GET', `${eventPath(event?.id ?? '')}/proof`)
    const entry = downloaded.entries[index] ?? ''
    expect(proves(body, index, entry, log.public_key)).toBe(true)
    expect(proves(body, index, `${entry} `, log.public_key)).toBe(false)
  })

  it('certifies that an inbox was erased', async () => {
    const ended = inbox.events.at(-1)
    const path = `/v1/inboxes/${inbox.id}/erasure`
    const { body } = await until('the certificate', async () => {
      const answer = await call<ErasureJson>(auditor, 'GET', path)
      if (answer.status === 200) return answer
      expectProblem(answer, { status: 409, code: 'not-yet-checkpointed' })
      return null
    })
    expect(body).toMatchObject({
      ...{ inbox_id: inbox.id, state: 'deleted', ended_at: ended?.time, actor: ended?.key_id },
      ...{ log_id: log.id, erased_at: expect.stringMatching(/Z$/) as string },
    })
    expect(Date.parse(body.copies_gone_by) - Date.parse(body.erased_at)).toBe(3_600_000)
    expect(JSON.parse(body.leaf)).toMatchObject({ type: ERASED })
    const { inbox_id, ended_at, actor, erased_at, copies_gone_by } = body
    expect(factsOf(body, log.public_key)).toMatchObject({
      ...{ inbox_id, state: 'deleted', ended_at, actor, erased_at, copies_gone_by },
    })
    expect(await eventsOf(inbox.id)).toEqual(inbox.events)
  })

  it('certifies no erasure of an active inbox, or for somebody else', async () => {
    const { id } = await createInbox(auditor)
    const active = await call(auditor, 'GET', `/v1/inboxes/${id}/erasure`)
    expectProblem(active, { status: 404, code: 'not-found' })
    const other = withKey(mayfly, (await openAccount(mayfly)).key)
    const foreign = withKey(mayfly, await issueKey(other, { scopes: ['audit'] }))
    const hidden = await call(foreign, 'GET', `/v1/inboxes/${inbox.id}/erasure`)
    expectProblem(hidden, { status: 404, code: 'not-found' })
    const reader = withKey(mayfly, await issueKey(auditor, { scopes: ['read'] }))
    const refused = await call(reader, 'GET', `/v1/inboxes/${inbox.id}/erasure`)
    expectProblem(refused, { status: 403, code: 'missing-scope' })
  })

  it('has the records of its leaves', async () => {
    const { leaves } = downloaded
    const records = `${log.id}/records?from=1&to=${leaves.length}`
    const lines = (await fileOf(auditor, records)).toString().split('\n')
    expect(lines.pop()).toBe('')
    expect(lines.map((line) => hash('sha256', line))).toEqual(
      leaves.slice(1).map(({ record_sha256 }) => record_sha256),
    )
    expect((await fileOf(auditor, `${log.id}/records`)).toString().split('\n')).toContain(lines[0])
    const { size } = await downloadLog(auditor, log)
    const refused: [string, number][] = [
      ...(['to=0', 'from=1&to=1', 'from=-1&to=1', 'from=0&to=257', 'from=x'] as const).map(
        (query): [string, number] => [query, 400],
      ),
      [`from=${size + 50}&to=${size + 60}`, 404],
      [`from=${size + 50}`, 404],
    ]
    for (const [query, status] of refused) {
      await expect(fileOf(auditor, `${log.id}/records?${query}`)).rejects.toThrow(`: ${status} `)
    }
  })

  it('lists its events page by page, filtered', async () => {
    const list = async (query: string) => {
      const events: AuditEventJson[] = []
      let path: string | null = `/v1/audit/logs/${log.id}/events?${query}`
      while (path !== null) {
        const answer = await call<AuditEventJson[]>(auditor, 'GET', path)
        expect(answer.status).toBe(200)
        // Later leaves may be added between two lists.
        events.push(...answer.body.filter(({ index }) => index < downloaded.size))
        path = nextOf(answer)
      }
      return events
    }
    const all = await list('limit=3')
    expect(all.slice(0, downloaded.size)).toEqual(
      downloaded.leaves.map(({ topic, partition, offset, ...leaf }, index) => ({
        ...{ ...leaf, index },
        position: `${topic}/${partition}/${offset}`,
      })),
    )
    expect((await list('order=desc&limit=4')).slice(-downloaded.size)).toEqual(
      all.slice(0, downloaded.size).toReversed(),
    )
    const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id)
    expect(idsOf((await list(`subject=${inbox.id}`)).filter(({ type }) => type !== ERASED))).toEqual(
      idsOf(inbox.events),
    )
    expect(idsOf(await list(`subject=${inbox.id}&type=mayfly.inbox.created`))).toEqual([inbox.events[0]?.id])
    expect(idsOf(await list(`subject=${inbox.id}&type=inbox.created`))).toEqual([inbox.events[0]?.id])
    expect(idsOf(await list('type=inbox'))).toEqual(
      idsOf(all.filter(({ type }) => type.startsWith('mayfly.inbox.'))),
    )
    expect(await list(`actor=key_01h455vb4pex5vsknk084sn02q`)).toEqual([])
    const { time = '' } = all[2] ?? {}
    expect(await list(`to=${time}`)).toEqual(all.filter((event) => event.time < time))
    expect(await list(`from=${time}`)).toEqual((await list('')).filter((event) => event.time >= time))
  })

  it('ends its pages at its last event, whatever the cursor says', async () => {
    const id = brand('log', log.id)
    const cursor = writeOffsetCursor(id, { from: 1_000_000_000, to: 2 ** 46, end: null })
    for (const order of ['asc', 'desc']) {
      const path = `/v1/audit/logs/${id}/events?order=${order}&cursor=${cursor}`
      const answer = await call(auditor, 'GET', path)
      expect([answer.status, answer.body, nextOf(answer)]).toEqual([200, [], null])
    }
  })

  it('has tiles and bundles of 256 hashes and entries', async () => {
    const made = await create<{ id: string }[]>(auditor, '/v1/inboxes/bulk', { count: 300 })
    const [event] = await eventsOf(made.at(-1)?.id ?? '')
    const { size } = await downloadWith(event?.id ?? '')
    expect(size).toBeGreaterThan(300)
    const partial = String(size - 256)
    const statusOf = async (path: string) => {
      const response = await fetch(`${auditor.url}/v1/audit/logs/${log.id}/${path}`, {
        headers: { authorization: `Bearer ${auditor.apiKey}` },
      })
      await response.arrayBuffer()
      return response.status
    }
    for (const path of ['tile/0/000', 'tile/entries/000', 'tile/1/000.p/1', `tile/0/001.p/${partial}`]) {
      expect([path, await statusOf(path)]).toEqual([path, 200])
    }
    const missing = [
      ...[
        'tile/0/001',
        'tile/0/000.p/256',
        'tile/0/000.p/0',
        'tile/0/000.p/01',
        'tile/0/x000/000',
        'tile/0/0',
      ],
      ...[
        'tile/00/000',
        'tile/6/000',
        'tile/64/000',
        'tile/-1/000',
        'tile/entries/002',
        'tile/entries/000/1',
      ],
      ...[
        'tile/1/000',
        'tile/1/000.p/2',
        `tile/0/001.p/${size}`,
        'tile/0/x999/x999/999',
        'tile/0/%2e%2e/000',
      ],
    ]
    for (const path of missing) expect([path, await statusOf(path)]).toEqual([path, 404])
  })

  it('is for keys with the scope audit, of its account only', async () => {
    const reader = withKey(mayfly, await issueKey(auditor, { scopes: ['read'] }))
    const other = withKey(mayfly, (await openAccount(mayfly)).key)
    const foreign = withKey(mayfly, await issueKey(other, { scopes: ['audit'] }))
    const [event] = inbox.events
    for (const path of ['', `/${log.id}/events`, `/${log.id}/events/${event?.id ?? ''}/proof`]) {
      expectProblem(await call(reader, 'GET', `/v1/audit/logs${path}`), {
        status: 403,
        code: 'missing-scope',
      })
    }
    expect((await auditLogOf(foreign)).id).not.toBe(log.id)
    const paths = ['events', `events/${event?.id ?? ''}/proof`]
    for (const path of paths) {
      const answer = await call(foreign, 'GET', `/v1/audit/logs/${log.id}/${path}`)
      expectProblem(answer, { status: 404, code: 'not-found' })
    }
    await expect(fileOf(foreign, `${log.id}/checkpoint`)).rejects.toThrow(/: 404 /)
    await expect(fileOf(foreign, `${log.id}/tile/0/000`)).rejects.toThrow(/: 404 /)
    await expect(fileOf(foreign, `${log.id}/records?from=0&to=1`)).rejects.toThrow(/: 404 /)
    await expect(fileOf(reader, `${log.id}/records?from=0&to=1`)).rejects.toThrow(/: 403 /)
    await expect(fileOf(reader, `${log.id}/tile/entries/000`)).rejects.toThrow(/: 403 /)
    const { headers } = await fetch(`${auditor.url}/v1/audit/logs/${log.id}/tile/0/000.p/1`, {
      headers: { authorization: `Bearer ${auditor.apiKey}` },
    })
    expect(headers.get('content-type')).toBe('application/octet-stream')
    const unknown = await call(auditor, 'GET', `${eventPath('evt_01h455vb4pex5vsknk084sn02q')}/proof`)
    expectProblem(unknown, { status: 404, code: 'not-found' })
  })

  it('is for auditors of all environments', async () => {
    const { target: whole } = await join(auditor, { role: 'auditor' })
    const { target: restricted } = await join(auditor, { role: 'auditor', environments: ['staging'] })
    expect((await auditLogOf(whole)).id).toBe(log.id)
    const erasure = `/v1/inboxes/${inbox.id}/erasure`
    for (const path of ['/v1/audit/logs', erasure, `/v1/audit/logs/${log.id}/records?from=0&to=1`]) {
      expectProblem(await call(restricted, 'GET', path), { status: 403, code: 'missing-scope' })
    }
    const key = await issueKey(auditor, { environment: 'production', scopes: ['audit'] })
    const elsewhere = await call(withKey(mayfly, key), 'GET', erasure)
    expectProblem(elsewhere, { status: 404, code: 'not-found' })
  })
})
