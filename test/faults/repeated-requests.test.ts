import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import {
  call,
  createInbox,
  messagesOf,
  only,
  pagesFrom,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

/** Stages of a POST, each with the file that is synced and the number of that sync. */
const MOMENTS = [
  { moment: 'its reservation', file: 'idempotency/requests.mdb', time: 1 },
  { moment: "the inbox's key", file: 'keys/keys.mdb', time: 1 },
  { moment: 'the event', file: 'event-log/log.mdb', time: 1 },
  { moment: 'the answer', file: 'idempotency/requests.mdb', time: 2 },
  { moment: 'the event of a chosen address', file: 'event-log/log.mdb', time: 1, address: 'event@x.example' },
  {
    moment: 'the end of the reservation of a chosen address',
    file: 'idempotency/requests.mdb',
    time: 3,
    address: 'end@x.example',
  },
]

describeWith('strace')('a process killed during a POST with an Idempotency-Key', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    // strace counts the calls of each thread separately.
    mayfly = await startMayfly({ env: { UV_THREADPOOL_SIZE: '1' } })
  })
  afterAll(() => mayfly.dispose())

  it.each(MOMENTS)(
    'at the sync of $moment: a repeat creates only one inbox',
    async ({ moment, file, time, address }) => {
      const run = moment.replaceAll(/\W/g, '-')
      const post = () =>
        call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
          body: { labels: { run }, address },
          headers: { 'idempotency-key': run },
        })
      const { killed } = await killAtSync(mayfly.pid, join(mayfly.dataDir, file), time)
      await expect(post()).rejects.toThrow()
      await killed
      await mayfly.end('SIGKILL')
      mayfly = await mayfly.restart()
      const repeated = await until('an answer', async () => {
        const answer = await post()
        return answer.status === 503 ? null : answer
      })
      expect(repeated.status).toBe(201)
      expect(repeated.headers.get('idempotent-replayed')).toBeNull()
      const [listed] = await pagesFrom<InboxJson>(mayfly, `/v1/inboxes?label=run:${run}`)
      expect(only(listed?.body ?? [])).toEqual(repeated.body)
      const replayed = await post()
      expect(replayed.headers.get('idempotent-replayed')).toBe('true')
      expect(replayed.body).toEqual(repeated.body)
    },
  )

  it('at the sync of the event: a repeat finds the mail that was put in', async () => {
    const inbox = await createInbox(mayfly)
    const put = () =>
      call<MessageJson>(mayfly, 'POST', `/v1/inboxes/${inbox.id}/messages`, {
        body: { from: 'app@example.com', subject: 'hello' },
        headers: { 'idempotency-key': 'one-mail' },
      })
    const { killed } = await killAtSync(mayfly.pid, join(mayfly.dataDir, 'event-log/log.mdb'), 1)
    await expect(put()).rejects.toThrow()
    await killed
    await mayfly.end('SIGKILL')
    mayfly = await mayfly.restart()
    const repeated = await until('an answer', async () => {
      const answer = await put()
      return answer.status === 503 ? null : answer
    })
    expect(repeated.status).toBe(201)
    expect(await messagesOf(mayfly, inbox.id, 1)).toEqual([repeated.body])
  })
})

/** Kills the process at a sync of a file. Resolves once strace is attached; `killed` resolves after the kill. */
async function killAtSync(pid: number, file: string, time: number): Promise<{ killed: Promise<unknown> }> {
  const inject = `inject=fdatasync,fsync,msync:signal=SIGKILL:when=${time}`
  const options = ['-f', '-p', String(pid), '-P', file, '-e', 'trace=fdatasync,fsync,msync', '-e', inject]
  const strace = spawn('strace', options, { stdio: ['ignore', 'ignore', 'pipe'] })
  const killed = once(strace, 'exit')
  let said = ''
  strace.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  await until('strace to attach', () => said.includes('attached'))
  return { killed }
}
