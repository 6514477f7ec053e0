import { generateKeyPairSync } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { createInbox, messagesOf, send, mail, type MessageJson } from '#test/harness/client.js'
import { startDns, type DnsServer } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'

const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})

describe('the authentication of a mail', () => {
  let dns: DnsServer
  let mayfly: Mayfly

  beforeAll(async () => {
    dns = await startDns({
      'app.example': { TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
      'k._domainkey.app.example': { TXT: [`v=DKIM1; p=${publicKey.toString('base64')}`] },
      '_dmarc.app.example': { TXT: ['v=DMARC1; p=quarantine'] },
      'silent.example': { isSilent: true },
    })
    mayfly = await startMayfly({
      isOneProcess: true,
      env: { MAYFLY_MAIL_AUTHENTICATION: 'true', MAYFLY_DNS_SERVERS: dns.address },
    })
  })
  afterAll(async () => {
    await mayfly.dispose()
    dns.dispose()
  })

  const firstMessage = async (id: string): Promise<MessageJson | undefined> =>
    (await messagesOf(mayfly, id, 1))[0]

  it('is verified on arrival, and stays the same when the DNS zone changes', async () => {
    const inbox = await createInbox(mayfly)
    const dkim = { domainName: 'app.example', keySelector: 'k', privateKey }
    const mailer = createTransport({ host: '127.0.0.1', port: mayfly.smtpPort, ignoreTLS: true, dkim })
    await mailer.sendMail({
      from: 'App <no-reply@app.example>',
      to: inbox.address,
      subject: 'Hi',
      text: 'Hello',
    })
    mailer.close()
    const expected = {
      spf: { result: 'pass', domain: 'app.example' },
      dkim: [
        {
          result: 'pass',
          domain: 'app.example',
          selector: 'k',
          algorithm: 'rsa-sha256',
          aligned: true,
          detail: null,
        },
      ],
      dmarc: { result: 'pass', domain: 'app.example', policy: 'quarantine', detail: null },
    }
    expect((await firstMessage(inbox.id))?.authentication).toMatchObject(expected)

    const { zone } = dns
    dns.zone = {}
    await mayfly.end('SIGTERM')
    mayfly = await mayfly.restart()
    expect((await firstMessage(inbox.id))?.authentication).toMatchObject(expected)
    dns.zone = zone
  })

  it('refuses no mail, even if verification fails or is impossible', async () => {
    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, mail('forged', 'text'), 'ceo@silent.example')
    const message = await firstMessage(inbox.id)
    expect(message?.authentication.spf).toMatchObject({ result: 'temperror', domain: 'silent.example' })
    expect(message?.authentication.dkim).toEqual([])
  })
})
