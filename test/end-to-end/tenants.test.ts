import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { invite, join } from '#test/harness/members.js'
import { registeredRoutes, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { auditLogOf } from '#test/harness/transparency-log.js'
import { registerWebhook } from '#test/harness/webhooks.js'
import { byGroup, reportOf, untilCounted, usageOf } from '#test/harness/usage.js'
import { SCOPES } from '#libs/domain/account/access.js'
import { ROLE_NAMES } from '#libs/domain/account/member.js'

const ALL_BUT_OPERATOR = SCOPES.filter((scope) => scope !== 'operator')
const ACCOUNTS = '/v1/accounts/{id}'
const SUFFIX = '01h455vb4pex5vsknk084sn02q'

/** Valid bodies of the routes that require one. */
const BODIES: Readonly<Record<string, object>> = {
  'PATCH /v1/accounts/{id}': { plan: 'pro' },
  'POST /v1/inboxes/{id}/webhooks': { url: 'https://ci.example/' },
  'POST /v1/emails/{id}/webhooks': { url: 'https://ci.example/' },
  'PUT /v1/inboxes/{id}/faults': [],
  'PUT /v1/emails/{id}/faults': [],
  'POST /v1/inboxes/{id}/messages': { from: 'app@example.com', subject: 'injected' },
  'POST /v1/emails/{id}/messages': { from: 'app@example.com', subject: 'injected' },
  'PATCH /v1/members/{id}': { role: 'viewer' },
  'PATCH /v1/webhooks/{id}': { state: 'disabled' },
  'PATCH /v1/domains/{id}': { subdomains: true },
  'POST /v1/webhooks/{id}/replays': { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
}

interface Ids {
  /** The id of a resource of the tenant. */
  own: string
  /** An unknown id. */
  unknown: string
}

describe('a resource of a tenant', () => {
  let mayfly: Mayfly
  let routes: string[]
  /** Ids by the path segment before the id. */
  let ids: Readonly<Record<string, Ids>>
  let owner: Target
  /** A key of another environment of the same account, with the same scopes. */
  let otherEnvironment: Target
  /** A key of another account, with the same scopes and environment. */
  let otherAccount: Target
  let otherOwner: Target

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, env: { LOG_LEVEL: 'debug' }, hasAnalytics: true })
    routes = registeredRoutes(mayfly)
    const scopes = ALL_BUT_OPERATOR
    const [account, another] = [await openAccount(mayfly), await openAccount(mayfly)]
    const admin = withKey(mayfly, account.key)
    const key = await issueKey(admin, { environment: 'staging', scopes })
    owner = withKey(mayfly, key)
    otherEnvironment = withKey(mayfly, await issueKey(admin, { environment: 'production', scopes }))
    otherAccount = withKey(
      mayfly,
      await issueKey(withKey(mayfly, another.key), { environment: 'staging', scopes }),
    )
    otherOwner = (await join(withKey(mayfly, another.key), { role: 'owner' })).target
    const inbox = await inboxWith(owner, mail('private'))
    // No request is sent to this URL: its test delivery is refused.
    const webhook = await registerWebhook(owner, '/v1/webhooks', { url: 'http://127.0.0.1:9/' })
    const sample = await call<{ id: string }>(owner, 'POST', `/v1/webhooks/${webhook.id}/test`)
    const replay = await call<{ id: string }>(owner, 'POST', `/v1/webhooks/${webhook.id}/replays`, {
      body: BODIES['POST /v1/webhooks/{id}/replays'],
    })
    const token = await call<{ id: string }>(owner, 'POST', `/v1/inboxes/${inbox.id}/tokens`)
    const domain = await call<{ id: string }>(owner, 'POST', '/v1/domains', {
      body: { hosted: true, environment: 'staging' },
    })
    const message = only(await messagesOf(owner, inbox.id, 1))
    await createInbox(owner, { labels: { run: '42' } })
    ids = {
      inboxes: { own: inbox.id, unknown: `inb_${SUFFIX}` },
      emails: { own: inbox.id, unknown: `inb_${SUFFIX}` },
      messages: { own: message.id, unknown: message.id },
      tokens: { own: token.body.id, unknown: `tok_${SUFFIX}` },
      attachments: { own: '0', unknown: '0' },
      webhooks: { own: webhook.id, unknown: `whk_${SUFFIX}` },
      deliveries: { own: sample.body.id, unknown: `dlv_${SUFFIX}` },
      replays: { own: replay.body.id, unknown: `rpl_${SUFFIX}` },
      domains: { own: domain.body.id, unknown: `dom_${SUFFIX}` },
      keys: { own: key.id, unknown: `key_${SUFFIX}` },
      members: { own: (await join(admin, { role: 'developer' })).member.id, unknown: `mem_${SUFFIX}` },
      invitations: { own: (await invite(admin, { role: 'viewer' })).id, unknown: `inv_${SUFFIX}` },
      logs: { own: (await auditLogOf(owner)).id, unknown: `log_${SUFFIX}` },
      events: { own: `evt_${SUFFIX}`, unknown: `evt_${SUFFIX}` },
      tile: { own: '0', unknown: '0' },
      accounts: { own: account.id, unknown: `acc_${SUFFIX}` },
    }
  })
  afterAll(() => mayfly.dispose())

  /**
   * The routes under /v1 with an id, except those of scope `operator`, which are for all accounts. A label, or the name of an
   * environment or quota, is no id: every tenant may use it.
   */
  const routesWithIds = () =>
    routes.filter((route) => / \/v1\/.*\{(?!label\}|name\}|quota\})/.test(route) && !route.includes(ACCOUNTS))

  async function request(target: Target, route: string, which: keyof Ids) {
    const [method = '', pattern = ''] = route.split(' ')
    const path = pattern.replaceAll(/(\w+)\/\{\w+\}/g, (_, collection: string) => {
      const known = ids[collection]
      // If this fails for a new resource: add an id of it to this suite, so that its routes are tested.
      if (known === undefined) throw new Error(`no ids are known for ${collection} in ${route}`)
      return `${collection}/${known[which]}`
    })
    const body = BODIES[route]
    return call(target, method, path, body === undefined ? {} : { body })
  }

  /** The problem without the parts that differ between any two requests: the request id and the requested ids. */
  async function problemOf(
    target: Target,
    route: string,
    which: keyof Ids,
    { mayLackScope = false } = {},
  ): Promise<string> {
    const answer = await request(target, route, which)
    if (route.startsWith('HEAD ')) return String(answer.status)
    const lacksScope = mayLackScope && answer.status === 403
    const { request_id: _, ...problem } = expectProblem(
      answer,
      lacksScope ? { status: 403, code: 'missing-scope' } : { status: 404, code: 'not-found' },
    )
    const texts = Object.values(ids).flatMap(({ own, unknown }) => [own, unknown])
    return texts.reduce(
      (text, id) => (id.length > 1 ? text.replaceAll(id, '<id>') : text),
      JSON.stringify(problem),
    )
  }

  it('has routes that the server lists, under both paths', () => {
    const found = routesWithIds()
    for (const family of ['/v1/inboxes', '/v1/emails']) {
      expect(found).toContain(`GET ${family}/{id}`)
      expect(found).toContain(`DELETE ${family}/{id}/messages/{message_id}`)
    }
    expect(found).toContain('POST /v1/keys/{id}/rotate')
    expect(found.length).toBeGreaterThan(20)
  })

  it('does not exist for keys of another account, on every path', async () => {
    for (const route of routesWithIds()) {
      const [own, unknown] = [
        await problemOf(otherAccount, route, 'own'),
        await problemOf(otherAccount, route, 'unknown'),
      ]
      expect({ route, answer: own }).toEqual({ route, answer: unknown })
      if (route.startsWith('HEAD ')) expect({ route, answer: own }).toEqual({ route, answer: '404' })
    }
  })

  it.each(ROLE_NAMES)('does not exist for a %s of another account, on every path', async (role) => {
    const permissions = ['content:read']
    const { target } = await join(otherOwner, { role, permissions })
    const answers = await Promise.all(
      routesWithIds().map(async (route) => ({
        route,
        own: await problemOf(target, route, 'own', { mayLackScope: true }),
        unknown: await problemOf(target, route, 'unknown', { mayLackScope: true }),
      })),
    )
    expect(answers.filter(({ own, unknown }) => own !== unknown)).toEqual([])
  })

  it('does not exist for keys of another environment of the account, except for what is of the whole account', async () => {
    for (const route of routesWithIds().filter(
      (each) => !/\/v1\/(keys|members|invitations|domains|audit\/logs)\/\{id\}/.test(each),
    )) {
      const [own, unknown] = [
        await problemOf(otherEnvironment, route, 'own'),
        await problemOf(otherEnvironment, route, 'unknown'),
      ]
      expect({ route, answer: own }).toEqual({ route, answer: unknown })
      if (route.startsWith('HEAD ')) expect({ route, answer: own }).toEqual({ route, answer: '404' })
    }
    // Scope admin covers the whole account.
    expect((await request(otherEnvironment, 'GET /v1/keys/{id}', 'own')).status).toBe(200)
  })

  it('that is an account does not exist without scope operator, not even the own account', async () => {
    for (const route of routes.filter((each) => each.includes(ACCOUNTS))) {
      for (const which of ['own', 'unknown'] as const) {
        expect((await request(owner, route, which)).status).toBe(403)
      }
    }
  })

  it('is not listed for another tenant', async () => {
    for (const path of ['/v1/inboxes?limit=1000', '/v1/emails?limit=1000', '/v1/webhooks?limit=100']) {
      for (const target of [otherAccount, otherEnvironment]) {
        const { status, body } = await call<InboxJson[]>(target, 'GET', path)
        expect({ status, body }).toEqual({ status: 200, body: [] })
      }
    }
    const { body } = await call<{ id: string }[]>(otherAccount, 'GET', '/v1/keys')
    expect(body.map(({ id }) => id)).not.toContain(ids.keys?.own)
  })

  it('is not in the run of another tenant with the same label', async () => {
    const { address } = await inboxWith(owner, mail('private'))
    const [inbox] = (await call<InboxJson[]>(owner, 'GET', '/v1/inboxes?limit=1')).body
    await call(owner, 'PATCH', `/v1/inboxes/${inbox?.id}`, { body: { labels: { run: 'private' } } })
    const kinds = async (target: Target) => {
      const { body } = await call<string>(target, 'POST', '/v1/runs/run:private/verify?id_header=Subject', {
        body: JSON.stringify({ recipient: address, id: 'private' }),
        headers: { 'content-type': 'application/x-ndjson' },
      })
      return [...body.matchAll(/"kind":"(\w+)"/g)].map(([, kind]) => kind)
    }
    expect(await kinds(owner)).toEqual(['summary'])
    for (const target of [otherAccount, otherEnvironment]) {
      expect(await kinds(target)).toEqual(['missing', 'summary'])
    }
  })

  it('is not counted or exported for another tenant', async () => {
    const counted = async (target: Target) => {
      const groups = byGroup(await usageOf(target, { group_by: 'key' }))
      return [...groups].flatMap(([key, { inboxes }]) => (inboxes > 0 ? [key] : []))
    }
    const owners = ids.keys?.own
    expect(
      await untilCounted(
        () => counted(owner),
        (keys) => keys.length > 0,
      ),
    ).toEqual([owners])
    expect(await counted(otherAccount)).toEqual([])
    const report = await untilCounted(
      () => reportOf(owner, 'run:42'),
      ({ inboxes }) => inboxes > 0,
    )
    expect(report).toMatchObject({ inboxes: 1 })
    expect(await reportOf(otherAccount, 'run:42')).toMatchObject({ requests: 0, inboxes: 0, mails: 0 })
    const file = async (target: Target) => {
      const answer = await call<string>(target, 'GET', '/v1/usage/export?table=inbox_events')
      expect(answer.status).toBe(200)
      return answer.body
    }
    expect(await file(owner)).toContain(owners)
    expect(await file(otherAccount)).toBe('')
  })

  it('still exists for its tenant afterwards', async () => {
    const paths = [
      'GET /v1/inboxes/{id}',
      'GET /v1/inboxes/{id}/messages/{message_id}/raw',
      'GET /v1/webhooks/{id}',
      'GET /v1/keys/{id}',
    ]
    for (const route of paths) expect((await request(owner, route, 'own')).status).toBe(200)
  })
})
