import { IsIn } from 'class-validator'
import Type from 'typebox'
import { named } from '#libs/domain/event-sourcing/declare.js'
import type { ActiveInbox } from '#libs/domain/inbox/inbox.js'
import { TOKEN_ACCESS, type InboxToken as Token, type TokenAccess } from '#libs/domain/inbox/token.js'
import { IdOf, OneOf, resource, time } from '#libs/runtime/resource.js'
import { IfGiven } from '../http/rules.js'
import { IsDuration } from '../inboxes/inbox-requests.dto.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

@DescribeBody({
  description: 'A new token for one inbox. Every property is optional.',
  example: { access: 'read', expires_in: '30m' },
})
export class CreateInboxToken {
  @DescribeProperty(
    '`read` for a token that reads the inbox and its mail; `owner` for one that may delete the inbox too.',
  )
  @IsIn(TOKEN_ACCESS, { message: `access must be ${TOKEN_ACCESS.join(' or ')}` })
  access: TokenAccess = 'read'

  @DescribeProperty(
    'How long it is valid: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the end of the inbox. ' +
      'Default: until the inbox expires.',
  )
  @IfGiven()
  @IsDuration()
  expires_in?: string
}

const token = {
  id: IdOf('tok', 'The id of the token.'),
  access: OneOf(TOKEN_ACCESS, 'What it may do: `read`, or also delete the inbox.'),
  expiresAt: time('When it expires, at the latest with its inbox.'),
  issuedAt: named('created_at', time('When it was issued.')),
}

const example = {
  id: 'tok_01jd6bd2k6e8vrz0n4x7c1m9ps',
  access: 'read',
  expires_at: '2026-11-21T10:00:00.000Z',
  created_at: '2026-11-21T09:35:12.208Z',
}

export const { schema: InboxToken, json: tokenJson } = resource(
  'InboxToken',
  { description: 'A token for one inbox.', examples: [example] },
  token,
  endingWith,
)

/** A token in the answer that issues it. */
export const { schema: InboxTokenWithSecret, json: issuedTokenJson } = resource(
  'InboxTokenWithSecret',
  {
    description: 'A token for one inbox, with its secret.',
    examples: [{ ...example, token: 'mft_01jd6b8w0mf2ja3yz5c7e9g1hk_q3T9vKc0W5nXb7YdR2mLs8PzFh4JuEa1' }],
  },
  {
    ...token,
    secret: named(
      'token',
      Type.String({
        pattern: '^mft_[0-7][0-9a-hjkmnp-tv-z]{25}_[A-Za-z0-9_-]{32}$',
        description: 'The bearer token. Only in this answer.',
      }),
    ),
  },
  (token: Token, inbox: Ending, secret: string) => ({ ...endingWith(token, inbox), secret }),
)

export const { schema: RevokedInboxToken, json: revokedTokenJson } = resource(
  'RevokedInboxToken',
  {
    description: 'A token that was revoked.',
    examples: [{ id: example.id, revoked_at: '2026-11-21T09:41:07.122Z' }],
  },
  { id: token.id, revokedAt: time('When it was revoked. The same in the answer to a repeat.') },
)

type Ending = Pick<ActiveInbox, 'expiresAt'>

function endingWith(token: Token, inbox: Ending): Token {
  return token.expiresAt < inbox.expiresAt ? token : { ...token, expiresAt: inbox.expiresAt }
}
