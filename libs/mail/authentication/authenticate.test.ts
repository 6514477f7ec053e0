import { generateKeyPairSync } from 'node:crypto'
import { sealMessage } from 'mailauth'
import { createTransport } from 'nodemailer'
import type { Authentication } from '../message.js'
import { startDns, type DnsServer, type Zone } from '#test/harness/dns.js'
import { authenticateMail, type Sender } from './authenticate.js'
import { MailDns } from './mail-dns.js'

const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
})
const key = `v=DKIM1; k=rsa; p=${rsa.publicKey.toString('base64')}`

const ZONE: Zone = {
  'app.example': { TXT: ['v=spf1 ip4:192.0.2.1 include:partner.example ~all'] },
  'partner.example': { TXT: ['v=spf1 ip4:192.0.2.2 -all'] },
  'strict.example': { TXT: ['v=spf1 -all'] },
  'neutral.example': { TXT: ['v=spf1 ?all'] },
  'none.example': {},
  'twice.example': { TXT: ['v=spf1 -all', 'v=spf1 +all'] },
  'loop.example': { TXT: ['v=spf1 include:loop.example -all'] },
  'mx.app.example': { TXT: ['v=spf1 a -all'], A: ['192.0.2.1'] },
  'silent.example': { isSilent: true },
  'broken.example': { rcode: 'SERVFAIL' },
  'k._domainkey.app.example': { TXT: [key] },
  'revoked._domainkey.app.example': { TXT: ['v=DKIM1; p='] },
  'k._domainkey.other.example': { TXT: [key] },
  '_dmarc.app.example': { TXT: ['v=DMARC1; p=reject'] },
  '_dmarc.strict.example': { TXT: ['v=DMARC1; p=quarantine'] },
}

let server: DnsServer

beforeAll(async () => {
  server = await startDns(ZONE)
})
afterAll(() => server.dispose())

const sender: Sender = { mailFrom: 'bounce@app.example', helo: 'mx.app.example', remoteAddress: '192.0.2.1' }
const PLAIN = 'From: App <no-reply@app.example>\r\nSubject: Hi\r\n\r\nHello\r\n'

async function verify(
  raw: string | Buffer,
  from: Partial<Sender> = {},
  dnsMs = 5_000,
): Promise<Authentication> {
  const dns = new MailDns([server.address])
  const resolve = dns.forMail(dnsMs)
  return authenticateMail(Buffer.from(raw), { ...sender, ...from }, resolve).finally(() => dns.close())
}

/** Signed by nodemailer, which shares no code with mailauth. */
async function signed(domainName = 'app.example', keySelector = 'k', from = 'no-reply@app.example') {
  const dkim = { domainName, keySelector, privateKey: rsa.privateKey }
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows', dkim })
  const { message } = await transport.sendMail({ from, subject: 'Hi', text: 'Hello, your code is 493201\n' })
  if (!Buffer.isBuffer(message)) throw new Error('nodemailer returned a stream')
  return message.toString('latin1')
}

describe('SPF', () => {
  it.each([
    { from: {}, result: 'pass', domain: 'app.example' },
    { from: { remoteAddress: '192.0.2.2' }, result: 'pass', domain: 'app.example' },
    { from: { remoteAddress: '192.0.2.3' }, result: 'softfail', domain: 'app.example' },
    { from: { remoteAddress: '2001:db8::1' }, result: 'softfail', domain: 'app.example' },
    { from: { mailFrom: '' }, result: 'pass', domain: 'mx.app.example' },
    { from: { mailFrom: 'a@strict.example' }, result: 'fail', domain: 'strict.example' },
    { from: { mailFrom: 'a@neutral.example' }, result: 'neutral', domain: 'neutral.example' },
    { from: { mailFrom: 'a@none.example' }, result: 'none', domain: 'none.example' },
    { from: { mailFrom: 'a@missing.example' }, result: 'none', domain: 'missing.example' },
    { from: { mailFrom: 'a@twice.example' }, result: 'permerror', domain: 'twice.example' },
    { from: { mailFrom: 'a@loop.example' }, result: 'permerror', domain: 'loop.example' },
    { from: { mailFrom: 'a@broken.example' }, result: 'temperror', domain: 'broken.example' },
  ])('$result for $from', async ({ from, result, domain }) => {
    expect((await verify(PLAIN, from)).spf).toMatchObject({ result, domain })
  })

  it('is a temporary error if the server does not answer in time', async () => {
    const { spf } = await verify(PLAIN, { mailFrom: 'a@silent.example' }, 100)
    expect(spf).toMatchObject({ result: 'temperror', domain: 'silent.example' })
  })

  it('is not verified if the address of the client is unknown', async () => {
    expect((await verify(PLAIN, { remoteAddress: '' })).spf).toBeNull()
  })
})

