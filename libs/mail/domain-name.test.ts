import { readDomainName, zoneName } from './domain-name.js'

const read = (text: string) => readDomainName(text, ['mail.mayfly.test', 'öffentlich.test'])

describe('the name of a domain', () => {
  test.each([
    ['staging.example.com', 'staging.example.com'],
    ['Staging.EXAMPLE.com', 'staging.example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    // Cyrillic letters that look like Latin ones make another name.
    ['аррӏе.com', 'xn--80ak6aa92e.com'],
    ['acme.github.io', 'acme.github.io'],
    ['github.io', 'github.io'],
    ['acme.co.uk', 'acme.co.uk'],
    ['acme.example.', 'acme.example'],
    ['app.test', 'app.test'],
    ['other.mayfly.test', 'other.mayfly.test'],
    [`${'a.'.repeat(8)}b.example`, `${'a.'.repeat(8)}b.example`],
  ])('%s is read as %s', (text, name) => {
    expect(read(text)).toEqual({ name })
  })

  test.each([
    ['', 'must be a domain name'],
    ['localhost', 'public suffix'],
    ['com', 'public suffix'],
    ['co.uk', 'public suffix'],
    ['公司.cn', 'public suffix'],
    ['acme.example..', 'must be a domain name'],
    ['com.', 'public suffix'],
    ['.example', 'must be a domain name'],
    ['a..example', 'must be a domain name'],
    ['-a.example', 'must be a domain name'],
    ['a_b.example', 'must be a domain name'],
    ['a b.example', 'must be a domain name'],
    ['*.example.com', 'must be a domain name'],
    ['a@example.com', 'must be a domain name'],
    ['192.0.2.1', 'must be a domain name'],
    ['0x7f.1', 'must be a domain name'],
    ['[2001:db8::1]', 'must be a domain name'],
    [`${'a'.repeat(64)}.example`, 'must be a domain name'],
    [`${'a.'.repeat(10)}example`, 'at most 235 characters and 10 labels'],
    [`${`${'a'.repeat(60)}.`.repeat(4)}example`, 'at most 235 characters and 10 labels'],
    [`${'ü'.repeat(200)}.${'ü'.repeat(60)}.example`, 'at most 235 characters and 10 labels'],
    ['mail.mayfly.test', 'must not be the mail domain mail.mayfly.test'],
    ['MAIL.mayfly.test', 'must not be the mail domain mail.mayfly.test'],
    ['mayfly.test', 'must not be the mail domain mail.mayfly.test'],
    ['a.mail.mayfly.test', 'must not be the mail domain mail.mayfly.test'],
    ['a.öffentlich.test', 'must not be the mail domain xn--ffentlich-z7a.test'],
  ])('%s is refused: %s', (text, error) => {
    expect(read(text)).toEqual({ error: expect.stringContaining(error) as unknown })
  })
})

describe('the name of a record in its zone', () => {
  test.each([
    ['_mayfly-challenge.staging.example.com', '_mayfly-challenge.staging'],
    ['_mayfly-challenge.example.co.uk', '_mayfly-challenge'],
    ['example.com', '@'],
    ['*.example.com', '*'],
    ['acme.github.io', 'acme'],
    ['a.b.app.test', 'a.b'],
  ])('for %s is %s', (name, expected) => {
    expect(zoneName(name)).toBe(expected)
  })
})
