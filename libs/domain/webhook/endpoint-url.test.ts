import { faultOfUrl } from './endpoint-url.js'

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
    expect(faultOfUrl(url)).toBeNull()
  })

  test.each([
    { url: '', fault: /absolute/ },
    { url: '/mail', fault: /absolute/ },
    { url: 'ci.example/mail', fault: /absolute/ },
    { url: 'ftp://ci.example/', fault: /absolute/ },
    { url: 'file:///etc/passwd', fault: /absolute/ },
    { url: 'javascript:alert(1)', fault: /absolute/ },
    { url: 'https:ci.example', fault: /absolute/ },
    { url: 'https://', fault: /absolute/ },
    { url: 'https://ci.example:99999/', fault: /absolute/ },
    { url: 'https://1.2.3.999/', fault: /absolute/ },
    { url: ' https://ci.example/', fault: /absolute/ },
    { url: 'https://ci.example/a b', fault: /absolute/ },
    { url: 'https://ci.exa\nmple/', fault: /absolute/ },
    { url: 'https://ci.example/\u0000', fault: /absolute/ },
    { url: 'https://ci.example/\ud800', fault: /absolute/ },
    { url: 'https://ci.example/#top', fault: /fragment/ },
    { url: 'https://ci.example/#', fault: /fragment/ },
    { url: 'https://user@ci.example/', fault: /user name/ },
    { url: 'https://user:secret@ci.example/', fault: /user name/ },
    { url: 'https://:secret@ci.example/', fault: /user name/ },
    { url: `${LONGEST}a`, fault: /2048 characters/ },
    { url: `https://ci.example/${'a'.repeat(1_000_000)}`, fault: /2048 characters/ },
  ])('is refused: $url', ({ url, fault }) => {
    expect(faultOfUrl(url)).toMatch(fault)
  })
})
