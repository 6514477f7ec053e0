import { openAccount, withKey, type AccountJson } from '#test/harness/accounts.js'
import { call, create, only, type DomainJson, type Target } from '#test/harness/client.js'
import { askConsole, secretIn, signIn, type TokenJson } from '#test/harness/console.js'
import { startDns, type DnsServer } from '#test/harness/dns.js'
import {
  providersFile,
  startHostileProvider,
  startIdentityProvider,
  type HostileProvider,
  type Hostility,
  type IdentityProvider,
} from '#test/harness/identity-provider.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { invite, join, type InvitationJson, type MemberJson } from '#test/harness/members.js'
import { expectProblem } from '#test/harness/problem.js'

interface SessionJson extends TokenJson {
  member: MemberJson & { issuer: string | null }
  scopes: string[]
}

/** Where the provider's answer has brought the browser, and the cookie of its session if it has one. */
interface Return {
  location: string | null
  cookie: string | null
}

const verified = (email: string) => ({ email, email_verified: true })

let people = 0
/** A new login name and its address. */
function newPerson(): [login: string, email: string] {
  people += 1
  return [`person-${people}`, `person-${people}@company.example`]
}

let addresses = 0
function newAddress(): string {
  addresses += 1
  return `192.0.2.${addresses}`
}

