import { SealBrokenError } from '#libs/ports/key-vault/content.js'
import { openAnswer, sealAnswer } from './idempotency.js'

const answer = {
  status: 201,
  headers: { 'content-type': 'application/json', location: '/v1/inboxes/x' },
  body: Buffer.from('{"password":"line\nfeed"}\n\0\xff', 'latin1'),
}

describe('a stored answer', () => {
  it('comes out as it went in', () => {
    const opened = openAnswer(sealAnswer(answer, 'secret', 'id'), 'secret', 'id')
    expect({ ...opened, body: Buffer.from(opened.body) }).toEqual(answer)
  })

  it('opens to its own secret and under its own id alone', () => {
    const sealed = sealAnswer(answer, 'secret', 'id')
    expect(sealed.includes('password')).toBe(false)
    expect(() => openAnswer(sealed, 'another', 'id')).toThrow(SealBrokenError)
    expect(() => openAnswer(sealed, 'secret', 'another')).toThrow(SealBrokenError)
  })
})