describe('DKIM', () => {
  it('passes for an unchanged mail, aligned with its author', async () => {
    expect((await verify(await signed())).dkim).toEqual([
      {
        ...{ result: 'pass', domain: 'app.example', selector: 'k', algorithm: 'rsa-sha256' },
        ...{ aligned: true, detail: null },
      },
    ])
  })

  it.each([
    { name: 'a changed body', change: (raw: string) => raw.replace('493201', '493202'), result: 'fail' },
    {
      name: 'a changed header',
      change: (raw: string) => raw.replace('Subject: Hi', 'Subject: Ho'),
      result: 'fail',
    },
    { name: 'a missing key', selector: 'none', result: 'neutral' },
    { name: 'a revoked key', selector: 'revoked', result: 'neutral' },
  ])('$result for $name', async ({ change = (raw: string) => raw, selector = 'k', result }) => {
    const { dkim } = await verify(change(await signed('app.example', selector)))
    expect(dkim).toMatchObject([{ result, domain: 'app.example', selector }])
    expect(dkim[0]?.detail).toEqual(expect.any(String))
  })

  it('passes for another domain, which is not the author’s', async () => {
    const { dkim } = await verify(await signed('other.example'))
    expect(dkim).toMatchObject([{ result: 'pass', domain: 'other.example', aligned: false }])
  })

  it('is empty for a mail without a signature', async () => {
    expect((await verify(PLAIN)).dkim).toEqual([])
  })

  it('verifies at most ten of hundreds of signatures', async () => {
    const mail = await signed()
    const [signature = ''] = mail.split(/\r\n(?![ \t])/)
    expect(signature).toMatch(/^DKIM-Signature:/)
    const { dkim } = await verify(`${signature}\r\n`.repeat(200) + mail)
    expect(dkim.length).toBeLessThanOrEqual(10)
    expect(dkim[0]).toMatchObject({ result: 'pass' })
  })
})

describe('DMARC', () => {
  it('passes if only the signature is valid', async () => {
    const { spf, dmarc } = await verify(await signed(), { mailFrom: 'a@strict.example' })
    expect(spf).toMatchObject({ result: 'fail' })
    expect(dmarc).toEqual({ result: 'pass', domain: 'app.example', policy: 'reject', detail: null })
  })

  it('passes if only SPF passes', async () => {
    expect((await verify(PLAIN)).dmarc).toMatchObject({ result: 'pass', policy: 'reject' })
  })

  it('fails for a mail that another domain sent and signed', async () => {
    const { dmarc } = await verify(await signed('other.example', 'k', 'ceo@strict.example'))
    expect(dmarc).toMatchObject({ result: 'fail', domain: 'strict.example', policy: 'quarantine' })
  })

  it('is none for a domain without a policy', async () => {
    const { dmarc } = await verify(PLAIN.replaceAll('app.example', 'none.example'))
    expect(dmarc?.result).toBe('none')
  })

  it('is null for a mail without an author, and an error for a mail with several', async () => {
    expect((await verify('Subject: Hi\r\n\r\nHello\r\n')).dmarc).toBeNull()
    const two = 'From: a@app.example, b@strict.example\r\n\r\nHello\r\n'
    expect((await verify(two)).dmarc).toMatchObject({ result: 'permerror' })
  })
})

describe('ARC', () => {
  it('passes for an unchanged chain, and is absent without a chain', async () => {
    const mail = await signed()
    const seal = { signingDomain: 'other.example', selector: 'k', privateKey: rsa.privateKey }
    const headers = await sealMessage(Buffer.from(mail), {
      ...seal,
      cv: 'none',
      authResults: 'mayfly; spf=pass',
    })
    expect((await verify(headers.toString() + mail)).arc).toEqual({
      result: 'pass',
      instances: 1,
      detail: 'i=1 spf=pass',
    })
    const changed = headers.toString() + mail.replace('493201', '493202')
    expect((await verify(changed)).arc).toMatchObject({ result: 'fail', instances: 1 })
    expect(await verify(mail)).not.toHaveProperty('arc')
  })
})

const signature =
  'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=app.example; s=k; h=from; bh=x; b=y\r\n'

describe('an abnormal mail', () => {
  it.each([
    { mail: `X: ${'x'.repeat(200_000)}\r\n${PLAIN}`, why: 'the header is too large to be verified' },
    {
      mail: `X: x${'\r\n x'.repeat(1_000)}\r\n${PLAIN}`,
      why: 'a header field has too many lines to be verified',
    },
    { mail: `${signature}${PLAIN}${'x'.repeat(2_000_000)}`, why: 'a line is too long to be verified' },
  ])('$why', async ({ mail, why }) => {
    const verification = { result: 'permerror', domain: null, detail: why }
    expect(await verify(mail)).toEqual({
      spf: verification,
      dkim: [],
      dmarc: { ...verification, policy: null },
    })
  })

  it.each([
    {
      name: 'signatures of a large body',
      mail: `${signature.repeat(10)}${PLAIN}${'hello \r\n'.repeat(400_000)}`,
    },
    { name: 'nothing but line ends', mail: `${signature}${PLAIN}${'\r\n'.repeat(3_000_000)}` },
    { name: 'lines of spaces', mail: `${signature}${PLAIN}${`${' '.repeat(1_000_000)}x\r\n`.repeat(5)}` },
    {
      name: 'signed headers',
      mail: `DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=k; h=${'from:'.repeat(20_000)}; bh=x; b=y\r\n${PLAIN}`,
    },
    { name: 'authors', mail: `From: ${'a@b.example, '.repeat(9_000)}\r\n\r\n` },
    {
      name: 'ARC sets',
      mail: `${Array.from({ length: 500 }, (_, i) => `ARC-Seal: i=${i}; a=rsa-sha256; cv=none; d=a.example; s=k; b=x\r\nARC-Message-Signature: i=${i}; a=rsa-sha256; d=a.example; s=k; h=from; bh=x; b=y\r\n`).join('')}${PLAIN}`,
    },
  ])('very many $name are verified', async ({ mail }) => {
    expect(await verify(mail)).toHaveProperty('spf.result')
  })

  it.each([
    ...['', '\r\n\r\n', '\0\xff', 'From: @\r\n\r\n'],
    'DKIM-Signature: v=1; a=rsa-sha256; h=\xff; d=; s=;;=;b=\r\n\r\nx',
  ])('%j has a result', async (raw) => {
    const verified = await verify(Buffer.from(raw, 'latin1'), { mailFrom: 'a@b@c', helo: '[' })
    expect(JSON.parse(JSON.stringify(verified))).toEqual(verified)
  })
})
