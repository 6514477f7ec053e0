import { errorInUrl } from './endpoint-url.js'

const LONGEST = `https://ci.example/${'a'.repeat(2_048 - 19)}`

describe('the URL of an endpoint', () => {
  test.each([
    'https://ci.example/mail',
    'http://ci.example',
    'HTTPS://CI.EXAMPLE/',
    'http://127.0.0.1:9000/hook?run=42&a=%20',
    'http://[::1]:80/',
    'https://bücher.example/ä?ö',
    LONGEST,
  ])('is accepted: %s', (url) => {
    expect(errorInUrl(url)).toBeNull()
  })

  test.each([
    { url: '', error: /absolute/ },
    { url: '/mail', error: /absolute/ },
    { url: 'ci.example/mail', error: /absolute/ },
    { url: 'ftp://ci.example/', error: /absolute/ },
    { url: 'file:///etc/passwd', error: /absolute/ },
    { url: 'javascript:alert(1)', error: /absolute/ },
    { url: 'https:ci.example', error: /absolute/ },
    { url: 'https://', error: /absolute/ },
    { url: 'https://ci.example:99999/', error: /absolute/ },
    { url: 'https://1.2.3.999/', error: /absolute/ },
    { url: ' https://ci.example/', error: /absolute/ },
    { url: 'https://ci.example/a b', error: /absolute/ },
    { url: 'https://ci.exa\nmple/', error: /absolute/ },
    { url: 'https://ci.example/\u0000', error: /absolute/ },
    { url: 'https://ci.example/\ud800', error: /absolute/ },
    { url: 'https://ci.example/#top', error: /fragment/ },
    { url: 'https://ci.example/#', error: /fragment/ },
    { url: 'https://user@ci.example/', error: /user name/ },
    { url: 'https://user:secret@ci.example/', error: /user name/ },
    { url: 'https://:secret@ci.example/', error: /user name/ },
    { url: `${LONGEST}a`, error: /2048 characters/ },
    { url: `https://ci.example/${'a'.repeat(1_000_000)}`, error: /2048 characters/ },
  ])('is refused: $url', ({ url, error }) => {
    expect(errorInUrl(url)).toMatch(error)
  })
})
