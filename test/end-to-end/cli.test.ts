import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { issueKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  send,
  type InboxJson,
} from '#test/harness/client.js'
import { secretIn, signIn } from '#test/harness/console.js'
import { NO_DNS } from '#test/harness/dns.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { sumOf, untilCounted, usageOf } from '#test/harness/usage.js'
import { freePort } from '#infra/servers/ports.js'

const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')

interface Run {
  code: number
  stdout: string
  stderr: string
}

describe('the command mayfly', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true, env: NO_DNS })
  })
  afterAll(() => mayfly.dispose())

  const mayflyWith = (env: Record<string, string>, ...args: string[]) =>
    new Promise<Run>((resolve) => {
      const all = { PATH: process.env.PATH ?? '', MAYFLY_URL: mayfly.url, MAYFLY_KEY: mayfly.apiKey, ...env }
      execFile(process.execPath, [MAIN, ...args], { env: all, timeout: 110_000 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      )
    })
  const run = (...args: string[]) => mayflyWith({}, ...args)
  const json = async <Body>(...args: string[]): Promise<Body> => {
    const { code, stdout, stderr } = await run('--json', ...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout) as Body
  }

  it('prints its version', async () => {
    expect(await run('--version')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
    })
  })

  it('shares an inbox by a token, with which it reads that inbox', async () => {
    const [{ id }, other] = [await createInbox(mayfly), await createInbox(mayfly)]
    const shared = await json<{ token: string; access: string }>('inbox', 'share', id, '--expires-in', '30m')
    expect(shared).toMatchObject({ access: 'read', token: expect.stringMatching(/^mft_/) as string })
    const guest = (...args: string[]) => mayflyWith({ MAYFLY_KEY: shared.token }, ...args)
    expect((await guest('inbox', 'read', id)).code).toBe(0)
    expect((await guest('inbox', 'read', other.id)).code).toBe(3)
    expect((await guest('inbox', 'delete', id)).code).toBe(4)
    const { stdout } = await run('inbox', 'share', id, '--owner')
    const [, owner = ''] = /^token +(mft_\S+)$/m.exec(stdout) ?? []
    expect((await mayflyWith({ MAYFLY_KEY: owner }, 'inbox', 'delete', id)).code).toBe(0)
  })

  it('prints a link that signs in to the console, if the key has the scope admin', async () => {
    const { code, stdout } = await run('console')
    expect(code).toBe(0)
    const session = await signIn(mayfly, secretIn(stdout.trim()))
    expect((await session.ask(['GET', '/console/sessions'])).status).toBe(200)
    const { secret } = await issueKey(mayfly)
    const refused = await mayflyWith({ MAYFLY_KEY: secret }, 'console')
    expect(refused).toMatchObject({ code: 4, stdout: '' })
  })

  it('creates an inbox, waits for its code and its link, reads it and deletes it', async () => {
    const made = await run('inbox', 'create', '--duration', '30m', '--label', 'run:cli', '--label', 'a:b:c')
    expect(made.code).toBe(0)
    const [, id = ''] = /^inbox +(inb_\w+)$/m.exec(made.stdout) ?? []
    const [, address = ''] = /^address +(\S+@mayfly\.test)$/m.exec(made.stdout) ?? []
    expect((await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${id}`)).body).toMatchObject({
      address,
      duration: '30m',
      labels: { run: 'cli', a: 'b:c' },
    })

    const waits = [
      run('inbox', 'wait', id, '--code', '--timeout', '30'),
      run('inbox', 'wait', id, '--link', '--timeout', '30'),
      run('inbox', 'wait', id, '--extract', 'code is (\\d{3})', '--timeout', '30'),
      run('inbox', 'wait', id, '--extract', '\\d{3}', '--timeout', '30'),
      run('inbox', 'wait', id, '--extract', '(nothing at all)|(493)', '--timeout', '30'),
    ]
    await send(mayfly, address, mail('Hello', 'Nothing in here.'))
    await send(mayfly, address, mail('Your code is 493201', 'Or follow https://app.example/verify?t=1'))
    const [code, link, ...matches] = await Promise.all(waits)
    expect(code).toEqual({ code: 0, stdout: '493201\n', stderr: '' })
    expect(link).toEqual({ code: 0, stdout: 'https://app.example/verify?t=1\n', stderr: '' })
    for (const extracted of matches) expect(extracted).toEqual({ code: 0, stdout: '493\n', stderr: '' })

    expect((await run('inbox', 'list', '--label', 'run:cli')).stdout).toContain(address)
    const { stdout: list } = await run('inbox', 'read', id)
    const [head, ...rows] = list.trim().split('\n')
    expect(head).toMatch(/^ID +RECEIVED +SENDER +CODE +SUBJECT$/)
    expect(rows).toHaveLength(2)
    const [messageId = ''] = rows[1]?.split(' ') ?? []
    const { stdout: message } = await run('inbox', 'read', id, messageId)
    for (const text of ['Your code is 493201', 'app@example.com', 'Code: 493201', 'Or follow']) {
      expect(message).toContain(text)
    }
    expect((await run('inbox', 'read', id, messageId, '--raw')).stdout).toBe(
      mail('Your code is 493201', 'Or follow https://app.example/verify?t=1'),
    )

    expect((await run('inbox', 'delete', id, messageId)).code).toBe(0)
    expect(await json<unknown[]>('inbox', 'read', id)).toHaveLength(1)
    expect((await run('inbox', 'delete', id)).code).toBe(0)
    expect(await run('inbox', 'read', id)).toMatchObject({ code: 3, stdout: '' })
    const history = (await run('inbox', 'history', id)).stdout.trim().split('\n')
    expect(history[0]).toMatch(/^TIME +EVENT +MESSAGE +BY +CHANGED$/)
    expect(history[1]).toMatch(/^\S+Z +inbox\.created +- +key_\w+ +-$/)
    expect(history[2]).toMatch(/^\S+Z +message\.received +msg_\w+ +- +-$/)
    expect(await json<unknown[]>('inbox', 'history', id, '--order', 'desc', '--limit', '1')).toMatchObject([
      { type: 'inbox.deleted' },
    ])
  })

  it('prints the JSON of the API for scripts', async () => {
    const { id } = await json<InboxJson>('inbox', 'create', '--name', 'for scripts')
    const alone = await call(mayfly, 'GET', `/v1/inboxes/${id}`)
    expect(alone.body).toMatchObject({ id, name: 'for scripts' })
    expect(await json<InboxJson[]>('inbox', 'list', '--limit', '1')).toEqual([alone.body])
    const { code, stdout, stderr } = await run('--json', 'inbox', 'read', 'inb_nobody')
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ code: 'not-found', status: 404 })
  })

  it('lists the requested number, over several pages', async () => {
    const { id, address } = await createInbox(mayfly)
    await Promise.all(Array.from({ length: 102 }, (_, index) => send(mayfly, address, mail(`Mail ${index}`))))
    await until('102 messages', async () => {
      const { body } = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${id}`)
      return body.message_count === 102
    })
    expect(await json<unknown[]>('inbox', 'read', id, '--limit', '101')).toHaveLength(101)
    expect(await json<unknown[]>('inbox', 'read', id, '--limit', '3', '--subject', 'mail 9')).toHaveLength(3)
  })

  it('takes an address for an inbox, and waits for mail to an address without one', async () => {
    const address = 'cli@company.example'
    expect(await run('inbox', 'read', address)).toMatchObject({ code: 3, stdout: '' })
    const waiting = run('inbox', 'wait', address, '--code', '--timeout', '30')
    await send(mayfly, address, mail('Your code is 493201'))
    expect(await waiting).toEqual({ code: 0, stdout: '493201\n', stderr: '' })
    expect((await run('inbox', 'read', address)).stdout).toContain('493201')
    expect((await run('inbox', 'wait', address, '--code')).stdout).toBe('493201\n')
    expect((await run('inbox', 'delete', address)).code).toBe(0)
  })

  it('reads a protected inbox with its password', async () => {
    const { id, password = '' } = await json<{ id: string; password?: string }>(
      'inbox',
      'create',
      '--protected',
    )
    const refused = await run('inbox', 'read', id)
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(refused.stderr).toContain('with --password or MAYFLY_INBOX_PASSWORD')
    expect(refused.stderr).not.toMatch(/header|`/i)
    expect((await run('inbox', 'read', id, '--password', password)).code).toBe(0)
    expect((await mayflyWith({ MAYFLY_INBOX_PASSWORD: password }, 'inbox', 'read', id)).code).toBe(0)
  })

  it('prints the visible text of a mail that has only HTML', async () => {
    const html =
      'Subject: x\r\nContent-Type: text/html\r\n\r\n<style>b{}</style><p>Your code: <b>493201</b>\r\n'
    const inbox = await inboxWith(mayfly, html)
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    expect((await run('inbox', 'read', inbox.id, id)).stdout).toMatch(/\n\nYour code: 493201\n$/)
  })

  it('prints no control characters of a mail', async () => {
    const escape = '\u001b[2J\u001b]0;owned\u0007'
    const inbox = await inboxWith(mayfly, mail('=?utf-8?q?=1b[2J=07?= shown', `${escape}shown too`))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    for (const { code, stdout } of [
      await run('inbox', 'read', inbox.id),
      await run('inbox', 'read', inbox.id, id),
    ]) {
      expect(code).toBe(0)
      expect(stdout).toContain('shown')
      expect(stdout).not.toMatch(/[^\P{Cc}\n]/u)
    }
  })

  it('exits with 3 if nothing matched in time, and prints the nearest messages and a cursor', async () => {
    const { id } = await inboxWith(mayfly, mail('Hello'), mail('Code for Jo'))
    const [hello, code] = await messagesOf(mayfly, id, 2)
    const filters = ['--subject', 'code', '--sender', 'nobody']
    const ended = await run('inbox', 'wait', id, ...filters, '--timeout', '1')
    expect(ended).toMatchObject({ code: 3, stdout: '' })
    expect(ended.stderr).toContain('no-matching-message')
    expect(ended.stderr.split('\n').slice(1, 3)).toEqual([
      `  ${code?.id ?? ''}, ${code?.received_at ?? ''}, Code for Jo: sender does not contain "nobody"`,
      `  ${hello?.id ?? ''}, ${hello?.received_at ?? ''}, Hello: subject does not contain "code", sender does not contain "nobody"`,
    ])
    const [, cursor = ''] = / To wait for later mail only, add --cursor (\S+)$/m.exec(ended.stderr) ?? []
    const later = await run('inbox', 'wait', id, '--cursor', cursor, '--timeout', '0')
    expect(later).toMatchObject({ code: 3, stdout: '' })
    expect(later.stderr).toContain('is before --cursor')
  })

  it('reports an error by its exit code, and prints the reason', async () => {
    const wrong = [
      { args: ['inbox', 'create', '--duration', '31d'], code: 2, says: /30d[^]*To fix it/ },
      { args: ['inbox', 'creat'], code: 2, says: /unknown command/ },
      { args: ['inbox', 'create', '--nope'], code: 2, says: /unknown option/ },
      { args: ['inbox', 'read'], code: 2, says: /missing required argument/ },
      { args: ['inbox', 'read', 'x', '--raw'], code: 2, says: /of one message/ },
      { args: ['inbox', 'wait', 'x', '--timeout', 'soon'], code: 2, says: /whole number of seconds/ },
      { args: ['inbox', 'wait', 'x', '--code', '--extract', 'a'], code: 2, says: /cannot be used with/ },
      { args: ['inbox', 'wait', 'x', '--code', '--link'], code: 2, says: /cannot be used with/ },
      { args: ['inbox', 'create', '--label', 'x'], code: 2, says: /<name>:<value>/ },
      { args: ['usage', '--interval', 'week'], code: 2, says: /Allowed choices are second, minute/ },
      { args: ['usage', '--from', 'yesterday'], code: 2, says: /RFC 3339.*or a date, such as 2026-11-21/ },
      {
        args: ['usage', '--group-by', 'day'],
        code: 2,
        says: /: --group-by must be [^]*--help lists its options/,
      },
      { args: ['inbox', 'create', '--label', 'a:1', '--label', 'a:2'], code: 2, says: /a:1 is given too/ },
      { args: ['inbox', 'create', '--duration', 'soon'], code: 2, says: /: --duration must be / },
      { args: ['inbox', 'history', 'x'], code: 3, says: /not-found/ },
      { args: ['faults', 'set', 'development', '{'], code: 2, says: /It must be JSON/ },
      { args: ['faults', 'set', 'development', '{"stage":"rcpt"}'], code: 2, says: /action must be one of/ },
      {
        args: ['usage', '--from', '2020-01-02T00:00:00Z', '--to', '2020-01-01T00:00:00Z'],
        code: 2,
        says: /from must be before to/,
      },
      { args: ['usage', 'report'], code: 2, says: /required option/ },
      { args: ['usage', 'export', '--format', 'xlsx'], code: 2, says: /Allowed choices are parquet/ },
      { args: ['usage', 'exprot'], code: 2, says: /too many arguments/ },
      { args: ['--url', 'ftp://x', 'inbox', 'list'], code: 2, says: /not an http or https URL/ },
      { args: ['--key', '', 'inbox', 'list'], code: 2, says: /MAYFLY_KEY/ },
      { args: ['--key', 'a-wrong-key', 'inbox', 'list'], code: 4, says: /invalid-api-key/ },
      { args: ['inbox', 'read', '../../healthz'], code: 3, says: /not-found/ },
    ]
    await Promise.all(
      wrong.map(async ({ args, code, says }) => {
        const { stderr, ...ended } = await run(...args)
        expect({ args, ...ended }).toEqual({ args, code, stdout: '' })
        expect(stderr).toMatch(says)
        expect(stderr).not.toContain('    at ')
      }),
    )
  })

  it('opens an account, moves it to another plan, and issues, rotates and revokes its keys', async () => {
    interface KeyShown {
      id: string
      secret: string
      state: string
      scopes: string[]
    }
    const opened = await json<{ id: string; plan: string; key: KeyShown }>(
      ...['account', 'open', 'Acme', '--plan', 'starter'],
    )
    const admin = opened.key.secret
    expect((await run('account', 'list')).stdout).toMatch(new RegExp(`^${opened.id} +starter .*Acme$`, 'm'))
    expect(await run('account', 'plan', opened.id, 'pro')).toMatchObject({ code: 0 })
    expect((await run('--key', admin, 'account', 'show')).stdout).toMatch(/^plan +pro$/m)
    expect(await run('--key', admin, 'account', 'list')).toMatchObject({ code: 4, stdout: '' })

    const asAdmin = ['--key', admin]
    const issued = await run(
      ...asAdmin,
      'key',
      'issue',
      'CI',
      '--environment',
      'ci',
      '--scope',
      'inboxes',
      'audit',
    )
    const [, secret = ''] = /^secret +(mf_ci_\S+)$/m.exec(issued.stdout) ?? []
    const [, id = ''] = /^key id +(key_\w+)$/m.exec(issued.stdout) ?? []
    expect(issued.stdout).toMatch(/^scopes +inboxes, audit$/m)
    expect((await run('--key', secret, 'inbox', 'list')).code).toBe(0)
    const rotated = await json<KeyShown>(...asAdmin, 'key', 'rotate', id)
    expect(rotated.secret).not.toBe(secret)
    expect((await run('--key', rotated.secret, 'inbox', 'list')).code).toBe(0)
    expect(await json<KeyShown>(...asAdmin, 'key', 'revoke', id)).toMatchObject({ id, state: 'revoked' })
    const keys = await json<KeyShown[]>(...asAdmin, 'key', 'list')
    expect(keys.find((key) => key.id === id)).toMatchObject({
      state: 'revoked',
      scopes: ['inboxes', 'audit'],
    })
    expect((await run(...asAdmin, 'key', 'list')).stdout).toMatch(new RegExp(`^${id} +ci +revoked `, 'm'))
  })

  it('registers domains, shows their records and deletes them', async () => {
    const created = await run('domain', 'create', 'cli.example', '--environment', 'ci', '--duration', '2h')
    expect(created.stdout).toMatch(/^state +pending$/m)
    expect(created.stdout).toMatch(/^catch all +\{"action":"create","duration":"2h"\}$/m)
    const record = String.raw`^TXT +_mayfly-challenge\.cli\.example +_mayfly-challenge +- +token=\w{32} +missing +-$`
    expect(created.stdout).toMatch(new RegExp(record, 'm'))
    const [, id = ''] = /^domain id +(dom_\w+)$/m.exec(created.stdout) ?? []
    expect((await run('domain', 'show', id, '--zone-file')).stdout).toMatch(/^cli\.example\. 3600 IN MX 10 /m)
    expect((await run('domain', 'verify', id)).stdout).toMatch(/^state +pending$/m)
    const update = (...options: string[]) => json('domain', 'update', id, ...options)
    expect(await update('--reject')).toMatchObject({ catch_all: { action: 'reject' } })
    const created7d = { action: 'create', duration: '7d', labels: { run: '1' } }
    expect(await update('--duration', '7d', '--label', 'run:1')).toMatchObject({ catch_all: created7d })
    expect(await update('--subdomains')).toMatchObject({ subdomains: true, catch_all: created7d })
    expect(await update('--no-subdomains')).toMatchObject({ subdomains: false, catch_all: created7d })
    const inbox = await json<{ id: string }>('inbox', 'create')
    expect(await json('domain', 'create', '--deliver', inbox.id)).toMatchObject({
      catch_all: { action: 'deliver', inbox_id: inbox.id },
    })
    expect(await run('domain', 'update', id, '--reject', '--create')).toMatchObject({ code: 2 })
    const hosted = await json<{ name: string }>('domain', 'create', '--environment', 'ci')
    const { stdout } = await run('domain', 'list')
    expect(stdout).toMatch(new RegExp(`^${id} +cli.example +ci +pending +create$`, 'm'))
    expect(stdout).toMatch(new RegExp(` ${hosted.name} +ci +verified +create$`, 'm'))
    expect((await run('domain', 'delete', id)).code).toBe(0)
    expect(await run('domain', 'show', id)).toMatchObject({ code: 3 })
  })

  it('lists and sets quotas', async () => {
    expect((await run('quota', 'set', 'inboxes', '1000')).stdout).toMatch(
      /^inboxes +the account +\d+ +1000 +-$/m,
    )
    const quotas = await json<{ name: string; limit: number }[]>('quota', 'list')
    expect(quotas).toMatchObject([
      { name: 'inboxes', limit: 1000 },
      ...['inboxes-per-day', 'messages-per-day', 'stored-bytes'].map((name) => ({ name })),
      ...['webhooks', 'domains', 'members'].map((name) => ({ name })),
    ])
    expect((await run('quota', 'set', 'inboxes', 'plan')).stdout).toMatch(
      /^inboxes +the account +\d+ +10000000 +-$/m,
    )
    expect((await run('quota', 'list')).stdout).toMatch(
      /^NAME +OF +USED +LIMIT +RESETS AT\ninboxes +the account +\d+ +10000000 +-$/m,
    )
    const ofCi = await run('quota', 'set', 'inboxes', '9', '--environment', 'ci')
    expect(ofCi.stdout).toMatch(/^inboxes +ci +\d+ +9 +-$/m)
    expect((await run('quota', 'list')).stdout).toMatch(/^inboxes +ci +\d+ +9 +-$/m)
    expect(await run('quota', 'set', 'inboxes', '9', '--key-id', 'key_unknown')).toMatchObject({ code: 3 })
    for (const limit of ['-1', 'none', '1e9', '99999999']) {
      expect(await run('quota', 'set', 'inboxes', limit)).toMatchObject({ code: 2 })
    }
    expect(await run('quota', 'set', 'mails', '1')).toMatchObject({ code: 2 })
  })

  it('invites people, and manages members', async () => {
    const created = await run('invite', 'create', 'ana@example.com', '--environment', 'ci', '--days', '2')
    const [, id = ''] = /^invitation id +(\S+)$/m.exec(created.stdout) ?? []
    const [, link = ''] = /^link +(\S+)$/m.exec(created.stdout) ?? []
    expect(created.stdout).toMatch(/^role +developer$/m)
    expect((await run('invite', 'list')).stdout).toMatch(
      new RegExp(`^${id} +ana@example.com +developer +ci +content:read +pending`, 'm'),
    )
    const resent = await json<{ url: string }>('invite', 'resend', id)
    expect(resent.url).not.toBe(link)
    await signIn(mayfly, secretIn(resent.url))
    const [member] = await json<{ id: string; environments: string[] }[]>('member', 'list')
    expect(member).toMatchObject({ email: 'ana@example.com', role: 'developer', environments: ['ci'] })
    const path = member?.id ?? ''
    const changed = await run('member', 'change', path, '--role', 'auditor', '--all-environments')
    expect(changed.stdout).toMatch(/^role +auditor$/m)
    expect((await run('member', 'list')).stdout).toMatch(/ana@example.com +auditor +all/)
    expect((await run('console', '--member', path)).stdout).toMatch(/#sign-in=acc_/)
    expect((await run('member', 'remove', path)).stdout).toMatch(/^email +ana@example.com$/m)
    expect((await json<object[]>('member', 'list')).length).toBe(0)
    expect(await run('invite', 'revoke', id)).toMatchObject({ code: 2 })
    expect(await run('invite', 'create', 'ana@example.com', '--role', 'root')).toMatchObject({ code: 2 })
  })

  it('sets, shows and removes faults of an inbox and of an environment', async () => {
    const { id } = await createInbox(mayfly)
    const faults = [
      { stage: 'after_accept', action: 'drop', every_n: 2 },
      { stage: 'rcpt', action: 'delay', delay_ms: 10 },
    ]
    const texts = faults.map((fault) => JSON.stringify(fault))
    expect(await json('faults', 'set', id, ...texts)).toEqual(faults)
    expect(await run('faults', 'show', id)).toMatchObject({ code: 0, stdout: `${texts.join('\n')}\n` })
    expect(await run('faults', 'remove', id)).toMatchObject({ code: 0, stdout: 'no faults\n' })
    expect(await run('faults', 'show', 'development')).toMatchObject({ code: 0, stdout: 'no faults\n' })
    expect((await run('--help')).stdout).toMatch(/^ +faults +reject, delay, lose or duplicate mail/m)
  })

  describe('about usage', () => {
    const LABEL = ['--label', 'run:usage']
    let span: string[]
    let folder: string

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'mayfly-cli-'))
      const from = new Date().toISOString()
      const inbox = await createInbox(mayfly, { labels: { run: 'usage' } })
      await send(mayfly, inbox.address, mail('counted'))
      await untilCounted(
        () => usageOf(mayfly, { label: 'run:usage' }),
        (rows) => sumOf(rows).mails === 1 && sumOf(rows).requests === 1 && rows.some((row) => row.visible_ms),
      )
      span = ['--from', from, '--to', new Date().toISOString()]
    })
    afterAll(() => rm(folder, { recursive: true }))

    it('prints a row for each interval and group', async () => {
      const { code, stdout } = await run('usage', ...span, ...LABEL, '--group-by', 'label.run')
      expect(code).toBe(0)
      const [head, ...rows] = stdout.trim().split('\n')
      expect(head).toMatch(
        /^FROM +LABEL\.RUN +REQUESTS +REFUSALS +INBOXES +MAILS +BYTES +REQUEST MS +VISIBLE MS$/,
      )
      expect(rows.length).toBeGreaterThanOrEqual(1)
      for (const row of rows) expect(row).toMatch(/^\S+Z +usage +\d+ +0 +\d+ +\d+ +\d+ +\S+ +\S+$/)
      // Names of keys are not unique.
      const byKey = await run('usage', ...span, ...LABEL, '--group-by', 'key')
      expect(byKey.stdout).toMatch(/^\S+Z +\S.* \(key_\w+\) +\d+ +0 +/m)
      const [, from = '', , to = ''] = span
      const query = { from, to, label: 'run:usage', interval: 'minute' }
      expect(await json('usage', ...span, ...LABEL, '--interval', 'minute')).toEqual(
        await usageOf(mayfly, query),
      )
    })

    it('prints the report of a run', async () => {
      const { code, stdout } = await run('usage', 'report', ...LABEL)
      expect(code).toBe(0)
      for (const fact of [
        /^inboxes +1$/m,
        /^inboxes without mail +0$/m,
        /^mails +1$/m,
        /^duplicates +0$/m,
        /^read +0$/m,
        /^first read ms +-$/m,
        /^timeline +█ \(1 s each, peak 1\)$/m,
      ]) {
        expect(stdout).toMatch(fact)
      }
      expect(stdout).toMatch(/^visible ms +[\d.]+\/[\d.]+\/[\d.]+$/m)
      expect(stdout).toMatch(/^accept ms +[\d.]+\/[\d.]+\/[\d.]+, at most [\d.]+$/m)
      expect(stdout).toMatch(/^counted up to +(-|\S+Z)$/m)
      // Options after `report` belong to the report.
      const before = ['--to', '2020-01-01T00:00:00Z']
      expect(await json('usage', 'report', ...LABEL, ...before)).toMatchObject({
        inboxes: 0,
        first_mail_at: null,
      })
    })

    it('takes a date as the start of its day in UTC', async () => {
      const today = new Date().toISOString().slice(0, 10)
      const rows = await json<object[]>('usage', '--from', today, '--interval', 'day', ...LABEL)
      expect(rows).toMatchObject([{ from: `${today}T00:00:00.000Z`, mails: 1 }])
    })

    it('writes exports to files and to standard output', async () => {
      const table = ['--table', 'inbox_events', ...span]
      const { code, stdout } = await run('usage', 'export', ...table)
      expect(code).toBe(0)
      const rows = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object)
      expect(rows).toMatchObject([
        { type: 'inbox.created', labels: ['run:usage'] },
        { type: 'message.received', labels: ['run:usage'] },
      ])
      const path = join(folder, 'events')
      const written = await json<{ bytes: number }>('usage', 'export', ...table, '--output', path)
      expect(await readFile(path, 'utf8')).toBe(stdout)
      expect(written).toEqual({ output: path, bytes: Buffer.byteLength(stdout) })
      const parquet = await run('usage', 'export', ...table, '--format', 'parquet', '--output', path)
      expect(parquet).toMatchObject({ code: 0, stderr: '' })
      expect((await readFile(path)).toString('latin1')).toMatch(/^PAR1[^]*PAR1$/)
      const csv = await run('usage', 'export', ...table, '--format', 'csv')
      expect(csv.stdout).toMatch(/^"account_id","occurred_at","type",[^]*"message\.received"/)
      expect(await readdir(folder)).toEqual(['events'])
    })

    it('writes no file for a key without the scope', async () => {
      const key = await json<{ secret: string }>(
        'key',
        'issue',
        'CI',
        '--environment',
        'ci',
        '--expires',
        'never',
      )
      expect(key).toMatchObject({ expires_at: null })
      const path = join(folder, 'refused')
      const refused = await run('--key', key.secret, 'usage', 'export', '--output', path)
      expect(refused).toMatchObject({ code: 4, stdout: '' })
      expect(refused.stderr).toContain('missing-scope')
      expect(await readdir(folder)).not.toContain('refused')
      expect((await run('--key', key.secret, 'usage')).code).toBe(0)
    })
  })

  it('exits with 5 if the server is unreachable', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect(await run('--url', url, 'inbox', 'list')).toMatchObject({ code: 5, stdout: '' })
  })

  it('prints every setting, without a server or a key', async () => {
    const { code, stdout } = await mayflyWith({ MAYFLY_KEY: '', MAYFLY_URL: '' }, 'config')
    expect(code).toBe(0)
    for (const { variable } of Object.values(SETTINGS)) expect(stdout).toContain(`${variable}=`)
    const settings = await json<{ variable: string; default: string | null; help: string }[]>('config')
    expect(settings).toHaveLength(Object.keys(SETTINGS).length)
    expect(settings).toContainEqual({
      variable: 'MAYFLY_HTTP_PORT',
      default: '3000',
      help: SETTINGS.httpPort.help,
    })
  })

  it('has help for every command', async () => {
    const { code, stdout } = await mayflyWith({ MAYFLY_KEY: '' }, '--help')
    expect(code).toBe(0)
    for (const command of ['account', 'key', 'inbox', 'usage', 'config'])
      expect(stdout).toMatch(new RegExp(`^ +${command} `, 'm'))
  })
})
