import { policyOf, readDestination } from './destination.js'

const PORTS = [
  { first: 80, last: 80 },
  { first: 443, last: 443 },
  { first: 1024, last: 65_535 },
]
const guarded = policyOf({ allowPrivate: false, ports: PORTS })
const open = policyOf({ allowPrivate: true, ports: PORTS })

describe('the destination of a URL', () => {
  it.each([
    ['https://app.example/hook?a=1&b=%20#part', 'https://app.example', '/hook?a=1&b=%20'],
    ['http://app.example', 'http://app.example', '/'],
    ['HTTPS://App.Example:443/Hook', 'https://app.example', '/Hook'],
    ['https://app.example:8443/', 'https://app.example:8443', '/'],
    ['https://bücher.example/ü', 'https://xn--bcher-kva.example', '/%C3%BC'],
    ['http://8.8.8.8:1024/', 'http://8.8.8.8:1024', '/'],
    ['https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]', '/'],
  ])('%s is accepted', (url, origin, path) => {
    expect(readDestination(url, guarded)).toEqual({ origin, path })
  })

  it.each([
    ...['http://127.0.0.1/', 'http://127.1/', 'http://2130706433/', 'http://0x7f000001/', 'http://0x7f.1/'],
    ...[
      'http://017700000001/',
      'http://0177.0.0.1/',
      'http://127.0.0.1./',
      'http://127.0.0.01/',
      'http://0/',
    ],
    ...['http://%31%32%37.0.0.1/', 'http://１２７.0.0.1/', 'http://127。0。0。1/', 'http://①②⑦.0.0.1/'],
    ...['http:127.0.0.1', 'http:\\\\127.0.0.1\\', 'http://\t127.0.0.1/', '  http://127.0.0.1/  '],
    ...[
      'http://169.254.169.254/latest/meta-data/',
      'http://0xa9fea9fe/',
      'http://10.1/',
      'http://192.168.257/',
    ],
    ...['http://[::1]/', 'http://[::]/', 'http://[0:0:0:0:0:0:0:1]/', 'http://[::ffff:127.0.0.1]/'],
    ...[
      'http://[::ffff:7f00:1]/',
      'http://[::127.0.0.1]/',
      'http://[64:ff9b::127.0.0.1]/',
      'http://[fd00::1]/',
    ],
    ...['http://[64:ff9b:1::1]/', 'http://[2002:7f00:1::]/', 'http://[2001:0:1::1]/', 'http://[fe80::1]/'],
    ...['http://localhost/', 'http://LOCALHOST./', 'http://db.localhost/'],
  ])('%s is refused for its address unless private addresses are allowed', (url) => {
    expect(readDestination(url, guarded)).toMatchObject({ name: 'AttemptError', reason: 'refused-address' })
    expect(readDestination(url, open)).toHaveProperty('origin')
  })

  it.each([22, 25, 79, 81, 1023, 0])('may not have port %i unless private addresses are allowed', (port) => {
    const url = `https://app.example:${port}/`
    const detail = `port ${port} is not allowed`
    expect(readDestination(url, guarded)).toMatchObject({
      name: 'AttemptError',
      reason: 'refused-port',
      detail,
    })
    expect(readDestination(url, open)).toHaveProperty('origin')
  })

  it.each([
    ...[
      '',
      'app.example',
      '/hook',
      'ftp://app.example/',
      'file:///etc/passwd',
      'http://',
      'https://app.example:65536/',
    ],
    ...['http://user@app.example/', 'http://user:secret@app.example/', 'http://[fe80::1%25eth0]/', 'data:,x'],
    ...[
      'http://1.2.3.4.5/',
      'http://256.256.256.256/',
      'http://0x100000000/',
      `https://app.example/${'a'.repeat(2_030)}`,
    ],
  ])('%s is an invalid URL', (url) => {
    for (const policy of [guarded, open]) {
      expect(readDestination(url, policy)).toMatchObject({ name: 'AttemptError', reason: 'invalid-url' })
    }
  })
})
