import { mintId } from '#libs/domain/ids/mint.js'
import type { KeyOwner } from './key-vault.js'
import { MasterKeys } from './master-key.js'
import { PersonalData } from './personal-data.js'
import { makeSecretKey, SealBrokenError, type SecretKey } from './sealing.js'

const [one, two] = Array.from({ length: 2 }, () => makeSecretKey().toString('base64'))

describe('personal data', () => {
  const memberId = mintId('mem')
  const email = 'Ana.Müller@Example.com'
  const keys = new Map<KeyOwner, SecretKey | null>()

  function personalData(masterKeys = `${one}`): PersonalData {
    const secrets = MasterKeys.parse(masterKeys)
    if (secrets === null) throw new Error('no master keys')
    const vault = {
      create(owner: KeyOwner) {
        const key = keys.get(owner) ?? makeSecretKey()
        keys.set(owner, key)
        return Promise.resolve(key)
      },
      find(owner: KeyOwner) {
        const key = keys.get(owner)
        if (key === undefined) return Promise.resolve({ state: 'unknown' } as const)
        return Promise.resolve(key === null ? ({ state: 'forgotten' } as const) : { state: 'known', key })
      },
    }
    return new PersonalData(vault as ConstructorParameters<typeof PersonalData>[0], secrets)
  }

  afterEach(() => keys.clear())

  it('is opened for its owner only, until the key is forgotten', async () => {
    const personal = personalData()
    const stored = await personal.seal(memberId, email)
    expect(Buffer.from(stored.sealed).includes('Ana')).toBe(false)
    expect(await personal.open(memberId, stored)).toBe(email)
    const other = mintId('mem')
    await expect(personal.open(other, stored)).rejects.toThrow(/not found yet/)
    await personal.seal(other, email)
    await expect(personal.open(other, stored)).rejects.toThrow(SealBrokenError)
    keys.set(memberId, null)
    expect(await personal.open(memberId, stored)).toBeNull()
  })

  it('of earlier events is plain text', async () => {
    expect(await personalData().open(memberId, email)).toBe(email)
    expect(personalData().namesOfEmail(email)).toContain(email.toLowerCase())
  })

  it('is found by an address in any case, also after the master key has changed', async () => {
    const stored = await personalData().sealEmail(memberId, email)
    if (typeof stored === 'string') throw new Error('not sealed')
    expect(stored.hash).toMatch(/^[0-9a-f]{64}$/)
    const later = personalData(`${two},${one}`)
    expect(later.namesOfEmail(email.toUpperCase())).toContain(stored.hash)
    expect(personalData(`${two}`).namesOfEmail(email)).not.toContain(stored.hash)
    expect(later.namesOfEmail('bea@example.com')).not.toContain(stored.hash)
    const again = await later.sealEmail(memberId, email)
    expect(again).not.toMatchObject({ hash: stored.hash })
  })
})
