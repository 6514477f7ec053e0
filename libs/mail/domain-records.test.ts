import type { Domain } from '#libs/domain/account/domain.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { startDns, type NameRecords, type Zone } from '#test/harness/dns.js'
import { DomainDns } from './domain-records.js'

const MISSING = { status: 'missing', found: [] } as const
const domain: Domain = {
  id: idFromBytes('dom', Buffer.alloc(16, 1)),
  accountId: idFromBytes('acc', Buffer.alloc(16, 1)),
  ...{ name: 'acme.example', environment: 'staging', isHosted: false, subdomains: false },
  ...{ catchAll: { action: 'reject' }, token: 'k3v9', state: 'pending', isNameTaken: false, revision: 0 },
  checks: { ownership: MISSING, mail: MISSING, wildcard: MISSING },
  ...{ failures: 0, failingSince: null, createdAt: new Date(0), verifiedAt: null, checkedAt: null },
  ...{ lapsedAt: null, nextCheckAt: null },
}
const CHALLENGE = '_mayfly-challenge.acme.example'

/** The results with a server for each of the zones. */
async function check(zones: readonly Zone[], facts: Partial<Domain> = {}) {
  const servers = await Promise.all(zones.map(startDns))
  const dns = new DomainDns({
    dnsServers: servers.map(({ address }) => address),
    ...{ mxHost: 'MX.Mayfly.example', mailDomain: 'mayfly.test' },
  })
  try {
    return await dns.check({ ...domain, ...facts })
  } finally {
    dns.close()
    for (const server of servers) server.dispose()
  }
}

const ownership = async (...records: (NameRecords | null)[]) => {
  const zones = records.map((each): Zone => (each === null ? {} : { [CHALLENGE]: each }))
  return (await check(zones)).ownership
}

describe('the TXT record of a domain', () => {
  test.each<{ what: string; texts: string[]; status: string }>([
    { what: 'alone', texts: ['token=k3v9'], status: 'valid' },
    { what: 'with other words', texts: ['expiry=2027-01-01 token=k3v9; foo'], status: 'valid' },
    { what: 'among others', texts: ['token=other', 'v=spf1 -all', 'token=k3v9'], status: 'valid' },
    { what: 'in several strings', texts: [`${'x'.repeat(250)} token=k3v9`], status: 'valid' },
    { what: 'of another registration', texts: ['token=other'], status: 'invalid' },
    { what: 'as a part of another word', texts: ['token=k3v9x', 'mytoken=k3v9'], status: 'invalid' },
    { what: 'in other case', texts: ['token=K3V9'], status: 'invalid' },
  ])('is $status $what', async ({ texts, status }) => {
    const result = await ownership({ TXT: texts })
    expect(result?.status).toBe(status)
    expect(result?.found).toEqual(texts.map((text) => text.slice(0, 255)).toSorted())
  })

  it('is missing if the name does not exist or has other records only', async () => {
    expect(await ownership(null)).toEqual(MISSING)
    expect(await ownership({ A: ['192.0.2.1'] })).toEqual(MISSING)
  })

  it('is shown with at most ten values', async () => {
    const texts = Array.from({ length: 25 }, (_, index) => `other=${index}`)
    expect((await ownership({ TXT: texts }))?.found).toHaveLength(10)
  })

  it('is unknown if the server fails, refuses or stays silent', async () => {
    for (const records of [{ rcode: 'SERVFAIL' }, { rcode: 'REFUSED' }, { isSilent: true }] as const) {
      expect(await ownership(records)).toBeUndefined()
    }
  }, 20_000)

  it('counts only if all servers that answer agree', async () => {
    const [valid, other, broken] = [{ TXT: ['token=k3v9'] }, { TXT: ['no'] }, { rcode: 'SERVFAIL' }] as const
    expect((await ownership(valid, valid))?.status).toBe('valid')
    expect((await ownership(valid, broken))?.status).toBe('valid')
    expect(await ownership(valid, other)).toBeUndefined()
    expect(await ownership(valid, null, valid)).toBeUndefined()
    expect((await ownership(null, null))?.status).toBe('missing')
  })
})

describe('the MX records of a domain', () => {
  test.each<{ MX: string[]; status: string }>([
    { MX: ['10 mx.mayfly.example'], status: 'valid' },
    { MX: ['5 MX.mayfly.EXAMPLE', '10 mx.other.example'], status: 'valid' },
    { MX: ['10 mx.mayfly.example', '5 mx.other.example'], status: 'invalid' },
    { MX: ['10 mx.mayfly.example', '10 mx.other.example'], status: 'invalid' },
    { MX: ['0 .'], status: 'invalid' },
    { MX: [], status: 'missing' },
  ])('$MX are $status', async ({ MX, status }) => {
    const { mail } = await check([{ 'acme.example': { MX } }])
    expect(mail?.status).toBe(status)
    expect(mail?.found).toEqual(MX.map((text) => text.toLowerCase().replace(/ \.$/, ' ')).toSorted())
  })

  it('include those of subdomains if the domain has them', async () => {
    const MX = ['10 mx.mayfly.example']
    const zone = { 'acme.example': { MX }, '*.acme.example': { MX } }
    expect(await check([zone])).not.toHaveProperty('wildcard')
    const results = await check([zone], { subdomains: true })
    expect(results).toMatchObject({ mail: { status: 'valid' }, wildcard: { status: 'valid' } })
    expect((await check([{ 'acme.example': { MX } }], { subdomains: true })).wildcard).toEqual(MISSING)
  })
})
