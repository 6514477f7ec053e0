import { hostAndPort, mailSize, rate, senderAddress, timeSpan } from './arguments.js'

describe('options of load tests', () => {
  it.each<[(text: string) => unknown, string, unknown]>([
    [rate, '500/s', 500],
    [rate, '30/m', 0.5],
    [rate, '3600/h', 1],
    [rate, '0.5/s', 0.5],
    [timeSpan, '250ms', 250],
    [timeSpan, '5m', 300_000],
    [mailSize, '5k', 5_120],
    [mailSize, '2000', 2_000],
    [hostAndPort, 'mail.example:25', { host: 'mail.example', port: 25 }],
    [hostAndPort, '[::1]:2525', { host: '::1', port: 2_525 }],
    [senderAddress, 'app@example.com', 'app@example.com'],
  ])('%p reads %p', (read, text, value) => {
    expect(read(text)).toEqual(value)
  })

  it.each<[(text: string) => unknown, string]>([
    [rate, '500'],
    [rate, '0/s'],
    [rate, '-1/s'],
    [rate, '2000000/s'],
    [timeSpan, '5'],
    [timeSpan, '0s'],
    [timeSpan, '25h'],
    [mailSize, '100'],
    [mailSize, '5kb'],
    [mailSize, '65m'],
    [hostAndPort, 'mail.example'],
    [hostAndPort, '::1:25'],
    [hostAndPort, 'mail.example:0'],
    [hostAndPort, 'mail.example:65536'],
    [senderAddress, 'nobody'],
    [senderAddress, 'a@b>\r\nRSET'],
  ])('%p refuses %p', (read, text) => {
    expect(() => read(text)).toThrow('must be')
  })
})
