import { SETTINGS } from './settings-table.js'
import { ConfigurationError, readSettings, unknownVariables } from './settings.js'
import type { Environment, Setting } from './setting.js'

function errorsOf(environment: Environment): readonly string[] {
  try {
    readSettings(environment)
  } catch (error) {
    if (error instanceof ConfigurationError) return error.errors
    throw error
  }
  return []
}

describe('settings', () => {
  it('have their defaults if nothing is set', () => {
    expect(readSettings({})).toMatchObject({
      httpHost: '127.0.0.1',
      httpPort: 3000,
      smtpHost: '127.0.0.1',
      smtpPort: 2525,
      metricsPort: null,
      publicUrl: null,
      mailDomain: 'mayfly.test',
      mxHost: null,
      dataDir: './data',
      masterKey: null,
      bootstrapApiKey: null,
      maxMessageBytes: 26_214_400,
      webhookAllowPrivate: false,
      webhookTimeoutMs: 15_000,
      logLevel: 'info',
    })
  })

  it('treat an empty variable as unset', () => {
    const empty = Object.values<Setting<unknown>>(SETTINGS).map(({ variable }) => [variable, ''])
    expect(readSettings(Object.fromEntries(empty) as Environment)).toEqual(readSettings({}))
  })

  test.each([
    { variable: 'MAYFLY_HTTP_PORT', text: '0', expected: { httpPort: 0 } },
    { variable: 'MAYFLY_HTTP_PORT', text: '65535', expected: { httpPort: 65_535 } },
    { variable: 'MAYFLY_METRICS_PORT', text: '9100', expected: { metricsPort: 9100 } },
    { variable: 'MAYFLY_HTTP_HOST', text: '::', expected: { httpHost: '::' } },
    {
      variable: 'MAYFLY_MAIL_DOMAIN',
      text: 'mail.Example.org',
      expected: { mailDomain: 'mail.Example.org' },
    },
    { variable: 'MAYFLY_MAIL_DOMAIN', text: 'localhost', expected: { mailDomain: 'localhost' } },
    {
      variable: 'MAYFLY_PUBLIC_URL',
      text: 'https://mayfly.example/base//',
      expected: { publicUrl: 'https://mayfly.example/base' },
    },
    { variable: 'MAYFLY_MAX_MESSAGE_BYTES', text: '1024', expected: { maxMessageBytes: 1024 } },
    {
      variable: 'MAYFLY_BOOTSTRAP_API_KEY',
      text: 'k'.repeat(20),
      expected: { bootstrapApiKey: 'k'.repeat(20) },
    },
    {
      variable: 'MAYFLY_WEBHOOK_PORTS',
      text: '443, 8000-8999',
      expected: {
        webhookPorts: [
          { first: 443, last: 443 },
          { first: 8_000, last: 8_999 },
        ],
      },
    },
    { variable: 'LOG_LEVEL', text: 'silent', expected: { logLevel: 'silent' } },
  ])('$variable=$text is $expected', ({ variable, text, expected }) => {
    expect(readSettings({ [variable]: text })).toEqual({ ...readSettings({}), ...expected })
  })

  test.each([
    { variable: 'MAYFLY_HTTP_PORT', text: '65536', why: /whole number from 0 to 65535/ },
    { variable: 'MAYFLY_HTTP_PORT', text: '-1', why: /whole number/ },
    { variable: 'MAYFLY_HTTP_PORT', text: '80.5', why: /whole number/ },
    { variable: 'MAYFLY_HTTP_PORT', text: '0x50', why: /whole number/ },
    { variable: 'MAYFLY_HTTP_PORT', text: 'http', why: /whole number/ },
    { variable: 'MAYFLY_METRICS_PORT', text: '70000', why: /whole number/ },
    { variable: 'MAYFLY_MAX_MESSAGE_BYTES', text: '1023', why: /from 1024 to 268435456/ },
    { variable: 'MAYFLY_MAX_MESSAGE_BYTES', text: '25MB', why: /whole number/ },
    { variable: 'MAYFLY_MAIL_DOMAIN', text: 'not a domain', why: /must be a domain name/ },
    { variable: 'MAYFLY_MAIL_DOMAIN', text: '-mayfly.test', why: /must be a domain name/ },
    { variable: 'MAYFLY_MAIL_DOMAIN', text: 'mayfly..test', why: /must be a domain name/ },
    { variable: 'MAYFLY_MAIL_DOMAIN', text: 'a'.repeat(201), why: /must be a domain name/ },
    { variable: 'MAYFLY_PUBLIC_URL', text: 'mayfly.example', why: /http or https URL/ },
    { variable: 'MAYFLY_PUBLIC_URL', text: 'ftp://mayfly.example', why: /http or https URL/ },
    { variable: 'MAYFLY_BOOTSTRAP_API_KEY', text: 'k'.repeat(19), why: /20 to 200 visible ASCII/ },
    { variable: 'MAYFLY_BOOTSTRAP_API_KEY', text: 'k'.repeat(201), why: /20 to 200 visible ASCII/ },
    { variable: 'MAYFLY_BOOTSTRAP_API_KEY', text: `${'k'.repeat(20)} k`, why: /20 to 200 visible ASCII/ },
    { variable: 'MAYFLY_MASTER_KEY', text: 'c2hvcnQ=', why: /must be 32 bytes in base64/ },
    { variable: 'MAYFLY_MASTER_KEY', text: `${'A'.repeat(43)}=;`, why: /must be 32 bytes in base64/ },
    ...['0', '80-', '-80', '90-80', '65536', 'http', '80;443', '80,'].map((text) => ({
      variable: 'MAYFLY_WEBHOOK_PORTS',
      text,
      why: /must be ports or ranges/,
    })),
    { variable: 'MAYFLY_WEBHOOK_TIMEOUT_MS', text: '60001', why: /from 100 to 60000/ },
    { variable: 'LOG_LEVEL', text: 'loud', why: /must be one of fatal, error/ },
    { variable: 'MAYFLY_SMTP_TLS_CERT', text: 'cert.pem', why: /MAYFLY_SMTP_TLS_KEY must be set together/ },
    { variable: 'MAYFLY_SMTP_TLS_KEY', text: 'key.pem', why: /must be set together/ },
    {
      variable: 'MAYFLY_SMTP_TLS',
      text: 'files',
      why: /MAYFLY_SMTP_TLS_CERT and .* must be set if MAYFLY_SMTP_TLS is/,
    },
    { variable: 'MAYFLY_SMTP_TLS', text: 'on', why: /must be one of off, self-signed, files/ },
    {
      variable: 'MAYFLY_SMTP_REQUIRE_TLS',
      text: 'true',
      why: /MAYFLY_SMTP_TLS must be self-signed or files/,
    },
    { variable: 'MAYFLY_SMTPS_PORT', text: '2465', why: /MAYFLY_SMTP_TLS must be self-signed or files/ },
    { variable: 'MAYFLY_SMTP_AUTH', text: 'plain', why: /must be one of any, key, off/ },
    {
      variable: 'MAYFLY_DISCARD_FROM',
      text: '10.0.0.0/8',
      why: /MAYFLY_UNKNOWN_RECIPIENTS must be create or discard/,
    },
    {
      variable: 'REDIS_URL',
      text: 'redis://localhost',
      why: /KAFKA_BROKERS must be set if REDIS_URL is set/,
    },
    {
      variable: 'CLICKHOUSE_URL',
      text: 'http://one:8123',
      why: /KAFKA_BROKERS must be set if CLICKHOUSE_URL is set/,
    },
    {
      variable: 'CLICKHOUSE_TLS_CA',
      text: 'ca.pem',
      why: /CLICKHOUSE_URL must begin with https:.* CLICKHOUSE_TLS_CA/,
    },
    ...['Mayfly', '1st', 'may-fly', 'm'.repeat(64), 'a`b'].map((text) => ({
      variable: 'CLICKHOUSE_DATABASE',
      text,
      why: /lower-case letters, digits and underscore/,
    })),
    { variable: 'KAFKA_TLS', text: 'yes', why: /must be true or false/ },
    { variable: 'KAFKA_TLS_CA', text: 'ca.pem', why: /KAFKA_TLS must be true if KAFKA_TLS_CA is set/ },
    { variable: 'REDIS_TLS_CA', text: 'ca.pem', why: /REDIS_URL must begin with rediss:.* REDIS_TLS_CA/ },
    {
      variable: 'MAYFLY_CORS_ORIGINS',
      text: 'https://app.example/',
      why: /must be origins .* without a path/,
    },
    { variable: 'MAYFLY_CORS_ORIGINS', text: 'app.example', why: /must be origins/ },
    { variable: 'MAYFLY_TOPIC_PREFIX', text: 'may fly', why: /letters, digits, dot/ },
  ])('$variable=$text is an error with its name and the reason', ({ variable, text, why }) => {
    const [error, ...others] = errorsOf({ [variable]: text })
    expect(others).toEqual([])
    expect(error).toMatch(why)
    expect(error).toContain(variable)
  })

  it('report all errors at once', () => {
    const environment = { MAYFLY_HTTP_PORT: 'x', MAYFLY_SMTP_TLS_CERT: 'a', LOG_LEVEL: 'x' }
    expect(errorsOf(environment)).toHaveLength(3)
    expect(() => readSettings(environment)).toThrow(/MAYFLY_HTTP_PORT[^]*LOG_LEVEL[^]*MAYFLY_SMTP_TLS_CERT/)
  })

  it('refuse a certificate that TLS does not use', () => {
    const files = { MAYFLY_SMTP_TLS_CERT: 'cert.pem', MAYFLY_SMTP_TLS_KEY: 'key.pem' }
    expect(errorsOf(files)).toEqual([expect.stringMatching(/^MAYFLY_SMTP_TLS must be files/)])
    expect(errorsOf({ ...files, MAYFLY_SMTP_TLS: 'files', MAYFLY_SMTPS_PORT: '465' })).toEqual([])
  })

  it.each(['create', 'discard'])(
    'require MAYFLY_DISCARD_FROM for %s unless the SMTP host is a loopback address',
    (choice) => {
      const unknown = { MAYFLY_UNKNOWN_RECIPIENTS: choice }
      expect(errorsOf(unknown)).toEqual([])
      for (const host of ['127.0.0.2', '::1', 'localhost']) {
        expect(errorsOf({ ...unknown, MAYFLY_SMTP_HOST: host })).toEqual([])
      }
      const open = { ...unknown, MAYFLY_SMTP_HOST: '0.0.0.0' }
      expect(errorsOf(open)).toEqual([expect.stringMatching(/^MAYFLY_DISCARD_FROM must be set/)])
      expect(errorsOf({ ...open, MAYFLY_DISCARD_FROM: '10.0.0.0/8,fd00::1' })).toEqual([])
    },
  )

  describe('of the distributed engine', () => {
    const complete = {
      KAFKA_BROKERS: 'one:9092, [::1]:9093',
      REDIS_URL: 'redis://:secret@one:6379/2',
      CLICKHOUSE_URL: 'https://one:8443/clickhouse/',
      MAYFLY_MASTER_KEY: `${'A'.repeat(43)}=`,
      MAYFLY_BOOTSTRAP_API_KEY: 'k'.repeat(20),
    }

    test.each([
      {
        env: { KAFKA_TLS: 'true', KAFKA_TLS_KEY: 'a' },
        why: /KAFKA_TLS_CERT and KAFKA_TLS_KEY must be set tog/,
      },
      {
        env: { REDIS_URL: 'rediss://one', REDIS_TLS_CERT: 'a' },
        why: /REDIS_TLS_CERT and REDIS_TLS_KEY must be set together/,
      },
      {
        env: { REDIS_URL: 'rediss://one,redis://two' },
        why: /REDIS_URL must use rediss:\/\/ for all nodes/,
      },
    ])('report missing TLS settings: $why', ({ env, why }) => {
      expect(errorsOf({ ...complete, ...env })).toEqual([expect.stringMatching(why)])
    })

    it('are accepted if they are complete', () => {
      expect(readSettings(complete)).toMatchObject({
        kafkaBrokers: ['one:9092', '[::1]:9093'],
        redisUrls: ['redis://:secret@one:6379/2'],
        clickhouseUrl: 'https://one:8443/clickhouse',
        clickhouseDatabase: 'mayfly',
        clickhouseUsername: 'default',
        clickhousePassword: null,
      })
    })

    it.each([
      ['REDIS_URL', ''],
      ['CLICKHOUSE_URL', ', unless MAYFLY_COUNT_USAGE is false'],
      ['MAYFLY_MASTER_KEY', ''],
      ['MAYFLY_BOOTSTRAP_API_KEY', ''],
    ])('require %s', (variable, exception) => {
      expect(errorsOf({ ...complete, [variable]: '' })).toEqual([
        `${variable} must be set if KAFKA_BROKERS is set${exception}`,
      ])
    })

    it('need no ClickHouse if usage is not counted', () => {
      const uncounted = readSettings({ ...complete, CLICKHOUSE_URL: '', MAYFLY_COUNT_USAGE: 'false' })
      expect(uncounted).toMatchObject({ clickhouseUrl: null, countsUsage: false })
    })

    test.each([
      { KAFKA_BROKERS: 'one', why: /KAFKA_BROKERS must be host:port/ },
      {
        KAFKA_SASL_MECHANISM: 'gssapi',
        KAFKA_SASL_USERNAME: 'u',
        KAFKA_SASL_PASSWORD: 'p',
        why: /must be one of plain/,
      },
      { REDIS_URL: 'http://one', why: /REDIS_URL must be a redis/ },
      { CLICKHOUSE_URL: 'one:8123', why: /CLICKHOUSE_URL must be an http or https URL/ },
      { CLICKHOUSE_URL: 'clickhouse://one', why: /CLICKHOUSE_URL must be an http or https URL/ },
      { CLICKHOUSE_URL: 'http://user:secret@one:8123', why: /without user, password/ },
      { CLICKHOUSE_URL: 'http://one:8123/?database=a', why: /without user, password, query/ },
      {
        CLICKHOUSE_URL: 'http://one:8123',
        CLICKHOUSE_TLS_CA: 'ca.pem',
        why: /CLICKHOUSE_URL must begin with https/,
      },
      {
        KAFKA_SASL_MECHANISM: 'plain',
        why: /KAFKA_SASL_MECHANISM and KAFKA_SASL_USERNAME must be set together/,
      },
    ])('refuse $why', ({ why, ...changed }) => {
      expect(errorsOf({ ...complete, ...changed })).toEqual([expect.stringMatching(why)])
    })
  })

  it('list unknown variables, but not those of other programs or of clients', () => {
    const others = { HTTP_PORT: '1', mayfly_http: '1', MAYFLY_URL: '1', MAYFLY_KEY: '1', MAYFLY_SMTP: '1' }
    const environment = { MAYFLY_HTTP_PROT: '1', MAYFLY_HTTP_PORT: '1', ...others }
    expect(unknownVariables(environment).map(({ variable }) => variable)).toEqual(['MAYFLY_HTTP_PROT'])
  })

  it.each([
    ['MAYFLY_SMPT_PORT', 'MAYFLY_SMTP_PORT'],
    ['MAYFLY_HTTP_PROT', 'MAYFLY_HTTP_PORT'],
    ['MAYFLY_DATADIR', 'MAYFLY_DATA_DIR'],
    ['MAYFLY_SMTP_MAX_CONECTIONS', 'MAYFLY_SMTP_MAX_CONNECTIONS'],
    ['MAYFLY_LOG_LEVEL', 'LOG_LEVEL'],
    ['MAYFLY_KAFKA_BROKER', 'KAFKA_BROKERS'],
    ['MAYFLY_URI', 'MAYFLY_URL'],
    ['MAYFLY_TEAM_COLOR', null],
    ['MAYFLY_XYZ', null],
    ['MAYFLY_', null],
    [`MAYFLY_${'X'.repeat(10_000)}`, null],
  ])('suggest the setting that %s nearly names', (variable, meant) => {
    const hint = meant === null ? '' : `: did you mean ${meant}?`
    const unknown = { variable, isTypo: meant !== null, explanation: `${variable} is not a setting${hint}` }
    expect(unknownVariables({ [variable]: '1' })).toEqual([unknown])
  })

  it('have different variables, and help texts', () => {
    const all = Object.values<Setting<unknown>>(SETTINGS)
    expect(new Set(all.map(({ variable }) => variable)).size).toBe(all.length)
    for (const { help } of all) expect(help).toMatch(/\.$/)
  })
})
