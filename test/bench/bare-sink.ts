import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'

/*
 * The baseline of the cost of a mail: an SMTP server on node:net in a separate process that discards all mail. It
 * understands only the commands that smtp-source sends. This file is also the forked process.
 */

export interface BareSink {
  port: number
  pid: number
  close(): Promise<void>
}

/** Resolves once it listens. */
export async function startBareSink(): Promise<BareSink> {
  const child = fork(new URL(import.meta.url), [FORKED])
  const exited = once(child, 'exit')
  const [port] = (await Promise.race([once(child, 'message'), exited])) as unknown[]
  if (typeof port !== 'number' || child.pid === undefined) throw new Error('the bare sink did not start')
  return {
    port,
    pid: child.pid,
    async close() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

const FORKED = '--discard'
const REPLIES: Readonly<Record<string, string>> = { DATA: '354 go on\r\n', QUIT: '221 bye\r\n' }
const END_OF_MAIL = '\r\n.\r\n'

function discard(socket: Socket): void {
  let isInMail = false
  let end = ''
  socket.setNoDelay(true).write('220 bare.example\r\n')
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    const text = chunk.toString('latin1', Math.max(chunk.length - END_OF_MAIL.length, 0))
    if (isInMail) {
      end = (end + text).slice(-END_OF_MAIL.length)
      if (end !== END_OF_MAIL) return
      isInMail = false
      socket.write('250 discarded\r\n')
      return
    }
    const verb = chunk.toString('latin1', 0, 4)
    isInMail = verb === 'DATA'
    end = ''
    socket.write(REPLIES[verb] ?? '250 ok\r\n')
    if (verb === 'QUIT') socket.end()
  })
}

if (process.argv[2] === FORKED) {
  const server = createServer(discard).listen({ host: '127.0.0.1', port: 0, backlog: 1_000 })
  await once(server, 'listening')
  process.on('disconnect', () => process.exit(0))
  process.send?.((server.address() as AddressInfo).port)
}
