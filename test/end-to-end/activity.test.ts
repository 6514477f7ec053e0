import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  mail,
  messagesOf,
  nextOf,
  only,
  send,
  type Target,
} from '#test/harness/client.js'
import { secretIn, signIn } from '#test/harness/console.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { join } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'

interface ActivityJson {
  id: string
  time: string
  action: string
  actor: { type: string; id: string | null; name: string | null }
  subject: string
  environment: string | null
  outcome: string
  request_id: string | null
  remote_address: string | null
  changes: { field: string; from: unknown; to: unknown }[]
}

describe('the activity of an account', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  const newAccount = async (): Promise<Target> => withKey(mayfly, (await openAccount(mayfly)).key)

  const list = async (target: Target, query = '') =>
    (await call<ActivityJson[]>(target, 'GET', `/v1/activity?${query}`)).body

  const actionsIn = (entries: readonly ActivityJson[]) => entries.map(({ action }) => action)

  /** All pages, by `Link`. */
  async function all(
    target: Target,
    query: string,
  ): Promise<{ entries: ActivityJson[]; cursor: string; pages: number }> {
    const entries: ActivityJson[] = []
    let path: string | null = `/v1/activity?${query}`
    let [cursor, pages] = ['', 0]
    while (path !== null) {
      const answer = await call<ActivityJson[]>(target, 'GET', path)
      expect(answer.status).toBe(200)
      entries.push(...answer.body)
      cursor = answer.headers.get('mayfly-cursor') ?? ''
      pages += 1
      path = nextOf(answer)
    }
    return { entries, cursor, pages }
  }

  it('says who did what, from which request, and what has changed', async () => {
    const admin = await newAccount()
    const { member, target } = await join(admin, { role: 'owner' })
    const other = await join(admin, { role: 'viewer' })
    const changed = await call(target, 'PATCH', `/v1/members/${other.member.id}`, {
      body: { role: 'developer' },
    })
    const entry = only(await list(admin, `type=member.changed`))
    expect(entry).toEqual({
      id: expect.stringMatching(/^evt_/) as string,
      time: expect.stringMatching(/Z$/) as string,
      action: 'member.changed',
      actor: { type: 'member', id: member.id, name: member.email },
      ...{ subject: other.member.id, environment: null, outcome: 'applied' },
      ...{ request_id: changed.headers.get('x-request-id'), remote_address: '127.0.0.1' },
      changes: [{ field: 'role', from: 'viewer', to: 'developer' }],
    })

    const key = await issueKey(target, { name: 'CI', environment: 'staging', scopes: ['inboxes'] })
    await call(target, 'DELETE', `/v1/keys/${key.id}`)
    await call(admin, 'PUT', '/v1/quotas/inboxes', { body: { limit: 10 } })
    const [quota, revoked, issued] = await list(admin, 'limit=3')
    expect(quota).toMatchObject({ action: 'account.quota-set', actor: { type: 'key', name: 'admin' } })
    expect(quota?.changes).toEqual([{ field: 'quotas.inboxes', from: null, to: 10 }])
    expect(revoked).toMatchObject({ action: 'account.api-key-revoked', subject: key.id })
    expect(revoked?.changes).toEqual([
      { field: 'revoked_at', from: null, to: expect.stringMatching(/Z$/) as string },
    ])
    expect(issued).toMatchObject({ action: 'account.api-key-issued', actor: { id: member.id } })
    expect(issued?.changes).toContainEqual({ field: 'scopes', from: null, to: ['inboxes'] })
    // Nothing secret: neither a key, nor its hash.
    expect(JSON.stringify(await list(admin, 'limit=1000'))).not.toMatch(/mf_|[0-9a-f]{64}/)
  })

  it('has what was done with inboxes, without mail and names', async () => {
    const admin = await newAccount()
    const user = withKey(mayfly, await issueKey(admin, { environment: 'staging' }))
    const inbox = await createInbox(user, { name: 'Very private', labels: { run: '42' } })
    await send(mayfly, inbox.address, mail('Secret subject'))
    await messagesOf(user, inbox.id, 1)
    await call(user, 'PATCH', `/v1/inboxes/${inbox.id}`, { body: { name: 'Private too' } })
    await call(user, 'DELETE', `/v1/inboxes/${inbox.id}`)
    const entries = await list(admin, `subject=${inbox.id}&order=asc`)
    expect(actionsIn(entries)).toEqual(['inbox.created', 'inbox.changed', 'inbox.deleted'])
    expect(entries[1]?.changes).toEqual([{ field: 'name', from: null, to: null }])
    expect(JSON.stringify(entries)).not.toMatch(/rivate|Secret|run/)
    for (const { actor, environment, remote_address: address } of entries) {
      expect({ actor, environment, address }).toEqual({
        actor: { type: 'key', id: expect.stringMatching(/^key_/) as string, name: 'CI' },
        ...{ environment: 'staging', address: '127.0.0.1' },
      })
    }
  })

  it('is filtered', async () => {
    const admin = await newAccount()
    const { member, target } = await join(admin, { role: 'admin' })
    const [staging, production] = [
      withKey(mayfly, await issueKey(target, { environment: 'staging' })),
      withKey(mayfly, await issueKey(target, { environment: 'production' })),
    ]
    await createInbox(staging)
    const between = new Date().toISOString()
    await createInbox(production)
    expect(actionsIn(await list(admin, `actor=${member.id}`))).toEqual([
      'account.api-key-issued',
      'account.api-key-issued',
      'member.joined',
    ])
    const ofMembers = actionsIn(await list(admin, 'type=member&order=asc'))
    expect(ofMembers).toEqual(['member.invited', 'member.joined'])
    expect(await list(admin, 'type=memb')).toEqual([])
    const inStaging = await list(admin, 'environment=staging&type=inbox')
    expect(actionsIn(inStaging)).toEqual(['inbox.created'])
    expect(actionsIn(await list(admin, `from=${between}&type=inbox`))).toEqual(['inbox.created'])
    const before = await list(admin, `to=${between}&type=inbox`)
    expect(before.map(({ environment }) => environment)).toEqual(['staging'])
    expectProblem(await call(admin, 'GET', '/v1/activity?from=yesterday'), {
      status: 400,
      code: 'invalid-request',
    })

    // Keys are of an environment too.
    const keys = await list(admin, 'environment=staging&type=account.api-key')
    expect(actionsIn(keys)).toEqual(['account.api-key-issued'])

    // An auditor who is restricted sees only these environments.
    const auditor = await join(admin, { role: 'auditor', environments: ['staging'] })
    const seen = await list(auditor.target, 'limit=100')
    expect(new Set(seen.map(({ environment }) => environment))).toEqual(new Set(['staging']))
    // Others see nothing, and nobody sees another account.
    expectProblem(await call(staging, 'GET', '/v1/activity'), { status: 403, code: 'missing-scope' })
    expect(await list(await newAccount(), `actor=${member.id}`)).toEqual([])
  })

  it('is exported in pages, each change once, also those that follow', async () => {
    const admin = await newAccount()
    const user = withKey(mayfly, await issueKey(admin))
    const inboxes = await Promise.all(Array.from({ length: 20 }, () => createInbox(user)))
    const first = await all(admin, 'order=asc&limit=7')
    expect(first.pages).toBeGreaterThan(2)
    const created = first.entries.filter(({ action }) => action === 'inbox.created')
    expect(created.map(({ subject }) => subject).sort()).toEqual(inboxes.map(({ id }) => id).sort())
    expect(new Set(first.entries.map(({ id }) => id)).size).toBe(first.entries.length)
    const newestFirst = await all(admin, 'limit=7')
    expect(newestFirst.entries.map(({ id }) => id).sort()).toEqual(first.entries.map(({ id }) => id).sort())

    expect((await all(admin, `order=asc&cursor=${first.cursor}`)).entries).toEqual([])
    await call(user, 'DELETE', `/v1/inboxes/${inboxes[0]?.id}`)
    await create(admin, '/v1/webhooks', { url: 'https://ci.example/secret-path' })
    const headers = { accept: 'application/x-ndjson' }
    const path = `/v1/activity?order=asc&cursor=${first.cursor}`
    const lines = await call<string>(admin, 'GET', path, { headers })
    expect(lines.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
    const followed = lines.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ActivityJson)
    expect(actionsIn(followed)).toEqual(['inbox.deleted', 'webhook.registered'])
    expect(lines.body).not.toContain('secret-path')
    // A newest page has a cursor for what follows too.
    const newest = await call(admin, 'GET', '/v1/activity?limit=1')
    const after = await list(admin, `order=asc&cursor=${newest.headers.get('mayfly-cursor')}`)
    expect(after).toEqual([])
    expectProblem(await call(await newAccount(), 'GET', path), { status: 400, code: 'invalid-request' })
  })

  it('has changes that were ignored, and what the console and the server did', async () => {
    const admin = await newAccount()
    const one = await join(admin, { role: 'owner' })
    const other = await join(one.target, { role: 'owner' })
    await Promise.all([
      call(one.target, 'DELETE', `/v1/members/${other.member.id}`),
      call(other.target, 'DELETE', `/v1/members/${one.member.id}`),
    ])
    const removals = await list(admin, 'type=member.removed')
    expect(removals.filter(({ outcome }) => outcome === 'applied')).toHaveLength(1)
    const session = await signIn(admin)
    await session.ask(['DELETE', '/console/session'])
    const [ended, started] = await list(admin, 'type=account&limit=2')
    expect(started).toMatchObject({ action: 'account.console-session-started', actor: { type: 'key' } })
    expect(ended).toMatchObject({
      action: 'account.console-session-ended',
      ...{ actor: { type: 'session', id: session.id, name: null }, subject: session.id },
      changes: [{ field: 'state', from: 'active', to: 'ended' }],
    })
    // What an operator has done has no more of it.
    const opened = only(await list(admin, 'type=account.opened'))
    expect(opened).toMatchObject({
      ...{ actor: { type: 'operator', id: null, name: null }, request_id: null, remote_address: null },
    })
    expect(opened.changes).toContainEqual({ field: 'plan', from: null, to: 'pro' })
  })

  it('says who has made a link for whom, and who has used it', async () => {
    const admin = await newAccount()
    const { member, target } = await join(admin, { role: 'owner' })
    const other = await join(target, { role: 'viewer' })
    const link = await call<{ url: string }>(target, 'POST', '/console/links', {
      body: { member_id: other.member.id },
    })
    const { id } = await signIn(mayfly, secretIn(link.body.url))
    const [used, made] = await list(admin, `subject=${id}`)
    expect(made).toMatchObject({ action: 'account.console-link-created', actor: { id: member.id } })
    expect(made?.changes).toContainEqual({ field: 'member_id', from: null, to: other.member.id })
    expect(made?.changes).toContainEqual({ field: 'link_by', from: null, to: member.id })
    expect(used).toMatchObject({ action: 'account.console-session-started', actor: { id: other.member.id } })
    expect(used?.changes).toContainEqual({ field: 'state', from: 'offered', to: 'active' })
  })

  it('shows where the mail of a domain goes, and the tokens of inboxes', async () => {
    const admin = await newAccount()
    const user = withKey(mayfly, await issueKey(admin, { environment: 'staging' }))
    const inbox = await createInbox(user)
    const domain = await create<{ id: string }>(admin, '/v1/domains', {
      hosted: true,
      environment: 'staging',
    })
    const deliver = { catch_all: { action: 'deliver', inbox_id: inbox.id } }
    await call(admin, 'PATCH', `/v1/domains/${domain.id}`, { body: deliver })
    const [redirected] = await list(admin, `subject=${domain.id}&limit=1`)
    expect(redirected).toMatchObject({ action: 'domain.changed', environment: 'staging' })
    expect(redirected?.changes).toEqual([
      { field: 'catch_all', from: { action: 'create', labels: {} }, to: deliver.catch_all },
    ])
    const { id: token } = await create<{ id: string }>(user, `/v1/inboxes/${inbox.id}/tokens`, {
      access: 'read',
    })
    const issued = only(await list(admin, 'type=token.issued'))
    expect(issued).toMatchObject({ subject: inbox.id, changes: [{ field: 'token', from: null, to: token }] })
  })
})
