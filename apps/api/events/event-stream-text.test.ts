import { eventText } from './inbox-feed.js'

describe('the text of an event', () => {
  it('has a line for each part, and an empty one behind them', () => {
    const text = eventText({
      id: 'AAAA',
      event: 'message.received',
      data: JSON.stringify({ text: 'a\r\nb\rc' }),
    })
    expect(text).toBe('id: AAAA\nevent: message.received\ndata: {"text":"a\\r\\nb\\rc"}\n\n')
  })
})
