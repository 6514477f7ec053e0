import { startDns, type DnsServer } from '#test/harness/dns.js'
import { MailDns } from './mail-dns.js'

let server: DnsServer
let dns: MailDns

beforeEach(async () => {
  server = await startDns({
    'app.example': { TXT: ['one', 'two'] },
    'empty.example': {},
    'broken.example': { rcode: 'REFUSED' },
    'silent.example': { isSilent: true },
  })
  dns = new MailDns([server.address])
})
afterEach(() => {
  dns.close()
  server.dispose()
})

const within = (ms: number) => dns.forMail(ms)

describe('DNS for mail', () => {
  it('sends one query for a name that several mails resolve, in upper or lower case', async () => {
    const names = ['app.example', 'App.Example', 'app.example']
    const answers = await Promise.all(names.map((name) => within(5_000)(name, 'TXT')))
    expect(answers).toEqual(names.map(() => [['one'], ['two']]))
    expect(await within(5_000)('app.example', 'TXT')).toEqual([['one'], ['two']])
    expect(server.queries).toEqual(['TXT app.example'])
  })

  it('caches that a name or record does not exist', async () => {
    for (let time = 0; time < 3; time += 1) {
      await expect(within(5_000)('missing.example', 'TXT')).rejects.toMatchObject({ code: 'ENOTFOUND' })
      await expect(within(5_000)('empty.example', 'TXT')).rejects.toMatchObject({ code: 'ENODATA' })
    }
    expect(server.queries).toEqual(['TXT missing.example', 'TXT empty.example'])
  })

  it('returns answers that can be changed without changing the cache', async () => {
    const answer = await within(5_000)('app.example', 'TXT')
    answer.length = 0
    expect(await within(5_000)('app.example', 'TXT')).toHaveLength(2)
  })

  it('distinguishes a refused query from a missing record', async () => {
    await expect(within(5_000)('broken.example', 'TXT')).rejects.toMatchObject({ code: 'EREFUSED' })
  })

  it('rejects at the deadline of the mail', async () => {
    await expect(within(50)('silent.example', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
    await expect(within(0)('app.example', 'TXT')).rejects.toMatchObject({ code: 'ETIMEOUT' })
  })

  it('limits one mail to sixty queries, and does not limit others', async () => {
    const resolve = within(5_000)
    const asked = Array.from({ length: 61 }, (_, index) => resolve(`${index}.example`, 'A'))
    const codes = (await Promise.allSettled(asked)).map((one) =>
      one.status === 'rejected' ? (one.reason as { code: string }).code : null,
    )
    expect(codes).toEqual([...Array<string>(60).fill('ENOTFOUND'), 'ETOOMANY'])
    expect(await within(5_000)('app.example', 'TXT')).toHaveLength(2)
  })

  it('sends no query for a name that is too long', async () => {
    await expect(within(5_000)(`${'a'.repeat(300)}.example`, 'TXT')).rejects.toMatchObject({
      code: 'ENOTFOUND',
    })
    expect(server.queries).toEqual([])
  })
})
