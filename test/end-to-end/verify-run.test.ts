import { execFile } from 'node:child_process'
import { hash, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  messagesOf,
  send,
  type Answer,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

const NDJSON = 'application/x-ndjson'
const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')

interface Line {
  recipient: string
  id: string
  sent_at?: string | null
  sha256?: string
}

interface DifferenceJson {
  kind: string
  [property: string]: unknown
}

interface Result {
  differences: DifferenceJson[]
  summary: DifferenceJson
}

function source(id: string, text = 'Hello.'): string {
  const headers = ['From: App <app@example.com>', 'To: someone@mayfly.test', `Subject: ${id}`]
  return [...headers, ...(id === '' ? [] : [`Message-ID: ${id}`]), '', text, ''].join('\r\n')
}

function sha256(text: string): string {
  return hash('sha256', text)
}

function verify(
  target: Target,
  label: string,
  manifest: readonly object[] | string,
  query = '',
): Promise<Answer<string>> {
  const body =
    typeof manifest === 'string' ? manifest : manifest.map((line) => `${JSON.stringify(line)}\n`).join('')
  const path = `/v1/runs/${encodeURIComponent(label)}/verify${query}`
  return call<string>(target, 'POST', path, { body, headers: { 'content-type': NDJSON } })
}

function resultOf({ status, headers, body }: Answer<string>): Result {
  expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: NDJSON })
  expect(body.endsWith('\n')).toBe(true)
  const differences = body
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as DifferenceJson)
  const summary = differences.pop()
  if (summary?.kind !== 'summary') throw new Error('the last line is not the summary')
  return { differences, summary }
}

const NONE = {
  ...{ duplicate: 0, unexpected: 0, late: 0, altered: 0, reordered: 0, missing: 0, erased: 0 },
  faults: { dropped: 0, duplicated: 0 },
}

