import { mintId } from '#libs/domain/ids/mint.js'
import { KeyVaultUnavailableError, type KeyOwner } from './key-vault.js'
import { MasterKeys } from './master-key.js'
import { PersonalData, type PersonalDataOptions } from './personal-data.js'
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
    const onError = (error: unknown) => void errors.push(error)
    return new PersonalData({ vault: vault as PersonalDataOptions['vault'], keys: secrets, onError })
  }

  const errors: unknown[] = []
  beforeEach(() => {
    keys.clear()
    errors.length = 0
  })

  it('is opened for its owner only, until the key is forgotten', async () => {
    const personal = personalData()
    const stored = await personal.seal(memberId, email)
    expect(Buffer.from(stored.sealed).includes('Ana')).toBe(false)
    expect(await personal.show(memberId, stored)).toBe(email)
    const other = mintId('mem')
    expect(await personal.show(other, stored)).toBeNull()
    await personal.seal(other, email)
    expect(await personal.show(other, stored)).toBeNull()
    expect(errors).toEqual([expect.any(KeyVaultUnavailableError), expect.any(SealBrokenError)])
    keys.set(memberId, null)
    expect(await personal.show(memberId, stored)).toBeNull()
  })

  it('of earlier events is plain text, shown until the key is forgotten', async () => {
    expect(await personalData().show(memberId, email)).toBe(email)
    keys.set(memberId, null)
    expect(await personalData().show(memberId, email)).toBeNull()
    expect(personalData().emailLookups(email)).toContain(email.toLowerCase())
  })

  it('is found by an address in any case, also after the master key has changed', async () => {
    const stored = await personalData().sealEmail(memberId, email)
    if (typeof stored === 'string') throw new Error('not sealed')
    expect(stored.hash).toMatch(/^[0-9a-f]{64}$/)
    const later = personalData(`${two},${one}`)
    expect(later.emailLookups(email.toUpperCase())).toContain(stored.hash)
    expect(personalData(`${two}`).emailLookups(email)).not.toContain(stored.hash)
    expect(later.emailLookups('bea@example.com')).not.toContain(stored.hash)
    const again = await later.sealEmail(memberId, email)
    expect(again).not.toMatchObject({ hash: stored.hash })
  })
})
