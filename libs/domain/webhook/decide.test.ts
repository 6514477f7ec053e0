import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { WebhookCommand } from './decide.js'
import {
  ACCOUNT_ID,
  changed,
  day,
  disabled,
  FACTS,
  given,
  registered,
  removed,
  rotated,
  sealed,
  WEBHOOK_ID,
} from './webhook.test-support.js'

const ids = { accountId: ACCOUNT_ID, webhookId: WEBHOOK_ID }
const otherAccount = idFromBytes('acc', Buffer.alloc(16, 9))

const urlOf = (text: string, n = 0) => ({ text, stored: sealed(n) })

const register = (facts: Partial<Extract<WebhookCommand, { type: 'RegisterWebhook' }>> = {}) =>
  ({
    type: 'RegisterWebhook',
    ...FACTS,
    url: urlOf('https://ci.example/mail'),
    registered: 0,
    now: day(1),
    ...facts,
  }) as const

const change = (
  changes: Partial<Pick<Extract<WebhookCommand, { type: 'ChangeWebhook' }>, 'url' | 'events' | 'state'>>,
) =>
  ({ type: 'ChangeWebhook', ...ids, url: null, events: null, state: null, ...changes, now: day(2) }) as const

const rotate = (graceMs: number) =>
  ({ type: 'RotateWebhookSecret', ...ids, secret: sealed(1), graceMs, now: day(2) }) as const

const disable = { type: 'DisableWebhook', ...ids, reason: 'gone', now: day(2) } as const
const remove = { type: 'RemoveWebhook', ...ids, now: day(8) } as const

describe('a registration', () => {
  it('is accepted unchanged', () => {
    given().when(register()).then([registered])
    given()
      .when(register({ inboxId: null }))
      .then([{ ...registered, inboxId: null }])
  })

  it('that is repeated changes nothing, even if the webhook was removed since', () => {
    given(registered).when(register()).then([])
    given(registered, removed).when(register()).then([])
  })

  test.each([
    { of: 'inbox', inboxId: FACTS.inboxId, most: 20 },
    { of: 'environment', inboxId: null, most: 100 },
  ] as const)('is refused for an $of that has $most webhooks', ({ of, inboxId, most }) => {
    given()
      .when(register({ inboxId, registered: most - 1 }))
      .then([{ ...registered, inboxId }])
    given()
      .when(register({ inboxId, registered: most }))
      .thenRefused({ code: 'too-many-webhooks', of, max: most })
  })

  it('is refused if the URL is invalid', () => {
    given()
      .when(register({ url: urlOf('ftp://ci.example/') }))
      .thenRefused({ code: 'unfit-url', error: expect.stringMatching(/http or https/) as string })
  })
})

describe('a change', () => {
  it('contains only what is changed', () => {
    const url = urlOf('http://other.example/', 1)
    given(registered)
      .when(change({ url }))
      .then([changed({ url: sealed(1) })])
    given(registered, disabled('gone'))
      .when(change({ state: 'active' }))
      .then([changed({ state: 'active' })])
  })

  it('to the current values changes nothing', () => {
    const { events } = FACTS
    const url = urlOf('https://ci.example/mail')
    given(registered)
      .when(change({ url, events, state: 'active' }))
      .then([])
  })

  it('is refused if the URL is invalid', () => {
    given(registered)
      .when(change({ url: urlOf('https://user@ci.example/') }))
      .thenRefused({ code: 'unfit-url', error: expect.stringMatching(/user name/) as string })
  })
})

describe('a rotation', () => {
  it('keeps the previous secret valid during the grace', () => {
    given(registered)
      .when(rotate(86_400_000))
      .then([rotated(1, day(2), day(3))])
    given(registered)
      .when(rotate(0))
      .then([rotated(1, day(2), day(2))])
  })

  it('has the next number', () => {
    given(registered, rotated(1, day(1), day(1)))
      .when({ ...rotate(0), secret: sealed(2) })
      .then([rotated(2, day(2), day(2))])
  })

  it('is refused if the grace is longer than seven days', () => {
    given(registered)
      .when(rotate(7 * 86_400_000))
      .then([rotated(1, day(2), day(9))])
    given(registered)
      .when(rotate(7 * 86_400_000 + 1))
      .thenRefused({ code: 'over-grace', maxMs: 7 * 86_400_000 })
  })
})

describe('a webhook', () => {
  it('is disabled once, for the first reason', () => {
    given(registered)
      .when(disable)
      .then([disabled('gone')])
    given(registered, disabled('failing')).when(disable).then([])
  })

  it('is removed', () => {
    given(registered).when(remove).then([removed])
    given(registered, disabled('gone')).when(remove).then([removed])
  })

  test.each([change({ state: 'disabled' }), rotate(0), disable, remove])(
    'is unknown to $type if it does not exist, was removed, or belongs to another account',
    (command) => {
      given().when(command).thenRefused({ code: 'unknown-webhook' })
      given(registered, removed).when(command).thenRefused({ code: 'unknown-webhook' })
      given({ ...registered, accountId: otherAccount })
        .when(command)
        .thenRefused({ code: 'unknown-webhook' })
    },
  )
})
