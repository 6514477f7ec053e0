import { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FixedMemoryLimit } from './connection-limits.js'
import { MailData } from './mail-data.js'
import { SessionStream } from './session-stream.js'

const MIB = 2 ** 20
const CHUNKS = 40
const nothing = () => undefined

describe('the streams of large mails', () => {
  it.each([{ count: 1 }, { count: 8 }, { count: 30 }])(
    'read at most eight chunks in a turn of the event loop: $count of them',
    async ({ count }) => {
      let read = 0
      const budget = new FixedMemoryLimit(count * MIB)
      for (let opened = 0; opened < count; opened += 1) {
        const data = MailData.begin({ maxBytes: MIB, declaredBytes: null }, budget)
        if (data === null) throw new Error('no memory')
        const socket = new Socket()
        const stream = new SessionStream(socket, {
          maxLineBytes: () => 2_048,
          onLine: () => null,
          onMail: () => Promise.resolve(),
          onTooLong: nothing,
          onSecure: nothing,
          onHandshakeFailed: nothing,
          onError: nothing,
          onClose: nothing,
        })
        stream.receive(data)
        socket.push(Buffer.alloc(65 * 1024, 'a'))
        for (let written = 0; written < CHUNKS; written += 1) socket.push(Buffer.from('a'))
        socket.on('data', ({ length }: Buffer) => (read += length === 1 ? 1 : 0))
      }
      while (read < count * CHUNKS) {
        const before = read
        await nextTurn()
        expect(read - before).toBeLessThanOrEqual(8)
      }
    },
  )
})
