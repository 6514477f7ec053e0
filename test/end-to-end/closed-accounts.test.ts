import { issueKey, openAccount, withKey, type AccountJson } from '#test/harness/accounts.js'
import { call, create, createInbox, mail, messagesOf, send, type Target } from '#test/harness/client.js'
import { secretIn, signIn } from '#test/harness/console.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { invite, join } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

describe('a closed account', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let mayfly: MayflyWithClock

  beforeAll(async () => {
    folder = await makeFolder()
    mayfly = await startWithClock(folder.path, Date.now(), { MAYFLY_COUNT_USAGE: 'false' })
    await mayfly.runAhead(0)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
  })

  const read = async (id: string) => (await call<AccountJson>(mayfly, 'GET', `/v1/accounts/${id}`)).body
  const close = (id: string) => call<AccountJson>(mayfly, 'POST', `/v1/accounts/${id}/close`)

  async function makeOfEach(admin: Target) {
    const domain = await create<{ name: string }>(admin, '/v1/domains', {
      hosted: true,
      environment: 'other',
    })
    await registerWebhook(admin, '/v1/webhooks', { url: 'https://ci.example/' })
    const caller = withKey(mayfly, await issueKey(admin))
    const inboxes = await Promise.all([createInbox(caller), createInbox(caller), createInbox(caller)])
    const [{ id, address }] = inboxes
    await send(mayfly, address, mail('kept for now', 'kept for now'))
    await messagesOf(caller, id, 1)
    return { caller, inboxes, domain }
  }

  it('ends with its keys, domains, webhooks and inboxes, and leaves other accounts alone', async () => {
    const [closing, staying] = [await openAccount(mayfly), await openAccount(mayfly)]
    const { caller, inboxes, domain } = await makeOfEach(withKey(mayfly, closing.key))
    const other = await makeOfEach(withKey(mayfly, staying.key))

    const { session } = await join(withKey(mayfly, closing.key), { role: 'owner' })
    const { url } = await invite(withKey(mayfly, closing.key), { role: 'viewer' })

    const closed = await close(closing.id)
    expect(closed).toMatchObject({ status: 200, body: { id: closing.id, state: 'closed', erased_at: null } })
    expect((await call(caller, 'GET', '/v1/inboxes')).status).toBeGreaterThan(400)
    await until('the keys to be revoked', async () => {
      const { status } = await call(caller, 'GET', '/v1/inboxes')
      return status === 401
    })
    await mayfly.runAhead(60_000)
    const erased = await until('the account to be erased', async () => {
      const account = await read(closing.id)
      return account.name === null ? account : null
    })
    expect(erased.erased_at).not.toBeNull()
    expect(erased).toMatchObject({ state: 'closed', closed_at: closed.body.closed_at, environments: [] })
    for (const address of [...inboxes.map((inbox) => inbox.address), `someone@${domain.name}`]) {
      await expect(send(mayfly, address, mail('late', 'late'))).rejects.toThrow('550')
    }
    expect((await session.ask(['GET', '/console/sessions'])).status).toBe(401)
    await expect(signIn(mayfly, secretIn(url))).rejects.toThrow('account-suspended')
    expect((await close(closing.id)).body).toEqual(erased)
    for (const action of ['suspend', 'resume', 'keys']) {
      const body = action === 'keys' ? { body: { name: 'CI', environment: 'staging' } } : {}
      expectProblem(await call(mayfly, 'POST', `/v1/accounts/${closing.id}/${action}`, body), {
        ...{ status: 400, code: 'invalid-request', at: [{ parameter: 'accountId' }] },
      })
    }

    expect((await read(staying.id)).state).toBe('active')
    const [first] = other.inboxes
    expect(await messagesOf(other.caller, first.id, 1)).toHaveLength(1)
  })
})
