import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readProviders } from './providers-file.js'
import { ConfigurationError } from './settings.js'

const acme = { issuer: 'https://login.acme.example', client_id: 'mayfly' }
const accounts = ['acc_01jd6axq2ve9r5t1y3n7m4k8c6']

describe('a file of identity providers', () => {
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-providers-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function read(content: unknown) {
    const path = join(folder, 'providers.json')
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    return readProviders(path)
  }

  it('needs an issuer and a client id', async () => {
    expect(readProviders(null)).toEqual([])
    expect(await read({ acme })).toEqual([
      {
        ...{ name: 'acme', title: 'acme', issuer: acme.issuer, clientId: 'mayfly', clientSecret: null },
        ...{ scope: 'openid email', trustsEmails: false, accounts: null, roles: null },
      },
    ])
    const roles = { testers: 'developer' }
    const [full] = await read({
      acme: { ...acme, accounts, role_claim: 'groups', roles, trusts_emails: true },
    })
    expect(full).toMatchObject({ accounts, roles: { claim: 'groups', byValue: roles }, trustsEmails: true })
    expect(await read({ local: { ...acme, issuer: 'http://127.0.0.1:8080/realms/mail' } })).toHaveLength(1)
  })

  it.each([
    {
      content: '{"client_secret":unquoted}',
      error: /MAYFLY_IDENTITY_PROVIDERS: the file .* can't be read as JSON$/,
    },
    { content: [acme], error: /must contain an object/ },
    { content: { Acme: acme }, error: /"Acme" is not a valid name/ },
    { content: { acme: null }, error: /"acme" it: must be object/ },
    { content: { acme: { issuer: acme.issuer } }, error: /"acme" it: .*client_id/ },
    { content: { acme: { ...acme, secret: 'x' } }, error: /additional properties/ },
    {
      content: { acme: { ...acme, issuer: 'http://login.acme.example' } },
      error: /needs "issuer": an https URL/,
    },
    { content: { acme: { ...acme, issuer: 'http://localhost.acme.example' } }, error: /needs "issuer"/ },
    {
      content: { acme: { ...acme, issuer: 'https://user:secret@login.acme.example' } },
      error: /needs "issuer"/,
    },
    { content: { acme: { ...acme, issuer: 'https://[bad' } }, error: /needs "issuer"/ },
    {
      content: { acme: { ...acme, issuer: 'https://login.microsoftonline.com/common/v2.0' } },
      error: /needs "issuer" with your tenant/,
    },
    { content: { acme: { ...acme, accounts: ['acme'] } }, error: /may have "accounts"/ },
    {
      content: { acme: { ...acme, accounts, role_claim: 'groups' } },
      error: /needs both "role_claim" and "roles"/,
    },
    {
      content: { acme: { ...acme, role_claim: 'groups', roles: {} } },
      error: /needs "accounts" if it has "roles"/,
    },
    {
      content: { acme: { ...acme, accounts, role_claim: 'groups', roles: { staff: 'owner' } } },
      error: /"acme" \/roles\/staff: /,
    },
    {
      content: { acme, other: { ...acme, issuer: `${acme.issuer}/` } },
      error: /two identity providers have the same issuer/,
    },
  ])('is refused with the error: $error', async ({ content, error }) => {
    const refused = read(content)
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toThrow(error)
  })
})
