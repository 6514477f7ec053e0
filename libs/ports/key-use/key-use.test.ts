import { idFromBytes, type KeyId } from '#libs/domain/ids/typeid.js'
import { KeyUse } from './key-use.js'

const keyId = idFromBytes('key', Buffer.alloc(16, 1))
const [early, late] = [new Date(1_000), new Date(2_000)]

describe('key use while the store is unavailable', () => {
  it('reports the error, and stores the uses once the store is back', async () => {
    const stored: ReadonlyMap<KeyId, Date>[] = []
    const errors: unknown[] = []
    const reported = Promise.withResolvers<undefined>()
    const store = {
      put(uses: ReadonlyMap<KeyId, Date>) {
        if (errors.length === 0) return Promise.reject(new Error('away'))
        stored.push(uses)
        return Promise.resolve()
      },
      get: () => Promise.resolve(new Map<KeyId, Date>()),
    }
    const use = new KeyUse(
      store,
      (error) => {
        errors.push(error)
        reported.resolve(undefined)
      },
      1,
    )
    use.touch(keyId, early)
    await reported.promise
    use.touch(keyId, late)
    expect(await use.lastUsedAt([keyId])).toEqual(new Map([[keyId, late]]))
    await use.close()
    expect(String(errors)).toBe('Error: away')
    expect(stored.at(-1)?.get(keyId)).toEqual(late)
  })
})
