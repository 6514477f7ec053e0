import { Webhook } from 'standardwebhooks'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  create,
  createInbox,
  pagesFrom,
  type DomainJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { endpointsPerTest } from '#test/harness/endpoint.js'
import { startDns, type DnsServer, type NameRecords } from '#test/harness/dns.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

const MX = ['10 mx.mayfly.example']
const DAY_MS = 86_400_000

interface EventJson {
  type: string
  data: { state: string }
}

describe('domains', () => {
  const endpoints = endpointsPerTest()
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let dns: DnsServer
  let mayfly: MayflyWithClock
  let other: Target

  beforeAll(async () => {
    folder = await makeFolder()
    dns = await startDns({})
    mayfly = await startWithClock(folder.path, Date.now(), {
      MAYFLY_COUNT_USAGE: 'false',
      MAYFLY_DNS_SERVERS: dns.address,
      MAYFLY_MX_HOST: 'mx.mayfly.example',
      MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true',
    })
    await mayfly.runAhead(0)
    other = withKey(mayfly, (await openAccount(mayfly)).key)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
    dns.dispose()
  })

  const register = (body: object, target: Target = mayfly) =>
    create<DomainJson>(target, '/v1/domains', { environment: 'staging', ...body })
  const verify = async ({ id }: DomainJson, target: Target = mayfly) =>
    (await call<DomainJson>(target, 'POST', `/v1/domains/${id}/verify`)).body
  const read = async ({ id }: DomainJson, target: Target = mayfly) =>
    (await call<DomainJson>(target, 'GET', `/v1/domains/${id}`)).body
  const statuses = ({ records }: DomainJson) => records.map(({ status }) => status)

  /** What the DNS zone of a domain must have. */
  const recordsFor = ({ name, records }: DomainJson): Record<string, NameRecords> => ({
    [`_mayfly-challenge.${name}`]: { TXT: [records[0]?.value ?? ''] },
    [name]: { MX },
  })

  /** Waits for a check by the lifecycle role that leaves the domain in this state. */
  async function untilChecked(before: DomainJson, state: string): Promise<DomainJson> {
    return until(`a check that finds ${before.name} ${state}`, async () => {
      const domain = await read(before)
      return domain.checked_at !== before.checked_at && domain.state === state ? domain : null
    })
  }

  it('are verified once their records are in DNS, lapse without them, and come back', async () => {
    const endpoint = await endpoints.start()
    const staging = withKey(mayfly, await issueKey(mayfly, { environment: 'staging', scopes: ['admin'] }))
    const hook = { url: endpoint.url, events: ['domain.verified', 'domain.lapsed'] }
    const webhook = await registerWebhook(staging, '/v1/webhooks', hook)
    await registerWebhook(mayfly, '/v1/webhooks', hook)

    const registered = await register({ name: 'Life.example' })
    expect(registered).toMatchObject({
      ...{ name: 'life.example', environment: 'staging', state: 'pending', hosted: false },
      ...{ subdomains: false, catch_all: { action: 'reject' }, verified_at: null },
      records: [
        {
          ...{ type: 'TXT', name: '_mayfly-challenge.life.example', zone_name: '_mayfly-challenge' },
          ...{ value: expect.stringMatching(/^token=[0-9a-z]{32}$/) as unknown, priority: null },
        },
        {
          ...{ type: 'MX', name: 'life.example', zone_name: '@', value: 'mx.mayfly.example', priority: 10 },
        },
      ],
    })
    let domain = await until('the first check', async () => {
      const found = await read(registered)
      return found.checked_at === null ? null : found
    })
    expect([domain.state, ...statuses(domain)]).toEqual(['pending', 'missing', 'missing'])

    dns.zone = recordsFor(domain)
    await mayfly.skip(60_000)
    domain = await untilChecked(domain, 'verified')
    expect(statuses(domain)).toEqual(['valid', 'valid'])
    const verifiedAt = domain.verified_at

    dns.zone = {}
    for (const state of ['verified', 'verified', 'lapsed']) {
      await mayfly.skip(DAY_MS)
      domain = await untilChecked(domain, state)
      expect(domain.verified_at).toBe(verifiedAt)
    }
    dns.zone = recordsFor(domain)
    await mayfly.skip(DAY_MS)
    domain = await untilChecked(domain, 'verified')
    expect(domain.verified_at).not.toBe(verifiedAt)

    await until('all deliveries', () => endpoint.requests.length === 3)
    const { id, name, environment } = domain
    const states = endpoint.requests.map(({ headers, body }) => {
      const { type, data } = new Webhook(webhook.secret).verify(
        body,
        headers as Record<string, string>,
      ) as EventJson
      expect(data).toEqual({ id, name, environment, state: type.slice('domain.'.length) })
      return data.state
    })
    expect(states).toEqual(['verified', 'lapsed', 'verified'])
    const deliveries = await deliveriesOf(staging, webhook.id)
    expect(deliveries.map(({ domain_id }) => domain_id)).toEqual([id, id, id])
  }, 60_000)

  it('keep the last results if the name servers give no clear answer', async () => {
    const domain = await register({ name: 'kept.example' })
    dns.zone = recordsFor(domain)
    expect(await verify(domain)).toMatchObject({ state: 'verified' })
    dns.zone = {
      '_mayfly-challenge.kept.example': { rcode: 'SERVFAIL' },
      'kept.example': { MX: ['10 mx.mayfly.example', '5 mx.other.example'] },
    }
    const checked = await verify(domain)
    expect(statuses(checked)).toEqual(['valid', 'invalid'])
    expect(checked.records[1]?.found).toEqual(['10 mx.mayfly.example', '5 mx.other.example'])
    for (const name of Object.keys(dns.zone)) dns.zone = { ...dns.zone, [name]: { rcode: 'SERVFAIL' } }
    expect(await verify(domain)).toEqual(checked)
  })

  it('have an MX record for all subdomains, if they include them', async () => {
    const domain = await register({ name: 'wide.example' })
    dns.zone = recordsFor(domain)
    expect(await verify(domain)).toMatchObject({ state: 'verified', subdomains: false })
    const path = `/v1/domains/${domain.id}`
    const { body: wide } = await call<DomainJson>(mayfly, 'PATCH', path, { body: { subdomains: true } })
    expect(wide.records[2]).toMatchObject({ type: 'MX', name: '*.wide.example', zone_name: '*' })
    expect(statuses(await verify(domain))).toEqual(['valid', 'valid', 'missing'])
    dns.zone = { ...dns.zone, '*.wide.example': { MX } }
    expect(statuses(await verify(domain))).toEqual(['valid', 'valid', 'valid'])
  })

  it('belong to the first account that proves them, until its TXT record is absent', async () => {
    const body = { name: 'both.example' }
    const [first, second] = await Promise.all([register(body), register(body, other)])
    const [mine, its] = [recordsFor(first), recordsFor(second)]
    const challenge = '_mayfly-challenge.both.example'
    const tokens = [mine, its].flatMap((zone) => zone[challenge]?.TXT ?? [])
    expect(new Set(tokens).size).toBe(2)

    dns.zone = { ...mine, [challenge]: { TXT: tokens } }
    const states = await Promise.all([verify(first), verify(second, other)])
    expect(states.map(({ state, name_taken }) => `${state} ${name_taken}`).toSorted()).toEqual([
      'pending true',
      'verified false',
    ])
    const isFirst = states[0].state === 'verified'
    const stateOf = async () => [(await read(first)).state, (await read(second, other)).state]

    dns.zone = isFirst ? its : mine
    await (isFirst ? verify(second, other) : verify(first))
    expect(await stateOf()).toEqual(isFirst ? ['failed', 'verified'] : ['verified', 'failed'])
  })

  it('are hosted below the mail domain without DNS records', async () => {
    expect(await create<DomainJson>(mayfly, '/v1/domains', { hosted: true })).toMatchObject({
      environment: 'development',
    })
    const { name, ...hosted } = await register({ hosted: true })
    expect(name).toMatch(/^[0-9a-z]{8}\.mayfly\.test$/)
    expect(hosted).toMatchObject({ state: 'verified', hosted: true, records: [] })
    expect(hosted.catch_all).toEqual({ action: 'create' })
    const catchAll = { action: 'create', duration: '2h', labels: { team: 'qa' } }
    expect(await register({ hosted: true, catch_all: catchAll })).toMatchObject({ catch_all: catchAll })
  })

  it('are listed, changed and deleted', async () => {
    const owner = withKey(mayfly, (await openAccount(mayfly)).key)
    const domains: DomainJson[] = []
    for (const n of [1, 2, 3]) domains.push(await register({ name: `${n}.listed.example` }, owner))
    const names = async () =>
      (await pagesFrom<DomainJson>(owner, '/v1/domains?limit=2')).flatMap(({ body }) =>
        body.map(({ name }) => name),
      )
    expect(await names()).toEqual(['3.listed.example', '2.listed.example', '1.listed.example'])
    const [first, second] = domains
    if (first === undefined || second === undefined) throw new Error('no domains')
    const path = `/v1/domains/${first.id}`

    const catchAll = { action: 'create', labels: { run: '1' } }
    const changed = await call(owner, 'PATCH', path, { body: { catch_all: catchAll } })
    expect(changed).toMatchObject({ status: 200, body: { catch_all: catchAll } })
    const zoneFile = await call<string>(owner, 'GET', `${path}/zonefile`)
    expect(zoneFile.headers.get('content-type')).toBe('text/dns; charset=utf-8')
    expect(zoneFile.body.split('\n').slice(1)).toEqual([
      `_mayfly-challenge.1.listed.example. 3600 IN TXT "${first.records[0]?.value}"`,
      '1.listed.example. 3600 IN MX 10 mx.mayfly.example.',
      '',
    ])

    expect(await call(owner, 'DELETE', path)).toMatchObject({ status: 200, body: { id: first.id } })
    expect(await names()).toEqual(['3.listed.example', '2.listed.example'])
    for (const method of ['GET', 'DELETE']) {
      expectProblem(await call(owner, method, path), { status: 404, code: 'not-found' })
    }
    for (const [method, target] of [
      ['GET', mayfly],
      ['DELETE', mayfly],
      ['PATCH', mayfly],
    ] as const) {
      const body = method === 'PATCH' ? { body: { subdomains: true } } : {}
      const answer = await call(target, method, `/v1/domains/${second.id}`, body)
      expectProblem(answer, { status: 404, code: 'not-found' })
    }
    const reader = withKey(mayfly, await issueKey(owner, { scopes: ['inboxes', 'read'] }))
    expectProblem(await call(reader, 'GET', '/v1/domains'), { status: 403, code: 'missing-scope' })
  })

  it('are registered once by repeated requests', async () => {
    const headers = { 'idempotency-key': 'domain-of-this-test' }
    const body = { name: 'once.example', environment: 'staging' }
    const answers = [1, 2].map(() => call<DomainJson>(mayfly, 'POST', '/v1/domains', { body, headers }))
    const done = (await Promise.all(answers)).filter(({ status }) => status === 201)
    const again = await call<DomainJson>(mayfly, 'POST', '/v1/domains', { body, headers })
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(done.map((answer) => answer.body.id)).toContain(again.body.id)
    const repeated = await call<ProblemJson>(mayfly, 'POST', '/v1/domains', { body })
    expectProblem(repeated, {
      status: 409,
      code: 'address-taken',
      detail: /already has a domain with this name/,
    })
  })

  test.each([
    [{ name: 'com' }, '/name', 'public suffix'],
    [{ name: 'mayfly.test' }, '/name', 'must not be the mail domain'],
    [{ name: 'a.mayfly.test' }, '/name', 'must not be the mail domain'],
    [{ name: '192.0.2.1' }, '/name', 'must be a domain name'],
    [{ name: 'x.'.repeat(150) }, '/name', 'at most 235 characters'],
    [{ name: 1 }, '/name', 'must be a string of at most 235'],
    [{}, '', 'name or hosted must be given'],
    [{ hosted: true, name: 'acme.example' }, '/name', 'has no name of its own'],
    [{ hosted: true, environment: 'No' }, '/environment', 'environment must be'],
    [{ hosted: true, catch_all: { action: 'drop' } }, '/catch_all', 'reject, create or deliver'],
    [{ hosted: true, catch_all: { action: 'reject', labels: {} } }, '/catch_all', 'must not have labels'],
    [{ hosted: true, catch_all: { action: 'create', duration: '2y' } }, '/catch_all', 'must have a duration'],
    [{ hosted: true, catch_all: { action: 'create', duration: '9w' } }, '/catch_all/duration', 'at most 30d'],
    [
      { hosted: true, catch_all: { action: 'create', labels: { 'a:b': '' } } },
      '/catch_all',
      'must have labels',
    ],
    [{ hosted: true, catch_all: { action: 'deliver' } }, '/catch_all', 'the inbox_id of an inbox'],
  ])('%j are refused at %s: %s', async (body, pointer, detail) => {
    const answer = await call<ProblemJson>(mayfly, 'POST', '/v1/domains', {
      body: { environment: 'staging', ...body },
    })
    expectProblem(answer, { status: 400, code: 'invalid-request' })
    expect(answer.body.errors).toEqual([{ pointer, detail: expect.stringContaining(detail) as unknown }])
  })

  it('deliver to an inbox of their environment only', async () => {
    const inbox = await createInbox(mayfly)
    const catchAll = { action: 'deliver', inbox_id: inbox.id }
    const body = (environment: string) => ({ hosted: true, environment, catch_all: catchAll })
    const answers = ['development', 'production', 'staging'].map((environment) =>
      call<DomainJson & ProblemJson>(mayfly, 'POST', '/v1/domains', { body: body(environment) }),
    )
    const done = (await Promise.all(answers)).map(({ status }) => status)
    expect(done.toSorted()).toEqual([201, 400, 400])
  })
})
