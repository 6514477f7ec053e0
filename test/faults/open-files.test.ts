import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInbox, mail, messagesOf, send } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'

const LIMIT = 1_024
const linux = process.platform === 'linux' ? describe : describe.skip

linux('with a low limit of open files, Mayfly', () => {
  let mayfly: Mayfly
  const sockets: Socket[] = []

  beforeEach(async () => {
    mayfly = await startMayfly({ through: ['bash', '-c', `ulimit -n ${LIMIT}; exec "$0" "$@"`] })
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await mayfly.dispose()
  })

  /** Opens more connections than the process may have files, from several addresses, and sends nothing on them. */
  async function flood(port: number): Promise<void> {
    let settled = 0
    for (let number = 0; number < LIMIT + 200; number += 1) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${number % 4}` })
      socket.on('error', () => undefined)
      sockets.push(socket)
      void Promise.race([once(socket, 'connect'), once(socket, 'close')]).finally(() => (settled += 1))
    }
    await until('the connections', () => settled === sockets.length)
  }

  it('warns about it', () => {
    expect(mayfly.output().stderr).toMatch(
      /"level":40,.*"openFiles":1024,.*the limit of open files is too low/,
    )
  })

  it.each(['SMTP', 'HTTP'] as const)(
    'serves both ports while many connections to %s are open',
    async (flooded) => {
      await flood(flooded === 'HTTP' ? Number(new URL(mayfly.url).port) : mayfly.smtpPort)
      // The kernel accepts connections before the server does, which may close others that have sent no request yet.
      const inbox = await until('a request to be served', () => createInbox(mayfly).catch(() => null))
      await send(mayfly, inbox.address, mail('in spite of them', 'text'))
      expect(await messagesOf(mayfly, inbox.id, 1)).toMatchObject([{ subject: 'in spite of them' }])
    },
  )
})
