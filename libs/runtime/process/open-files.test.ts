import { withinOpenFiles } from './open-files.js'

const DEFAULTS = { httpMaxConnections: 10_000, smtpMaxConnections: 2_000, webhookConcurrency: 200 }

describe('the connections that a limit of open files allows', () => {
  it.each([
    [Infinity, DEFAULTS],
    [12_400, DEFAULTS],
    [12_399, { httpMaxConnections: 9_999, smtpMaxConnections: 1_999 }],
    [1_024, { httpMaxConnections: 520, smtpMaxConnections: 104 }],
    [256, { httpMaxConnections: 53, smtpMaxConnections: 10 }],
    [4, { httpMaxConnections: 1, smtpMaxConnections: 1 }],
  ])('of %d', (limit, expected) => {
    const warnings: unknown[] = []
    const bounded = withinOpenFiles(DEFAULTS, { warn: (line: unknown) => void warnings.push(line) }, limit)
    expect(bounded).toEqual({ ...DEFAULTS, ...expected })
    expect(warnings).toEqual(expected === DEFAULTS ? [] : [{ openFiles: limit, ...expected }])
  })
})