describe('the verification of a load run', () => {
  let mayfly: SharedMayfly
  /** A key of an account of its own, for each test. */
  let own: Target
  let admin: Target
  const label = 'run:42'

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })
  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly.operator, { plan: 'enterprise' })).key)
    own = withKey(admin, await issueKey(admin, { scopes: ['inboxes'] }))
  })

  const inboxOfRun = (more: object = {}): Promise<InboxJson> =>
    createInbox(own, { labels: { run: '42' }, ...more })
  /** Sends a mail, and returns its line. */
  const sent = async ({ address }: InboxJson, id: string, text?: string): Promise<Line> => {
    const sent_at = new Date().toISOString()
    const raw = source(id, text)
    await send(own, address, raw)
    return { recipient: address, id, sent_at, sha256: sha256(raw) }
  }

  it('finds no difference if all mail arrived as it was sent, without waiting for it', async () => {
    const inboxes = [await inboxOfRun(), await inboxOfRun(), await inboxOfRun()]
    const lines: Line[] = []
    for (let index = 0; index < 12; index += 1) {
      const inbox = inboxes[index % 3]
      if (inbox !== undefined) lines.push(await sent(inbox, `<${index}@load.example>`))
    }
    const { differences, summary } = resultOf(await verify(own, label, lines, '?late_ms=60000&order=true'))
    expect(differences).toEqual([])
    const { visible_ms: _, ...counts } = summary
    expect(counts).toEqual({ kind: 'summary', expected: 12, found: 12, ...NONE })
  })

  it('finds each kind of difference, and nothing else', async () => {
    const [one, two] = [await inboxOfRun(), await inboxOfRun()]
    const [ended, other] = [await inboxOfRun(), await createInbox(own)]
    const fine = await sent(one, '<fine@load.example>')
    const twice = await sent(one, '<twice@load.example>')
    await sent(one, '<twice@load.example>')
    const altered = await sent(one, '<altered@load.example>', 'As it was received.')
    await sent(two, '<unnamed@load.example>')
    await sent(two, '')
    const late = await sent(two, '<late@load.example>')
    const erased = await sent(ended, '<erased@load.example>')
    // Mail of an inbox without the label is not part of the run.
    const outside = await sent(other, '<outside@load.example>')
    await call(own, 'DELETE', `/v1/inboxes/${ended.id}`)
    const received = await messagesOf(own, one.id, 4)
    const ofTwo = await messagesOf(own, two.id, 3)

    const lost = { recipient: one.address, id: '<lost@load.example>' }
    const misdirected = { ...fine, recipient: two.address }
    const lines = [
      ...[fine, twice, { ...altered, sha256: sha256('As it was sent.') }],
      ...[{ ...late, sent_at: '2026-01-01T00:00:00.000Z' }, erased, outside, lost, misdirected],
    ]
    const { differences, summary } = resultOf(await verify(own, label, lines, '?late_ms=60000'))
    const by = (kind: string) => differences.filter((each) => each.kind === kind)

    const about = (message: { id: string; received_at: string } | undefined, inbox: InboxJson) => ({
      message_id: message?.id,
      received_at: message?.received_at,
      inbox_id: inbox.id,
      recipient: inbox.address,
    })
    expect(by('duplicate')).toEqual([{ kind: 'duplicate', id: twice.id, ...about(received[2], one) }])
    expect(by('altered')).toEqual([
      {
        ...{ kind: 'altered', id: altered.id, line: 3, ...about(received[3], one) },
        ...{ sha256: sha256('As it was sent.'), received_sha256: altered.sha256 },
      },
    ])
    expect(by('unexpected')).toEqual([
      { kind: 'unexpected', id: '<unnamed@load.example>', ...about(ofTwo[0], two) },
      { kind: 'unexpected', id: null, ...about(ofTwo[1], two) },
    ])
    const delay = Date.parse(ofTwo[2]?.received_at ?? '') - Date.parse('2026-01-01T00:00:00.000Z')
    expect(by('late')).toEqual([
      {
        ...{ kind: 'late', id: late.id, line: 4, ...about(ofTwo[2], two) },
        ...{ sent_at: '2026-01-01T00:00:00.000Z', delay_ms: delay, late_by_ms: delay - 60_000 },
      },
    ])
    expect(by('erased')).toEqual([
      {
        ...{ kind: 'erased', id: erased.id, line: 5, recipient: ended.address, sent_at: erased.sent_at },
        ...{ inbox_id: ended.id, state: 'deleted', ended_at: expect.any(String) as string },
      },
    ])
    expect(by('missing')).toEqual([
      { kind: 'missing', line: 6, recipient: outside.recipient, id: outside.id, sent_at: outside.sent_at },
      { kind: 'missing', line: 7, ...lost, sent_at: null },
      { kind: 'missing', line: 8, recipient: two.address, id: fine.id, sent_at: fine.sent_at },
    ])
    const counts = { duplicate: 1, unexpected: 2, late: 1, altered: 1, missing: 3, erased: 1 }
    expect(summary).toMatchObject({ expected: 8, found: 4, ...NONE, ...counts })
    expect(differences).toHaveLength(9)
  })

  it('says what faults did on purpose', async () => {
    const [losing, repeating] = [await inboxOfRun(), await inboxOfRun()]
    const fault = (inbox: InboxJson, action: string) =>
      call(own, 'PUT', `/v1/inboxes/${inbox.id}/faults`, { body: [{ stage: 'after_accept', action }] })
    await fault(losing, 'drop')
    await fault(repeating, 'duplicate')
    const lines = [await sent(losing, '<lost>'), await sent(repeating, '<twice>')]
    // It was sent twice, and repeated each time.
    await sent(repeating, '<twice>')
    const [first, , second] = await messagesOf(own, repeating.id, 4)
    const { differences, summary } = resultOf(await verify(own, label, lines))
    expect(differences.map(({ kind, duplicate_of }) => [kind, duplicate_of])).toEqual([
      ['duplicate', first?.id],
      ['duplicate', undefined],
      ['duplicate', second?.id],
      ['missing', undefined],
    ])
    expect(summary).toMatchObject({ missing: 1, duplicate: 3, faults: { dropped: 1, duplicated: 2 } })
  })

  it('expects a mail as often as the manifest has it, whatever the case and the tag of its recipient', async () => {
    const inbox = await inboxOfRun()
    const [local = '', domain = ''] = inbox.address.split('@')
    const tagged = `${local.toUpperCase()}+tag@${domain.toUpperCase()}`
    for (const to of [inbox.address, tagged, inbox.address]) await send(own, to, source('<id@load.example>'))
    const line = { id: '<id@load.example>' }
    const lines = [
      { ...line, recipient: inbox.address },
      { ...line, recipient: tagged },
    ]
    const { differences, summary } = resultOf(await verify(own, label, lines))
    expect(differences.map(({ kind, recipient }) => ({ kind, recipient }))).toEqual([
      { kind: 'duplicate', recipient: inbox.address },
    ])
    expect(summary).toMatchObject({ expected: 2, found: 2, duplicate: 1 })
    const more = resultOf(await verify(own, label, [...lines, ...lines]))
    expect(more.summary).toMatchObject({ expected: 4, found: 3, missing: 1, duplicate: 0 })
  })

  it('finds mail by another header, folded or encoded', async () => {
    const inbox = await inboxOfRun()
    const withHeader = (value: string) => `X-Load-Id: ${value}\r\n${source('')}`
    await send(own, inbox.address, withHeader('one'))
    await send(own, inbox.address, withHeader('two\r\n parts'))
    await send(own, inbox.address, withHeader('=?utf-8?q?gr=C3=BCn?='))
    await send(own, inbox.address, source('<only-a-message-id@load.example>'))
    const lines = ['one', 'two\r\n parts', 'grün'].map((id) => ({ recipient: inbox.address, id }))
    const { differences, summary } = resultOf(await verify(own, label, lines, '?id_header=x-LOAD-id'))
    expect(differences).toMatchObject([{ kind: 'unexpected', id: null }])
    expect(summary).toMatchObject({ expected: 3, found: 3, unexpected: 1 })
  })

  it('finds mail out of order, if that is asked for', async () => {
    const [inbox, other] = [await inboxOfRun(), await inboxOfRun()]
    const lines: Line[] = []
    for (const id of ['<1>', '<2>', '<3>', '<4>']) lines.push(await sent(inbox, id))
    lines.unshift(await sent(other, '<5>'))
    const [five, one, two, three, four] = lines
    const manifest = [one, three, two, five, four].filter((line) => line !== undefined)
    const unordered = resultOf(await verify(own, label, manifest))
    expect(unordered).toMatchObject({ differences: [], summary: { reordered: 0 } })
    const { differences, summary } = resultOf(await verify(own, label, manifest, '?order=true'))
    expect(differences).toMatchObject([{ kind: 'reordered', id: '<3>', line: 2, after_line: 3 }])
    expect(summary).toMatchObject({ found: 5, reordered: 1 })
  })

  it('has only the mail of the environment and of unprotected inboxes', async () => {
    const production = withKey(
      admin,
      await issueKey(admin, { scopes: ['inboxes'], environment: 'production' }),
    )
    const elsewhere = await createInbox(production, { labels: { run: '42' } })
    const stranger = await createInbox(mayfly, { labels: { run: '42' } })
    const hidden = await inboxOfRun({ password_protected: true })
    const lines = []
    for (const inbox of [elsewhere, stranger, hidden]) lines.push(await sent(inbox, '<1>'))
    await call(mayfly, 'DELETE', `/v1/inboxes/${stranger.id}`)
    const { differences, summary } = resultOf(await verify(own, label, lines))
    expect(differences.map(({ kind, line }) => [kind, line])).toEqual([
      ['missing', 1],
      ['missing', 2],
      ['missing', 3],
    ])
    expect(summary).toMatchObject({ expected: 3, found: 0, missing: 3 })
  })

  it('compares mail of several sizes by its source', async () => {
    const inbox = await inboxOfRun()
    const lines: Line[] = []
    for (const length of [0, 1_000, 20_000, 300_000, 2_500_000]) {
      const text = 'A line of text that is not too long.\r\n'.repeat(length / 38)
      lines.push(await sent(inbox, `<${length}@load.example>`, text))
    }
    expect(resultOf(await verify(own, label, lines))).toMatchObject({
      differences: [],
      summary: { found: 5 },
    })
  })

  it('reports a run without a manifest, and one without mail', async () => {
    const inbox = await inboxOfRun()
    await sent(inbox, '<1>')
    for (const empty of ['', '\n\r\n']) {
      const { differences, summary } = resultOf(await verify(own, label, empty))
      expect(differences).toMatchObject([{ kind: 'unexpected', id: '<1>' }])
      expect(summary).toMatchObject({ expected: 0, found: 0, unexpected: 1 })
    }
    const none = resultOf(await verify(own, 'run:none', [{ recipient: 'foreign@example.com', id: '<1>' }]))
    expect(none.differences).toMatchObject([{ kind: 'missing', recipient: 'foreign@example.com' }])
  })

  it('answers thousands of differences', async () => {
    const inbox = await inboxOfRun()
    const lines = Array.from({ length: 20_000 }, (_, index) => ({
      recipient: inbox.address,
      id: `<${index}>`,
    }))
    await send(own, inbox.address, source('<12345>'))
    const { differences, summary } = resultOf(await verify(own, label, lines))
    expect(summary).toMatchObject({ expected: 20_000, found: 1, missing: 19_999 })
    const numbers = differences.map(({ line }) => line)
    expect(numbers).toEqual(Array.from({ length: 20_000 }, (_, at) => at + 1).filter((at) => at !== 12_346))
  })

  const good = '{"recipient":"a@mayfly.test","id":"<1>"}'
  it.each([
    ['{', 'malformed-json', /^Line 2: /, undefined],
    ['\u0000', 'malformed-json', /^Line 2: /, undefined],
    ['[]', 'invalid-request', /^line 2: it must be a JSON object/, '/1'],
    ['7', 'invalid-request', /^line 2: /, '/1'],
    ['{"id":"<1>"}', 'invalid-request', /^line 2: recipient must be/, '/1/recipient'],
    ['{"recipient":"","id":"<1>"}', 'invalid-request', /^line 2: recipient must be/, '/1/recipient'],
    [`{"recipient":"${'a'.repeat(321)}","id":"1"}`, 'invalid-request', /^line 2: recipient/, '/1/recipient'],
    ['{"recipient":"a@b"}', 'invalid-request', /^line 2: id must be/, '/1/id'],
    [`{"recipient":"a@b","id":"${'a'.repeat(999)}"}`, 'invalid-request', /^line 2: id must be/, '/1/id'],
    ['{"recipient":"a@b","id":"1","sent_at":"today"}', 'invalid-request', /^line 2: sent_at/, '/1/sent_at'],
    ['{"recipient":"a@b","id":"1","sent_at":1}', 'invalid-request', /^line 2: sent_at/, '/1/sent_at'],
    ['{"recipient":"a@b","id":"1","sha256":"00"}', 'invalid-request', /^line 2: sha256/, '/1/sha256'],
  ])('refuses the line %s', async (line, code, detail, pointer) => {
    const answer = await verify(own, label, `${good}\n${line}\n${good}`)
    const at = pointer === undefined ? undefined : [{ pointer }]
    expectProblem(answer, { status: 400, code, detail, ...(at === undefined ? {} : { at }) })
  })

  it('refuses a bad line of a long body while it is sent', async () => {
    const answer = await verify(own, label, `{}\n${`${good}\n`.repeat(300_000)}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', detail: /^line 1: / })
  })

  it('refuses lines that are too long, and bodies of other types', async () => {
    const long = `{"recipient":"a@b","id":"1","note":"${'a'.repeat(17_000)}"}`
    for (const body of [long, `${long}\n${good}`]) {
      const detail = /^Line 1 has more than 16384 bytes/
      expectProblem(await verify(own, label, body), { status: 413, code: 'body-too-large', detail })
    }
    const path = '/v1/runs/run:42/verify'
    for (const type of ['application/json', 'text/plain']) {
      const answer = await call(own, 'POST', path, { body: good, headers: { 'content-type': type } })
      expectProblem(answer, { status: 415, code: 'unsupported-media-type', detail: /x-ndjson/ })
    }
    const headers = { 'content-type': NDJSON, 'content-encoding': 'gzip' }
    const packed = await call(own, 'POST', path, { body: good, headers })
    expectProblem(packed, { status: 415, code: 'unsupported-media-type' })
    // Other handlers read no lines.
    const create = await call(own, 'POST', '/v1/inboxes', { body: '{}', headers: { 'content-type': NDJSON } })
    expectProblem(create, { status: 415, code: 'unsupported-media-type' })
  })

  it('refuses other labels and queries, and keys without the scope', async () => {
    const refused = await verify(own, '42', '')
    expectProblem(refused, { status: 400, code: 'invalid-request', at: [{ parameter: 'label' }] })
    for (const [query, parameter] of [
      ['?late_ms=-1', 'late_ms'],
      ['?late_ms=soon', 'late_ms'],
      ['?id_header=a:b', 'id_header'],
      ['?order=yes', 'order'],
      ['?limit=1', 'limit'],
    ] as const) {
      const answer = await verify(own, label, '', query)
      expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter }] })
    }
    const audit = withKey(admin, await issueKey(admin, { scopes: ['audit'] }))
    expectProblem(await verify(audit, label, good), { status: 403, code: 'missing-scope' })
    const reader = withKey(admin, await issueKey(admin, { scopes: ['read'] }))
    expect(resultOf(await verify(reader, label, good)).summary).toMatchObject({ missing: 1 })
  })

  it('makes one verification of an account at a time, and the next one when its client leaves', async () => {
    const inbox = await inboxOfRun()
    const line = await sent(inbox, '<1>')
    const leaving = new AbortController()
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from(`${JSON.stringify(line)}\n`)),
    })
    const request: RequestInit & { duplex: 'half' } = {
      method: 'POST',
      headers: { authorization: `Bearer ${own.apiKey}`, 'content-type': NDJSON },
      ...{ body, duplex: 'half', signal: leaving.signal },
    }
    const first = fetch(`${own.url}/v1/runs/run:42/verify`, request)
    const leaves = expect(first).rejects.toThrow()
    const otherAdmin = withKey(mayfly, (await openAccount(mayfly.operator, { plan: 'enterprise' })).key)
    const other = withKey(otherAdmin, await issueKey(otherAdmin, { scopes: ['inboxes'] }))
    expect(resultOf(await verify(other, label, [])).summary).toMatchObject({ expected: 0 })
    const second = verify(own, label, [line])
    expect(await Promise.race([second, pause(500, 'waiting')])).toBe('waiting')
    leaving.abort()
    await leaves
    expect(resultOf(await second).summary).toMatchObject({ found: 1 })
  })
})

describe('the memory for manifests', () => {
  it('is bounded, and released when the answer is sent', async () => {
    const mayfly = await startMayfly({ isOneProcess: true, env: { MAYFLY_MEMORY_MIB: '256' } })
    try {
      const line = JSON.stringify({ recipient: 'a@mayfly.test', id: '<1@load.example>', sha256: sha256('') })
      for (let round = 0; round < 3; round += 1) {
        const refused = await verify(mayfly, 'run:42', `${line}\n`.repeat(100_000))
        expectProblem(refused, { status: 413, code: 'body-too-large', detail: /14 MiB/ })
        const accepted = await verify(mayfly, 'run:42', `${line}\n`.repeat(20_000))
        expect(resultOf(accepted).summary).toMatchObject({ expected: 20_000, missing: 20_000 })
      }
    } finally {
      await mayfly.dispose()
    }
  })
})

describe('mayfly load verify', () => {
  let mayfly: Mayfly
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-verify-'))
    mayfly = await startMayfly({ isOneProcess: true, hasAnalytics: true })
  })
  afterAll(async () => {
    await mayfly.dispose()
    await rm(folder, { recursive: true })
  })

  interface Run {
    code: number
    stdout: string
    stderr: string
  }
  const run = (...args: string[]) =>
    new Promise<Run>((resolve) => {
      const env = { PATH: process.env.PATH ?? '', MAYFLY_URL: mayfly.url, MAYFLY_KEY: mayfly.apiKey }
      execFile(process.execPath, [MAIN, ...args], { env, timeout: 90_000 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr }),
      )
    })
  const manifestOf = async (...lines: (object | string)[]): Promise<string> => {
    const file = join(folder, `${randomUUID()}.ndjson`)
    await writeFile(
      file,
      lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
    )
    return file
  }
  /** Sends a mail to an inbox of a run, and returns its line. */
  const sent = async ({ address }: InboxJson, id: string): Promise<Line & { accepted_at: string }> => {
    const sent_at = new Date().toISOString()
    const raw = source(id)
    await send(mayfly, address, raw)
    const accepted_at = new Date().toISOString()
    return { recipient: address, id, sent_at, sha256: sha256(raw), accepted_at }
  }

  it('exits with 0 if all mail is as expected, and prints the latencies', async () => {
    const inbox = await createInbox(mayfly, { labels: { run: 'fine' } })
    const lines = [await sent(inbox, '<1>'), await sent(inbox, '<2>')]
    const refused = {
      recipient: inbox.address,
      id: '<3>',
      sent_at: null,
      accepted_at: null,
      error: '452 Full',
    }
    await messagesOf(mayfly, inbox.id, 2)
    const file = await manifestOf(...lines, refused)
    const options = ['--manifest', file, '--label', 'run:fine', '--late', '1m', '--order']
    const { code, stdout, stderr } = await until(
      'figures',
      async () => {
        const result = await run('load', 'verify', ...options)
        return result.stdout.includes('first read ms') ? result : null
      },
      90_000,
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^result +all mail is as expected$/m)
    expect(stdout).toMatch(/^expected +2$/m)
    expect(stdout).toMatch(/^refused +1 /m)
    expect(stdout).toMatch(/^250 to visible ms +p50 [\d.]+, p95 [\d.]+, p99 [\d.]+, max [\d.]+$/m)
    const json = await run('--json', 'load', 'verify', ...options)
    expect(JSON.parse(json.stdout)).toMatchObject({
      ...{ label: 'run:fine', passed: true, refused: 1, summary: { expected: 2, found: 2 } },
      usage: { visible_ms: { max: expect.any(Number) as number } },
    })
  })

  it('says if no mail was expected, or none was found', async () => {
    const refused = { recipient: 'a@mayfly.test', id: '<1>', accepted_at: null }
    const none = await run('load', 'verify', '--manifest', await manifestOf(refused), '--label', 'run:typo')
    expect(none.code).toBe(0)
    expect(none.stdout).toMatch(/^result +no mail was expected, and none has arrived$/m)
    const file = await manifestOf({ recipient: 'a@mayfly.test', id: '<1>' })
    const missing = await run('load', 'verify', '--manifest', file, '--label', 'run:typo')
    expect(missing.code).toBe(6)
    expect(missing.stdout).toMatch(/^result +the active inboxes with run:typo have none of the mail$/m)
  })

  it('exits with 6 if there are differences, and writes reports of them', async () => {
    const inbox = await createInbox(mayfly, { labels: { run: '<"&\'>' } })
    const hostile = '<]]>&"\'</script><script>alert(1)</script>'
    const lines = [await sent(inbox, '<1>'), await sent(inbox, '<2>'), await sent(inbox, hostile)]
    const lost = { ...lines[0], id: '\u001b[31m<lost>\u0007' }
    const [altered] = lines
    const file = await manifestOf(
      '',
      { ...altered, sha256: sha256('') },
      { ...lost, accepted_at: null },
      lost,
      lost,
    )
    const [junit, html] = [join(folder, 'report.xml'), join(folder, 'report.html')]
    const { code, stdout, stderr } = await run(
      ...['load', 'verify', '--manifest', file, '--label', 'run:<"&\'>'],
      ...['--show', '1', '--junit', junit, '--html', html],
    )
    expect({ code, stderr }).toEqual({
      code: 6,
      stderr: `mayfly: the mail differs from ${file}: 2 missing, 2 unexpected, 1 altered\n`,
    })
    expect(stdout).toMatch(/^missing:\n {2}line 4: \ufffd\[31m<lost>\ufffd to \S+\n {2}… and 1 more$/m)
    expect(stdout).toMatch(/^altered:\n {2}line 2: <1> to \S+, SHA-256 /m)

    const parsed = await parseXml(await readFile(junit, 'utf8'))
    expect(parsed.root).toEqual({ tag: 'testsuites', tests: '7', failures: '3' })
    const failed = parsed.cases.filter(({ failure }) => failure !== null)
    expect(parsed.cases).toHaveLength(7)
    expect(failed.map(({ failure }) => failure?.message)).toEqual(['2 missing', '2 unexpected', '1 altered'])
    expect(failed[1]?.failure?.text).toContain('<2> to')

    const page = await readFile(html, 'utf8')
    expect(page).toContain("default-src 'none'")
    expect(page).toContain('Load run &lt;&quot;&amp;&#39;&gt;')
    expect(page.match(/<svg /g)?.length).toBeGreaterThanOrEqual(1)
    expect(page).not.toMatch(/<script|\son\w+=|https?:\/\/|\u001b/)

    const undigested = await run('load', 'verify', '--manifest', file, '--label', 'run:<"&\'>', '--no-digest')
    expect(undigested.stderr).toContain('2 missing, 2 unexpected\n')
    const expectations = {
      passed: false,
      summary: { missing: 2 },
      differences: { missing: [{ line: 4 }, { line: 5 }] },
    }
    const json = await run('--json', 'load', 'verify', '--manifest', file, '--label', 'run:<"&\'>')
    expect(json.code).toBe(6)
    expect(JSON.parse(json.stdout)).toMatchObject(expectations)
  })

  it('says which differences faults made on purpose', async () => {
    const inbox = await createInbox(mayfly, { labels: { run: 'faults' } })
    const faults = [
      { stage: 'after_accept', action: 'drop', first_n: 1 },
      { stage: 'after_accept', action: 'duplicate' },
    ]
    await call(mayfly, 'PUT', `/v1/inboxes/${inbox.id}/faults`, { body: faults })
    const file = await manifestOf(await sent(inbox, '<lost>'), await sent(inbox, '<twice>'))
    const html = join(folder, 'faults.html')
    const options = ['--manifest', file, '--label', 'run:faults', '--html', html]
    const { code, stdout } = await run('load', 'verify', ...options)
    expect(code).toBe(6)
    expect(stdout).toMatch(/^missing +1 \(sent and not received; faults dropped 1 on purpose\)$/m)
    expect(stdout).toMatch(/^duplicate +1 \(received more often than sent; 1 by a fault, on purpose\)$/m)
    expect(stdout).toMatch(/^ {2}<twice> to \S+, repeats msg_\S+ because of a fault, msg_\S+$/m)
    const page = await readFile(html, 'utf8')
    expect(page).toContain('faults dropped 1 on purpose')
    expect(page).toContain('1 by a fault, on purpose')
  })

  it('waits until no mail is missing', async () => {
    const inbox = await createInbox(mayfly, { labels: { run: 'slow' } })
    const raw = source('<slow>')
    const line = { recipient: inbox.address, id: '<slow>', accepted_at: new Date().toISOString() }
    const file = await manifestOf(line)
    const verifications = async () => {
      const { body } = await call<string>(mayfly, 'GET', '/metrics')
      const counts = body.matchAll(/^mayfly_http_request_seconds_count\{.*verify.*\} (\d+)/gm)
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const before = await verifications()
    const running = run('load', 'verify', '--manifest', file, '--label', 'run:slow', '--wait', '60s')
    await until('a verification', async () => (await verifications()) > before)
    await send(mayfly, inbox.address, raw)
    expect(await running).toMatchObject({ code: 0, stderr: '' })
  })

  it.each([
    [['--label', 'run:1'], 2, /--manifest/],
    [
      ['--manifest', '/nowhere/manifest.ndjson', '--label', 'run:1'],
      2,
      /\/nowhere\/manifest.ndjson can't be read/,
    ],
    [['--manifest', '/nowhere/manifest.ndjson', '--label', 'run'], 2, /<name>:<value>/],
    [['--manifest', '/nowhere/manifest.ndjson', '--label', 'run:1', '--late', '5'], 2, /such as 5m/],
  ])('refuses %j', async (args, code, message) => {
    const result = await run('load', 'verify', ...args)
    expect(result).toMatchObject({ code, stdout: '' })
    expect(result.stderr).toMatch(message)
  })

  it('names the line of a manifest that is not JSON, or that the API refuses', async () => {
    const line = { recipient: 'one@mayfly.test', id: '1' }
    const [bad, foreign] = [await manifestOf(line, '{'), await manifestOf({ id: '1', accepted_at: 'x' })]
    const first = await run('load', 'verify', '--manifest', bad, '--label', 'run:1')
    expect(first).toMatchObject({ code: 2, stderr: `mayfly: ${bad}, line 2: not a JSON object\n` })
    const second = await run('load', 'verify', '--manifest', foreign, '--label', 'run:1')
    expect(second.code).toBe(2)
    expect(second.stderr).toContain('line 1: recipient must be')
  })
})

interface ParsedXml {
  root: Record<string, string>
  cases: { name: string; failure: { message: string; text: string } | null }[]
}

/** Reads JUnit XML with Python's parser, which accepts well-formed XML only. */
async function parseXml(text: string): Promise<ParsedXml> {
  const program = `
import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.argv[1])
def failure_of(case):
    failure = case.find("failure")
    return None if failure is None else {"message": failure.get("message"), "text": failure.text}
cases = [{"name": case.get("name"), "failure": failure_of(case)} for case in root.iter("testcase")]
print(json.dumps({"root": {"tag": root.tag, **root.attrib}, "cases": cases}))
`
  const { stdout } = await promisify(execFile)('python3', ['-c', program, text])
  return JSON.parse(stdout) as ParsedXml
}
