import { erasureAfter, erasureIdOf } from './erasure.js'
import { deleted, expired, INBOX_ID, minute, OTHER_KEY_ID } from './inbox.test-support.js'

describe('the erasure of an inbox', () => {
  it('names who deleted the inbox', () => {
    expect(erasureAfter(deleted(minute(3)), OTHER_KEY_ID, minute(4))).toMatchObject({
      ...{ inboxId: INBOX_ID, state: 'deleted', actor: OTHER_KEY_ID },
      ...{ endedAt: minute(3), erasedAt: minute(4), copiesGoneBy: minute(64) },
    })
  })

  it('names nobody if the inbox expired', () => {
    const { expiredAt: endedAt } = expired
    const erased = erasureAfter(expired, null, minute(40))
    expect(erased).toMatchObject({ state: 'expired', actor: null, endedAt, erasedAt: minute(40) })
  })

  it('has an id that follows from the inbox', () => {
    expect(erasureIdOf(INBOX_ID)).toBe(INBOX_ID.replace('inb_', 'evt_'))
  })
})
