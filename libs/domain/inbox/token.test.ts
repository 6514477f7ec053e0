import fc from 'fast-check'
import {
  changed,
  created,
  deleted,
  expired,
  given,
  INBOX_ID,
  issueToken,
  minute,
  OTHER_KEY_ID,
  revokeToken,
  tokenId,
  tokenIssued,
  tokenRevoked,
} from './inbox.test-support.js'
import { inboxIdOfToken, makeTokenSecret, MAX_TOKENS, TOKEN_BYTES } from './token.js'

const issued = tokenIssued(minute(1))
const token = {
  id: tokenId(1),
  hash: issued.hash,
  access: 'read',
  keyId: OTHER_KEY_ID,
  issuedAt: minute(1),
  expiresAt: minute(11),
  revokedAt: null,
}
/** As many tokens as an inbox may have, issued in its first minute. */
const full = Array.from({ length: MAX_TOKENS }, (_, index) =>
  tokenIssued(minute(0), { tokenId: tokenId(index + 1), revision: index + 1 }),
)
const another = { tokenId: tokenId(MAX_TOKENS + 1) }

describe('IssueToken', () => {
  it('issues a token for a time, or until the inbox expires', () => {
    given(created)
      .when(issueToken(minute(1)))
      .then([issued])
    given(created)
      .when(issueToken(minute(1), { lifeMs: null, access: 'owner' }))
      .then([{ ...issued, access: 'owner', expiresAt: minute(30) }])
  })

  it('is refused if the token would outlive the inbox, whose expiry may have been moved', () => {
    const lifeMs = 29 * 60_000
    given(created)
      .when(issueToken(minute(1), { lifeMs }))
      .then([{ ...issued, expiresAt: minute(30) }])
    const shorter = changed(minute(1), { lifetime: { duration: '20m', expiresAt: minute(20) } })
    given(created, shorter)
      .when(issueToken(minute(1), { lifeMs }))
      .thenRefused({ code: 'outlives-inbox', expiresAt: minute(20) })
    given(created)
      .when(issueToken(minute(1), { lifeMs: Infinity }))
      .thenRefused({ code: 'outlives-inbox', expiresAt: minute(30) })
  })

  it('changes nothing the second time, also if the token was revoked', () => {
    given(created, issued)
      .when(issueToken(minute(2)))
      .then([])
    given(created, issued, tokenRevoked(minute(2)))
      .when(issueToken(minute(3)))
      .then([])
  })

  it('is refused if the inbox has as many valid tokens as it may have', () => {
    given(created, ...full)
      .when(issueToken(minute(9), another))
      .thenRefused({ code: 'too-many-tokens' })
    const next = { ...another, revision: MAX_TOKENS + 1 }
    given(created, ...full)
      .when(issueToken(minute(10), another))
      .then([tokenIssued(minute(10), next)])
    given(created, ...full, tokenRevoked(minute(1), { revision: MAX_TOKENS + 1 }))
      .when(issueToken(minute(9), another))
      .then([tokenIssued(minute(9), { ...next, revision: MAX_TOKENS + 2 })])
  })
})

describe('RevokeToken', () => {
  it('revokes a token, and changes nothing the second time', () => {
    const revoked = tokenRevoked(minute(2))
    given(created, issued)
      .when(revokeToken(minute(2)))
      .then([revoked])
    given(created, issued, revoked)
      .when(revokeToken(minute(3)))
      .then([])
  })

  it('is refused for a token that the inbox does not have', () => {
    given(created, issued)
      .when(revokeToken(minute(2), tokenId(2)))
      .thenRefused({ code: 'unknown-token' })
  })
})

describe("an inbox's tokens", () => {
  it('are kept with the times of their expiry and revocation', () => {
    expect(given(created, issued).state.inbox?.tokens).toEqual([token])
    const revoked = given(created, issued, tokenRevoked(minute(2))).state.inbox
    expect(revoked?.tokens).toEqual([{ ...token, revokedAt: minute(2) }])
  })

  it.each([
    ['deleted', deleted(minute(3))],
    ['expired', expired],
  ])('are kept when it has %s, since they are answered 410 then', (_, end) => {
    expect(given(created, issued, end).state.inbox).toMatchObject({ tokens: [token] })
  })

  it('do not change if an event was decided before another one of the same revision', () => {
    const other = tokenIssued(minute(2), { tokenId: tokenId(2) })
    expect(given(created, issued, other).state.inbox?.tokens).toEqual([token])
    const late = tokenRevoked(minute(2), { revision: 1 })
    expect(given(created, issued, late).state.inbox?.tokens).toEqual([token])
  })

  it('are dropped when they are not valid any more and the list is full', () => {
    const next = tokenIssued(minute(10), { ...another, revision: MAX_TOKENS + 1 })
    const { inbox } = given(created, ...full, next).state
    expect(inbox?.tokens.map(({ id }) => id)).toEqual([another.tokenId])
  })
})

describe('the secret of a token', () => {
  const bytes = fc.uint8Array({ minLength: TOKEN_BYTES, maxLength: TOKEN_BYTES })

  it('has the id of its inbox, and differs if any bit differs', () => {
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        const secret = makeTokenSecret(INBOX_ID, one)
        expect(inboxIdOfToken(secret)).toBe(INBOX_ID)
        expect(secret === makeTokenSecret(INBOX_ID, other)).toBe(Buffer.from(one).equals(Buffer.from(other)))
      }),
    )
  })

  it.each(['', 'mft_', `mft_${INBOX_ID}_${'a'.repeat(32)}`, `mf_staging_${'a'.repeat(32)}_000000`])(
    'is not %j',
    (text) => {
      expect(inboxIdOfToken(text)).toBeNull()
    },
  )

  it('is not text around a token, or a token with fewer or more characters', () => {
    const secret = makeTokenSecret(INBOX_ID, new Uint8Array(TOKEN_BYTES))
    for (const text of [` ${secret}`, `${secret}\n`, `${secret}A`, secret.slice(0, -1)]) {
      expect(inboxIdOfToken(text)).toBeNull()
    }
  })
})
