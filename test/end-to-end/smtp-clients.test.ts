import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import {
  call,
  createInbox,
  mail,
  messagesOf,
  type InboxJson,
  type MessageJson,
} from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'

const run = promisify(execFile)

describe('real SMTP clients', () => {
  let mayfly: SharedMayfly
  let inbox: InboxJson
  let folder: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-clients-'))
  })
  beforeEach(async () => {
    inbox = await createInbox(mayfly)
  })
  afterAll(() => rm(folder, { recursive: true }))

  async function rawOf({ id }: MessageJson): Promise<string> {
    return (await call<string>(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/${id}/raw`)).body
  }

  describeWith('swaks')('swaks', () => {
    it('delivers a mail', async () => {
      const server = ['--server', '127.0.0.1', '--port', String(mayfly.smtpPort)]
      await run('swaks', [
        ...server,
        '--from',
        'a@example.com',
        '--to',
        inbox.address,
        '--header',
        'Subject: by swaks',
      ])
      const [message] = await messagesOf(mayfly, inbox.id, 1)
      expect(message).toMatchObject({ subject: 'by swaks', envelope: { mail_from: 'a@example.com' } })
    })
  })

  describeWith('smtp-source')('smtp-source', () => {
    it.each([
      { sessions: 'a connection for each mail', flags: [] },
      { sessions: 'connections kept open', flags: ['-d'] },
    ])('delivers a hundred mails over $sessions', async ({ flags }) => {
      const sender = ['-f', 'a@example.com', '-t', inbox.address, '-l', '2048', '-m', '100', '-s', '5']
      await run('smtp-source', [...flags, ...sender, `inet:127.0.0.1:${mayfly.smtpPort}`])
      const messages = await messagesOf(mayfly, inbox.id, 100)
      expect(new Set(messages.map(({ id }) => id)).size).toBe(100)
    })
  })

  describeWith('curl')('curl', () => {
    it('delivers a file byte for byte', async () => {
      const file = join(folder, 'mail.eml')
      const source = mail('by curl', '.leading dot\r\n..two of them\r\n.')
      await writeFile(file, source)
      const url = `smtp://127.0.0.1:${mayfly.smtpPort}`
      await run('curl', [
        '-sS',
        url,
        '--mail-from',
        'a@example.com',
        '--mail-rcpt',
        inbox.address,
        '-T',
        file,
      ])
      const [message] = await messagesOf(mayfly, inbox.id, 1)
      expect(message && (await rawOf(message))).toBe(source)
    })
  })

  describe('nodemailer', () => {
    it('delivers a mail with a non-ASCII address', async () => {
      const mailer = createTransport({ host: '127.0.0.1', port: mayfly.smtpPort })
      await mailer.sendMail({
        from: 'grüße@example.com',
        to: inbox.address,
        subject: 'by nodemailer',
        text: 'x',
      })
      mailer.close()
      const [message] = await messagesOf(mayfly, inbox.id, 1)
      expect(message).toMatchObject({
        subject: 'by nodemailer',
        envelope: { mail_from: 'grüße@example.com', tls: null },
      })
    })
  })
})