describe('sign-in with an identity provider', () => {
  let dns: DnsServer
  let acme: IdentityProvider
  /** Says roles, and may sign in to one account only. */
  let company: IdentityProvider
  let hostile: HostileProvider
  let mayfly: Mayfly
  let companyAccount: Target

  beforeAll(async () => {
    dns = await startDns({})
    ;[acme, company, hostile] = await Promise.all([
      startIdentityProvider(),
      startIdentityProvider(),
      startHostileProvider(),
    ])
    const before = await startMayfly()
    const account = await openAccount(before)
    await before.end('SIGTERM')
    const providers = {
      acme: { ...acme.settings, title: 'Acme' },
      company: {
        ...{ ...company.settings, scope: 'openid email', accounts: [account.id] },
        ...{ role_claim: 'groups', roles: { 'mail-admins': 'admin', testers: 'developer' } },
      },
      hostile: hostile.settings,
    }
    const env = {
      ...(await providersFile(providers)),
      ...{
        MAYFLY_DNS_SERVERS: dns.address,
        MAYFLY_MX_HOST: 'mx.mayfly.example',
        MAYFLY_TRUSTED_PROXIES: '1',
      },
    }
    mayfly = await startMayfly({ dataDir: before.dataDir, env })
    companyAccount = withKey(mayfly, account.key)
    acme.accept(mayfly.url, 'acme')
    company.accept(mayfly.url, 'company')
  })
  afterAll(async () => {
    await mayfly.dispose()
    for (const each of [acme, company, hostile, dns]) each.dispose()
  })

  const newAccount = async (): Promise<Target> => withKey(mayfly, (await openAccount(mayfly)).key)

  /** Starts signing in. Resolves with the provider's URL and the cookie of the attempt. */
  async function start(provider: string, cookie: string | null = null) {
    const body = cookie === null ? {} : { connect: true }
    const path = ['POST', `/console/sign-in/${provider}`] as const
    const answer = await askConsole<{ url: string }>(mayfly, cookie, path, { body })
    expect(answer.status).toBe(200)
    const attributes = answer.headers.get('set-cookie') ?? ''
    expect(attributes).toMatch(/; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
    return { url: answer.body.url, attempt: attributes.split(';')[0] ?? '' }
  }

  /** The request that a provider sends the browser to make, by default each of another one. */
  async function comeBack(
    provider: string,
    query: string,
    attempt: string | null,
    remoteAddress = newAddress(),
  ): Promise<Return> {
    const path = `/console/sign-in/${provider}/callback?${query}` as const
    const headers = { 'sec-fetch-site': 'cross-site', 'x-forwarded-for': remoteAddress }
    const answer = await askConsole(mayfly, attempt, ['GET', path], { headers })
    expect(answer.status).toBe(303)
    const cookies = answer.headers.getSetCookie()
    expect(cookies).toContainEqual(expect.stringContaining('mayfly-sign-in=; Path=/; Max-Age=0;'))
    const session = cookies.find((each) => each.startsWith('mayfly-session='))
    if (session !== undefined) expect(session).toMatch(/; HttpOnly; SameSite=Strict$/)
    return { location: answer.headers.get('location'), cookie: session?.split(';')[0] ?? null }
  }

  const queryOf = (url: string) => new URL(url).search.slice(1)

  async function signInWith(
    provider: IdentityProvider,
    login: string,
    connecting: string | null = null,
  ): Promise<Return> {
    const name = provider === acme ? 'acme' : 'company'
    const { url, attempt } = await start(name, connecting)
    return comeBack(name, queryOf(await provider.authorize(url, login)), attempt)
  }

  async function sessionOf({ location, cookie }: Return): Promise<SessionJson> {
    expect(location).toBe('/console')
    return (await askConsole<SessionJson>(mayfly, cookie, ['POST', '/console/session'], { body: {} })).body
  }

  /** A member who has used an invitation with the provider. */
  async function joinWith(
    account: Target,
    role: string,
  ): Promise<{ login: string; cookie: string; member: MemberJson }> {
    const [login, email] = newPerson()
    acme.people.set(login, verified(email))
    await invite(account, { role }, { email })
    const returned = await signInWith(acme, login)
    const { member } = await sessionOf(returned)
    return { login, member, cookie: returned.cookie ?? '' }
  }

  const refusal = (code: string): Return => ({ location: `/console#sign-in-error=${code}`, cookie: null })

  it('lists the providers', async () => {
    const { body } = await askConsole(mayfly, null, ['GET', '/console/providers'])
    expect(body).toEqual([
      { name: 'acme', title: 'Acme' },
      { name: 'company', title: 'company' },
      { name: 'hostile', title: 'hostile' },
    ])
    expectProblem(await askConsole(mayfly, null, ['POST', '/console/sign-in/none'], { body: {} }), {
      status: 404,
      code: 'not-found',
    })
  })

  it('uses the invitation to a verified address, and then knows the person by issuer and subject', async () => {
    const account = await newAccount()
    const [login, email] = newPerson()
    const invitation = await invite(account, { role: 'developer' }, { email })
    acme.people.set(login, { email, email_verified: false })
    expect(await signInWith(acme, login)).toEqual(refusal('not-invited'))

    acme.people.set(login, verified(email.toUpperCase()))
    const { member, scopes } = await sessionOf(await signInWith(acme, login))
    expect(member).toMatchObject({ email, role: 'developer', issuer: acme.issuer })
    expect(scopes).toEqual(['inboxes'])
    const { body: used } = await call<InvitationJson>(account, 'GET', `/v1/invitations/${invitation.id}`)
    expect(used).toMatchObject({ state: 'accepted', member_id: member.id })
    await expect(signIn(mayfly, secretIn(invitation.url))).rejects.toThrow('sign-in-failed')

    // Somebody else now has the address, or it has changed.
    const [other] = newPerson()
    acme.people.set(other, verified(email))
    expect(await signInWith(acme, other)).toEqual(refusal('not-invited'))
    acme.people.set(login, {})
    expect((await sessionOf(await signInWith(acme, login))).member.id).toBe(member.id)

    await call(account, 'DELETE', `/v1/members/${member.id}`)
    acme.people.set(login, verified(email))
    expect(await signInWith(acme, login)).toEqual(refusal('not-invited'))
  })

  it('signs in after the provider has got other keys', async () => {
    const { login, member } = await joinWith(await newAccount(), 'viewer')
    acme.restart()
    // The keys may have been read a moment before.
    await signInWith(acme, login)
    expect((await sessionOf(await signInWith(acme, login))).member.id).toBe(member.id)
  })

  const HOSTILITIES: Record<string, Hostility> = {
    'for another audience': { claims: { aud: 'other' } },
    'of another issuer': { claims: { iss: 'https://login.example.com' } },
    'for another attempt': { claims: { nonce: 'other' } },
    'without a nonce': { claims: { nonce: undefined } },
    'that has expired': { claims: { exp: 1_000_000_000 } },
    'without a subject': { claims: { sub: undefined } },
    'without a signature': { header: { alg: 'none' }, isUnsigned: true },
    'with an empty signature': { isUnsigned: true },
    'signed with an unknown key': { hasForeignKey: true },
    'with an error': { status: 400 },
  }

  it.each(Object.entries(HOSTILITIES))('refuses an answer %s', async (_, hostility) => {
    const account = await newAccount()
    const [login, email] = newPerson()
    await invite(account, { role: 'owner' }, { email })
    const attempt = async (wrong: Hostility) => {
      const started = await start('hostile')
      hostile.hostility = wrong
      const query = hostile.answerTo(started.url, { sub: login, ...verified(email) })
      return comeBack('hostile', String(query), started.attempt)
    }
    expect(await attempt(hostility)).toEqual(refusal('sign-in-failed'))
    expect((await call<MemberJson[]>(account, 'GET', '/v1/members')).body).toEqual([])
    // Without it, the same answer signs in.
    expect((await sessionOf(await attempt({}))).member.role).toBe('owner')
  })

  it('refuses an answer that the browser did not ask for, or of another provider', async () => {
    const { login } = await joinWith(await newAccount(), 'viewer')
    const failed = refusal('sign-in-failed')
    const mine = await start('acme')
    const query = queryOf(await acme.authorize(mine.url, login))
    expect(await comeBack('acme', query, null)).toEqual(failed)
    expect(await comeBack('acme', query, (await start('acme')).attempt)).toEqual(failed)
    expect(await comeBack('acme', query, `${mine.attempt}x`)).toEqual(failed)
    expect(await comeBack('hostile', query, mine.attempt)).toEqual(failed)
    const foreign = new URLSearchParams(query)
    foreign.set('iss', hostile.issuer)
    expect(await comeBack('acme', String(foreign), mine.attempt)).toEqual(failed)
    const denied = `error=access_denied&state=${new URLSearchParams(query).get('state')}`
    expect(await comeBack('acme', denied, mine.attempt)).toEqual(failed)
    await sessionOf(await comeBack('acme', query, mine.attempt))
    // A code works once.
    expect(await comeBack('acme', query, mine.attempt)).toEqual(failed)
  })

  it('refuses all attempts of an address after twenty failures', async () => {
    const { login } = await joinWith(await newAccount(), 'viewer')
    const address = newAddress()
    for (let n = 0; n < 20; n++) {
      const guess = await start('acme')
      const query = `code=guessed&state=${new URL(guess.url).searchParams.get('state')}`
      expect(await comeBack('acme', query, guess.attempt, address)).toEqual(refusal('sign-in-failed'))
      // Pages of other sites can make a browser send this.
      expect(await comeBack('acme', query, null, address)).toEqual(refusal('sign-in-failed'))
    }
    const { url, attempt } = await start('acme')
    const query = queryOf(await acme.authorize(url, login))
    expect(await comeBack('acme', query, attempt, address)).toEqual(refusal('rate-limited'))
    await sessionOf(await comeBack('acme', query, attempt))
  })

  it('starts only for pages of the console', async () => {
    const headers = { origin: 'https://attacker.example', 'sec-fetch-site': 'cross-site' }
    const answer = await askConsole(mayfly, null, ['POST', '/console/sign-in/acme'], { body: {}, headers })
    expectProblem(answer, { status: 403, code: 'untrusted-origin' })
  })

  it('admits people with an address in a domain of the account, with the role that the provider says', async () => {
    const body = { name: 'staff.example', environment: 'staging' }
    const domain = await create<DomainJson>(companyAccount, '/v1/domains', body)
    const [login] = newPerson()
    const email = `${login}@staff.example`
    company.people.set(login, verified(email))
    // Nobody has proved the domain.
    expect(await signInWith(company, login)).toEqual(refusal('not-invited'))
    dns.zone = {
      [`_mayfly-challenge.${domain.name}`]: { TXT: [domain.records[0]?.value ?? ''] },
      [domain.name]: { MX: ['10 mx.mayfly.example'] },
    }
    await call(companyAccount, 'POST', `/v1/domains/${domain.id}/verify`)
    company.people.set(login, { email, email_verified: false })
    expect(await signInWith(company, login)).toEqual(refusal('not-invited'))

    company.people.set(login, verified(email))
    const first = await signInWith(company, login)
    expect(first.location).toBe('/console')
    const member = only((await call<MemberJson[]>(companyAccount, 'GET', '/v1/members')).body)
    expect(member).toMatchObject({ email, role: 'viewer', environments: [], invited_by: member.id })
    // No role, no rights.
    const trade = () => askConsole(mayfly, first.cookie, ['POST', '/console/session'], { body: {} })
    expectProblem(await trade(), { status: 403, code: 'no-role' })

    for (const [group, role] of [
      ['testers', 'developer'],
      ['mail-admins', 'admin'],
    ] as const) {
      company.people.set(login, { ...verified(email), groups: ['others', group] })
      expect((await sessionOf(await signInWith(company, login))).member).toMatchObject({
        role,
        environments: null,
      })
    }
    // The provider may not sign in to another account.
    const other = await newAccount()
    await invite(other, { role: 'viewer' }, { email })
    await sessionOf(await signInWith(company, login))
    expect((await call<MemberJson[]>(other, 'GET', '/v1/members')).body).toEqual([])

    await call(companyAccount, 'DELETE', `/v1/members/${member.id}`)
    expect(await signInWith(company, login)).toEqual(refusal('not-invited'))

    // A member with that address is not doubled, and one who was removed does not come back.
    const linked = await join(companyAccount, { role: 'viewer' }, { email: 'linked@staff.example' })
    company.people.set('linked', { ...verified('linked@staff.example'), groups: ['mail-admins'] })
    expect(await signInWith(company, 'linked')).toEqual(refusal('not-invited'))
    await call(companyAccount, 'DELETE', `/v1/members/${linked.member.id}`)
    expect(await signInWith(company, 'linked')).toEqual(refusal('not-invited'))

    // Another account can't catch the people of the domain with invitations.
    acme.people.set('caught', verified('caught@staff.example'))
    await invite(other, { role: 'viewer' }, { email: 'caught@staff.example' })
    expect((await signInWith(acme, 'caught')).location).toBe('/console')
    const { body: members } = await call<MemberJson[]>(companyAccount, 'GET', '/v1/members')
    expect(members.map((each) => each.email)).toEqual(['caught@staff.example'])
  })

  it.each([
    'boss@staff.example/evil.example',
    'boss@staff%2eexample',
    'boss@staff。example',
    'mi\u212Ae@company.example',
  ])('does not know the address %j', async (email) => {
    await invite(await newAccount(), { role: 'owner' }, { email: 'mike@company.example' })
    acme.people.set('odd', verified(email))
    expect(await signInWith(acme, 'odd')).toEqual(refusal('not-invited'))
  })

  it('makes one member of a person with several invitations to an account', async () => {
    const account = await newAccount()
    const [login, email] = newPerson()
    acme.people.set(login, verified(email))
    const invitations = Array.from({ length: 4 }, () =>
      invite(account, { role: 'viewer' }, { email }).catch(() => null),
    )
    await Promise.all(invitations)
    await sessionOf(await signInWith(acme, login))
    expect((await call<MemberJson[]>(account, 'GET', '/v1/members')).body).toHaveLength(1)
  })

  it('connects the identity to a member who has joined with a link', async () => {
    const account = await newAccount()
    const [login, email] = newPerson()
    const { member, session } = await join(account, { role: 'developer' })
    acme.people.set(login, verified(email))
    expect(await signInWith(acme, login)).toEqual(refusal('not-invited'))
    const connected = await signInWith(acme, login, session.cookie)
    expect(connected.location).toBe('/console/account')
    // Its session is another one now.
    expectProblem(await session.ask(['GET', '/console/sessions']), { status: 401, code: 'not-signed-in' })
    expect((await sessionOf(await signInWith(acme, login))).member).toMatchObject({
      id: member.id,
      issuer: acme.issuer,
    })

    // An identity is of one member of the account, and a member has one.
    const other = await join(account, { role: 'viewer' })
    expect(await signInWith(acme, login, other.session.cookie)).toEqual(refusal('invalid-request'))
    const [second] = newPerson()
    acme.people.set(second, {})
    expect(await signInWith(acme, second, connected.cookie)).toEqual(refusal('invalid-request'))
    // Nor is it connected with a link that somebody else has made.
    const owner = await join(account, { role: 'owner' })
    const link = await call<{ url: string }>(owner.target, 'POST', '/console/links', {
      body: { member_id: other.member.id },
    })
    const byLink = await signIn(mayfly, secretIn(link.body.url))
    expect(await signInWith(acme, second, byLink.cookie)).toEqual(refusal('invalid-request'))
    const byOperator = await call<{ url: string }>(mayfly, 'POST', '/console/links', {
      body: { member_id: owner.member.id },
    })
    const helped = await signIn(mayfly, secretIn(byOperator.body.url))
    expect(await signInWith(acme, second, helped.cookie)).toEqual(refusal('invalid-request'))
    // A link that is made in such a session is no better.
    const own = await call<{ url: string }>(await helped.target(), 'POST', '/console/links')
    const again = await signIn(mayfly, secretIn(own.body.url))
    expect(await signInWith(acme, second, again.cookie)).toEqual(refusal('invalid-request'))
    // Nor after the session has ended.
    const { url, attempt } = await start('acme', other.session.cookie)
    await other.session.ask(['DELETE', '/console/session'])
    const query = queryOf(await acme.authorize(url, second))
    expect(await comeBack('acme', query, attempt)).toEqual(refusal('sign-in-failed'))
  })

  it('switches between the accounts of a person', async () => {
    const [one, other, foreign] = await Promise.all([newAccount(), newAccount(), newAccount()])
    const { login, cookie, member } = await joinWith(one, 'admin')
    await invite(other, { role: 'viewer' }, { email: member.email })
    const cookieOfBoth = (await signInWith(acme, login)).cookie
    const accounts = () => askConsole<{ id: string }[]>(mayfly, cookieOfBoth, ['GET', '/console/accounts'])
    const [{ id }] = (await accounts()).body as [{ id: string }]
    const { body: second } = await call<AccountJson>(other, 'GET', '/v1/account')
    expect(id).toBe(second.id)

    const switchTo = (accountId: string) =>
      askConsole(mayfly, cookieOfBoth, ['POST', '/console/accounts'], { body: { account_id: accountId } })
    const { body: third } = await call<AccountJson>(foreign, 'GET', '/v1/account')
    expectProblem(await switchTo(third.id), { status: 404, code: 'not-found' })
    const switched = await switchTo(id)
    expect(switched.status).toBe(204)
    const next = switched.headers.get('set-cookie')?.split(';')[0] ?? null
    expect(await sessionOf({ location: '/console', cookie: next })).toMatchObject({
      ...{ account: { id }, member: { role: 'viewer', email: member.email } },
    })
    // The former session has ended, and a session without an identity has no other accounts.
    expectProblem(await accounts(), { status: 401, code: 'not-signed-in' })
    const { session } = await join(one, { role: 'viewer' })
    expect((await session.ask(['GET', '/console/accounts'])).body).toEqual([])
    // Nor has that of somebody who has made a link for the person.
    const owner = await join(one, { role: 'owner' })
    const link = await call<{ url: string }>(owner.target, 'POST', '/console/links', {
      body: { member_id: member.id },
    })
    const impostor = await signIn(mayfly, secretIn(link.body.url))
    expect((await impostor.ask(['GET', '/console/accounts'])).body).toEqual([])
    const stolen = await impostor.ask(['POST', '/console/accounts'], { body: { account_id: id } })
    expectProblem(stolen, { status: 404, code: 'not-found' })
    expect((await sessionOf({ location: '/console', cookie })).member.id).toBe(member.id)

    // While the first account is suspended, the person is signed in to the other one.
    const { body: first } = await call<AccountJson>(one, 'GET', '/v1/account')
    await call(mayfly, 'POST', `/v1/accounts/${first.id}/suspend`)
    expect((await sessionOf(await signInWith(acme, login))).account.id).toBe(id)
    await call(mayfly, 'POST', `/v1/accounts/${id}/suspend`)
    expect(await signInWith(acme, login)).toEqual(refusal('account-suspended'))
  })

  it('is the only way to sign in if the account says so', async () => {
    const account = await newAccount()
    const set = (signIns: string) =>
      call<AccountJson>(account, 'PATCH', '/v1/account', { body: { sign_in: signIns } })
    // Nobody could sign in.
    expectProblem(await set('provider'), {
      status: 400,
      code: 'invalid-request',
      at: [{ pointer: '/sign_in' }],
    })
    expectProblem(await set('links'), { status: 400, code: 'invalid-request', at: [{ pointer: '/sign_in' }] })
    const { login, cookie } = await joinWith(account, 'owner')
    const { session, target } = await join(account, { role: 'viewer' })
    const { target: asAdmin } = await join(account, { role: 'admin' })
    const byAdmin = await call(asAdmin, 'PATCH', '/v1/account', { body: { sign_in: 'any' } })
    expectProblem(byAdmin, { status: 403, code: 'missing-scope' })
    const withKeyOnly = await signIn(account)
    const link = await call<{ url: string }>(account, 'POST', '/console/links')
    const { url: invitation } = await invite(account, { role: 'viewer' })

    expect((await set('provider')).body).toMatchObject({ sign_in: 'provider' })
    for (const secret of [secretIn(link.body.url), secretIn(invitation), account.apiKey]) {
      await expect(signIn(mayfly, secret)).rejects.toThrow('sign-in-with-provider')
    }
    for (const each of [session, withKeyOnly]) {
      expectProblem(await each.ask(['POST', '/console/session'], { body: {} }), {
        status: 401,
        code: 'not-signed-in',
      })
    }
    expectProblem(await call(target, 'GET', '/v1/messages'), { status: 401, code: 'invalid-api-key' })
    await sessionOf({ location: '/console', cookie })
    await sessionOf(await signInWith(acme, login))
    expect((await call(account, 'GET', '/v1/account')).status).toBe(200)

    expect((await set('any')).body).toMatchObject({ sign_in: 'any' })
    expect((await signIn(account)).id).toMatch(/^ses_/)
  })

  it('signs out of the provider too', async () => {
    const { cookie } = await joinWith(await newAccount(), 'viewer')
    const { status, body } = await askConsole<{ url: string }>(mayfly, cookie, ['DELETE', '/console/session'])
    expect(status).toBe(200)
    const { origin, searchParams } = new URL(body.url)
    expect(origin).toBe(acme.issuer)
    expect(Object.fromEntries(searchParams)).toEqual({
      ...{ client_id: 'mayfly', post_logout_redirect_uri: `${mayfly.url}/console` },
    })
    const { session } = await join(await newAccount(), { role: 'viewer' })
    expect((await session.ask(['DELETE', '/console/session'])).status).toBe(204)
  })

  it('answers 503 if the provider is down', async () => {
    const provider = await startIdentityProvider()
    provider.dispose()
    const own = await startMayfly({ env: await providersFile({ gone: provider.settings }) })
    const answer = await askConsole(own, null, ['POST', '/console/sign-in/gone'], { body: {} })
    expectProblem(answer, { status: 503, code: 'provider-unavailable' })
    await own.dispose()
  })
})
