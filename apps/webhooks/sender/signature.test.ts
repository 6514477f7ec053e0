import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { pythonWithPackages } from '#test/harness/python.js'
import { describeWith } from '#test/harness/tools.js'
import { signatureHeaders } from './webhook-sender.js'

const run = promisify(execFile)
const body = JSON.stringify({ type: 'message.received', data: { subject: 'Ihr Code: 493201 ✓ 😀 "\\' } })
const secret = randomBytes(32)
const oldSecret = randomBytes(64)
const shown = (bytes: Buffer) => `whsec_${bytes.toString('base64')}`

describe('the signature of a webhook', () => {
  it('follows the specification', () => {
    // Made with openssl: printf %s … | openssl dgst -sha256 -mac HMAC -macopt hexkey:… -binary | base64
    expect(
      signatureHeaders('dlv_1', new Date(1_700_000_000_999), Buffer.from('{"a":1}'), [Buffer.alloc(32, 7)]),
    ).toEqual({
      'webhook-id': 'dlv_1',
      'webhook-timestamp': '1700000000',
      'webhook-signature': 'v1,njnPtYaAYWfT3kuQkUQe+c8Gg1zyiPJmvWxom/KBIQk=',
    })
  })

  it.each([secret, oldSecret])('verifies with each secret, and with no other', (each) => {
    const headers = { ...signatureHeaders('dlv_1', new Date(), Buffer.from(body), [secret, oldSecret]) }
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/)
    const webhook = new Webhook(shown(each))
    expect(webhook.verify(body, headers)).toEqual(JSON.parse(body))
    expect(() => webhook.verify(`${body} `, headers)).toThrow('No matching signature')
    expect(() => webhook.verify(body, { ...headers, 'webhook-id': 'dlv_2' })).toThrow('No matching signature')
    expect(() => new Webhook(shown(randomBytes(32))).verify(body, headers)).toThrow('No matching signature')
  })

  it('needs a secret', () => {
    expect(() => signatureHeaders('dlv_1', new Date(), Buffer.from(body), [])).toThrow('dlv_1 has no secret')
  })
})

describeWith('python-packages')('a receiver in Python', () => {
  const VERIFY = `
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
for secret in given["secrets"]:
    try:
        Webhook(secret).verify(given["body"].encode(), given["headers"])
        print("right")
    except WebhookVerificationError as error:
        print("wrong")
`

  it('verifies a signature with either secret, and rejects another secret', async () => {
    const python = await pythonWithPackages()
    const secrets = [secret, oldSecret, randomBytes(32)].map(shown)
    const headers = signatureHeaders('dlv_1', new Date(), Buffer.from(body), [secret, oldSecret])
    const verifying = run(python, ['-c', VERIFY], { timeout: 60_000 })
    verifying.child.stdin?.end(JSON.stringify({ secrets, headers, body }))
    expect((await verifying).stdout).toBe('right\nright\nwrong\n')
  })
})
