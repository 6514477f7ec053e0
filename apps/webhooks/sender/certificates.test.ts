import { readFile } from 'node:fs/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Authority } from '#test/harness/certificates.js'
import { startDns, type DnsServer } from '#test/harness/dns.js'
import { startEndpoint, startTcpEndpoint } from '#test/harness/endpoint.js'
import { attempt } from '#test/harness/sender.js'

const DAY_MS = 86_400_000
let authority: Authority
let stranger: Authority
let dns: DnsServer
const trusted = getCACertificates('default')

beforeAll(async () => {
  authority = await Authority.make()
  stranger = await Authority.make('an untrusted authority')
  dns = await startDns({ 'app.example': { A: ['127.0.0.1'] } })
  // Does what NODE_EXTRA_CA_CERTS does at the start of a process.
  setDefaultCACertificates([...trusted, await readFile(authority.certFile, 'utf8')])
})
afterAll(async () => {
  setDefaultCACertificates(trusted)
  dns.dispose()
  await Promise.all([authority.dispose(), stranger.dispose()])
})

const options = () => ({ dnsServers: [dns.address] })

describe('over TLS', () => {
  it.each([
    { host: 'app.example', serverName: 'app.example' },
    { host: 'app.example.', serverName: 'app.example' },
    { host: '127.0.0.1', serverName: null },
  ])('a webhook goes to $host', async ({ host, serverName }) => {
    const certificate = await authority.issue('an endpoint', { hosts: ['app.example', '127.0.0.1'] })
    const endpoint = await startEndpoint(undefined, { certificate })
    dns.zone = { 'app.example': { A: ['127.0.0.1'] } }
    const outcome = await attempt(`https://${host}:${endpoint.port}/hook`, options())
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
    expect(endpoint.requests).toMatchObject([{ serverName }])
    await endpoint.dispose()
  })

  it.each([
    { what: 'from an untrusted authority', detail: /not trusted|does not send an intermediate/ },
    { what: 'for another host', detail: /^the certificate is for another host$/ },
    { what: 'that has expired', detail: /^the certificate has expired$/ },
  ])('rejects a certificate $what, even if NODE_TLS_REJECT_UNAUTHORIZED is 0', async ({ what, detail }) => {
    const issuer = what === 'from an untrusted authority' ? stranger : authority
    const hosts = [what === 'for another host' ? 'other.example' : 'app.example']
    const until = new Date(Date.now() + (what === 'that has expired' ? -DAY_MS : DAY_MS))
    const endpoint = await startEndpoint(undefined, {
      certificate: await issuer.issue('it', { hosts, until }),
    })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      const outcome = await attempt(`https://app.example:${endpoint.port}/hook`, options())
      expect(outcome).toMatchObject({ reason: 'tls', detail: expect.stringMatching(detail) as string })
      expect(endpoint.requests).toEqual([])
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
      await endpoint.dispose()
    }
  })

  it('reports a failed handshake if the endpoint does not speak TLS', async () => {
    const plain = await startEndpoint()
    expect(await attempt(plain.url.replace('http:', 'https:'))).toMatchObject({
      kind: 'failed',
      reason: 'tls',
      detail: expect.stringMatching(/^the handshake failed \(.*\)$/) as string,
    })
    await plain.dispose()
  })

  it('reports a connection that is closed during the handshake', async () => {
    const cutting = await startTcpEndpoint((socket) => socket.once('data', () => socket.resetAndDestroy()), {
      scheme: 'https',
    })
    const detail = 'the connection was closed during the handshake'
    expect(await attempt(cutting.url)).toMatchObject({ kind: 'failed', reason: 'tls', detail })
    await cutting.dispose()
  })
})
