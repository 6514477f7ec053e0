import fc from 'fast-check'
import { readDate } from './date.js'

const dates: { send: string; expect: string | null }[] = [
  { send: 'Sat, 21 Nov 2026 10:00:00 +0100', expect: '2026-11-21T09:00:00.000Z' },
  { send: '21 Nov 2026 10:00 -0530', expect: '2026-11-21T15:30:00.000Z' },
  {
    send: 'Sat, 21 Nov 2026 10:00:00 +0000 (Coordinated (Universal) Time)',
    expect: '2026-11-21T10:00:00.000Z',
  },
  { send: 'Sat, 21 Nov 26 10:00:00 GMT', expect: '2026-11-21T10:00:00.000Z' },
  { send: 'Fri, 21 Nov 97 09:55:06 -0600', expect: '1997-11-21T15:55:06.000Z' },
  { send: 'Sat, 21 Nov 2026 10:00:00 EST', expect: '2026-11-21T15:00:00.000Z' },
  { send: 'Sat, 21 Nov 2026 10:00:00', expect: '2026-11-21T10:00:00.000Z' },
  { send: 'Sat,  1 November 2026 23:59:60 +0000', expect: '2026-11-01T23:59:59.000Z' },
  { send: '2026-11-21T10:00:00.123+01:00', expect: '2026-11-21T09:00:00.123Z' },
  { send: 'sometime next week 1', expect: null },
  { send: 'Sat, 31 Feb 2026 10:00:00 +0000', expect: null },
  { send: 'Sat, 21 Nov 2026 25:00:00 +0000', expect: null },
  { send: '1', expect: null },
  { send: '', expect: null },
]

test.each(dates)('$send', ({ send, expect: expected }) => expect(readDate(send)).toBe(expected))

test('every time in the usual format of mails is read', () => {
  const times = fc.date({ min: new Date('1900-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(times, (time) => {
      time.setUTCMilliseconds(0)
      expect(readDate(time.toUTCString())).toBe(time.toISOString())
    }),
  )
})
