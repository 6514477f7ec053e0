import { issueKey, withKey } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, type DomainJson, type Target } from '#test/harness/client.js'
import { engineUnderTest } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { converse } from '#test/harness/smtp.js'
import { until } from '#test/harness/until.js'

interface RefusedJson {
  time: string
  recipient: string
  sender: string
  code: number
  reason: string
  count: number
}

describe('GET /v1/refused-mail', () => {
  let mayfly: SharedMayfly
  /** Another account. */
  let other: SharedMayfly
  let staging: Target
  /** The name of a domain in `staging` that refuses unknown addresses. */
  let domain: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    other = await sharedMayfly()
    staging = withKey(mayfly, await issueKey(mayfly, { environment: 'staging', scopes: ['read'] }))
    const hosted = { hosted: true, environment: 'staging', catch_all: { action: 'reject' } }
    domain = (await create<DomainJson>(mayfly, '/v1/domains', hosted)).name
  })

  const refusedOf = async (target: Target) => {
    const answer = await call<RefusedJson[]>(target, 'GET', '/v1/refused-mail')
    expect(answer.status).toBe(200)
    return answer.body
  }
  const recipientsOf = async (target: Target) => (await refusedOf(target)).map(({ recipient }) => recipient)

  const untilListed = (target: Target, recipient: string) =>
    until(`${recipient} to be listed`, async () =>
      (await refusedOf(target)).find((each) => each.recipient === recipient),
    )

  /** The replies to the commands after MAIL FROM. */
  const offer = async (recipients: readonly string[], ...lines: string[]) => {
    const commands = recipients.map((recipient) => `RCPT TO:<${recipient}>`)
    const all = ['EHLO tests', 'MAIL FROM:<App@example.com>', ...commands, ...lines]
    return (await converse(mayfly.smtpPort, all)).slice(3)
  }

  /** An address that refuses mail with any tag. */
  const endedAddress = async (target: Target, body: object = {}) => {
    const { id, address } = await createInbox(target, body)
    await call(target, 'DELETE', `/v1/inboxes/${id}`)
    return (tag: string | number) => address.replace('@', `+${tag}@`)
  }

  it('lists the refused recipients of inboxes, newest first, with each reply', async () => {
    const ended = await endedAddress(mayfly)
    const { id, address } = await createInbox(mayfly)
    await call(mayfly, 'PUT', `/v1/inboxes/${id}/faults`, {
      body: [{ stage: 'data', action: 'reject', code: 554, enhanced_code: '5.7.1', text: 'spam' }],
    })
    const [reply = ''] = await offer([ended('A')])
    await offer([ended('A')])
    await offer([address.toUpperCase()], 'DATA', `${mail('refused').trimEnd()}\r\n.`)
    await untilListed(mayfly, address.toUpperCase())
    const [data, recipient, ...others] = await refusedOf(mayfly)
    const time = expect.stringMatching(/^\d{4}-.+\.\d{3}Z$/) as unknown
    expect(data).toEqual({
      ...{ time, recipient: address.toUpperCase(), sender: 'App@example.com' },
      ...{ code: 554, reason: '5.7.1 spam', count: 1 },
    })
    expect(reply).toMatch(/^550 5\.1\.1 this inbox was deleted/)
    expect(recipient).toEqual({
      ...{ time, recipient: ended('A'), sender: 'App@example.com' },
      ...{ code: 550, reason: reply.slice('550 '.length), count: 2 },
    })
    expect(others).toEqual([])
  })

  it('lists those of a domain in its environment only', async () => {
    await offer([`typo@${domain}`])
    const ended = await endedAddress(mayfly)
    await offer([ended('marker')])
    expect(await untilListed(staging, `typo@${domain}`)).toMatchObject({
      ...{ code: 550, reason: '5.1.1 no inbox has this address', count: 1 },
    })
    await untilListed(mayfly, ended('marker'))
    expect(await recipientsOf(mayfly)).not.toContain(`typo@${domain}`)
    expect(await recipientsOf(staging)).not.toContain(ended('marker'))
  })

  it('shows addresses without an owner to the first account on the embedded engine, and to nobody else', async () => {
    const unknown = `${'0'.repeat(20)}@mayfly.test`
    const ended = await endedAddress(other)
    await offer([unknown, ended('marker')])
    await untilListed(other, ended('marker'))
    expect(await recipientsOf(other)).toEqual([ended('marker')])
    const first = withKey(mayfly, await issueKey(mayfly.operator, { environment: 'any', scopes: ['read'] }))
    if (engineUnderTest() === 'embedded') await untilListed(first, unknown)
    else expect(await recipientsOf(first)).toEqual([])
    for (const target of [mayfly, staging]) expect(await recipientsOf(target)).not.toContain(unknown)
  })

  it('leaves out protected inboxes', async () => {
    const hidden = await endedAddress(other, { password_protected: true })
    const ended = await endedAddress(other)
    await offer([hidden('hidden'), ended('shown')])
    await untilListed(other, ended('shown'))
    expect(await recipientsOf(other)).not.toContain(hidden('hidden'))
  })

  it('keeps the last 100 of an account, whose flood hides none of another account', async () => {
    const [flooded, ended] = [await endedAddress(mayfly), await endedAddress(other)]
    await offer([ended('before')])
    const addresses = Array.from({ length: 120 }, (_, number) => flooded(number))
    for (const first of [0, 40, 80]) {
      await offer(addresses.slice(first, first + 40))
      await untilListed(mayfly, flooded(first + 39))
    }
    expect(await recipientsOf(mayfly)).toEqual(addresses.slice(20).toReversed())
    const flood = Array.from({ length: 300 }, (_, number) => flooded(`again-${number}`))
    await offer([...flood, ended('after')])
    await untilListed(other, ended('after'))
    expect(await recipientsOf(other)).toContain(ended('before'))
    expect(await recipientsOf(mayfly)).toHaveLength(100)
  })

  it('requires a key that reads mail', async () => {
    const audit = withKey(mayfly, await issueKey(mayfly, { environment: 'staging', scopes: ['audit'] }))
    const { id } = await createInbox(mayfly)
    const { token } = await create<{ token: string }>(mayfly, `/v1/inboxes/${id}/tokens`, {})
    for (const target of [audit, { ...mayfly, apiKey: token }]) {
      expectProblem(await call(target, 'GET', '/v1/refused-mail'), { status: 403, code: 'missing-scope' })
    }
  })
})
