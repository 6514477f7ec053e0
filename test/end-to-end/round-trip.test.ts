import { call, createInbox, mail, messagesOf, send, type MessageJson } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

describe('a mail to an inbox', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  it('is returned as JSON, with its code, its link and its source', async () => {
    const inbox = await createInbox(mayfly)
    const source = mail('Your code is 493201', 'Your code is 493201: https://app.example/verify?t=1')
    const response = await send(mayfly, inbox.address, source)
    const [listed] = await messagesOf(mayfly, inbox.id, 1)
    expect(response).toContain(`250 2.0.0 ${listed?.id ?? 'no message'}`)
    const path = `/v1/inboxes/${inbox.id}/messages/${listed?.id ?? ''}`
    const { body } = await call<MessageJson>(mayfly, 'GET', path)
    expect(body).toMatchObject({
      subject: 'Your code is 493201',
      recipient: inbox.address,
      codes: [{ value: '493201' }],
      links: [{ href: 'https://app.example/verify?t=1', text: null }],
      raw: source,
      raw_encoding: 'utf-8',
    })
  })
})
