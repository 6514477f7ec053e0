import { createHash } from 'node:crypto'
import { Parser } from 'htmlparser2'
import type { Document } from '#apps/api/openapi/openapi-json.js'
import { PROBLEM_CODES } from '#apps/api/http/problems.js'
import { call } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'

const VOID = new Set(['meta', 'link', 'br', 'img', 'input', '!doctype'])

describe('the page about the API', () => {
  let mayfly: SharedMayfly
  let html: string
  let policy: string
  let page: Page

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    const answer = await call<string>(mayfly, 'GET', '/docs', { headers: { accept: 'text/html' } })
    html = answer.body
    policy = answer.headers.get('content-security-policy') ?? ''
    page = read(html)
  })

  it('is whole: what is opened is closed, in order', () => {
    expect(page.unbalanced).toEqual([])
    expect(page.title).toBe('Mayfly API')
  })

  it('loads nothing and runs nothing, and its policy allows no more than its own style', () => {
    const digest = createHash('sha256').update(page.style).digest('base64')
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+';/)
    expect(policy).toContain(`'sha256-${digest}'`)
    expect(page.tags).not.toContain('script')
    expect(page.tags).not.toContain('link')
    expect(html).not.toMatch(/\ssrc=|\sstyle=|@import|url\(|\son\w+=/)
  })

  it('leads to places that are there', async () => {
    expect(new Set(page.ids).size).toBe(page.ids.length)
    const anchors = page.links.filter((href) => href.startsWith('#'))
    expect(anchors.length).toBeGreaterThan(50)
    for (const href of anchors) expect(page.ids).toContain(href.slice(1))
    for (const href of page.links.filter((each) => !each.startsWith('#'))) {
      const { status } = await call(mayfly, 'GET', new URL(href, `${mayfly.url}/docs`).pathname)
      expect({ href, status }).toEqual({ href, status: 200 })
    }
  })

  it('tells of every operation, schema, header and problem', async () => {
    const { paths, webhooks, components } = (await call<Document>(mayfly, 'GET', '/openapi.json')).body
    const taken = Object.entries(paths)
      .filter(([path]) => !path.startsWith('/v1/emails'))
      .flatMap(([, methods]) => Object.values(methods))
    const sent = Object.values(webhooks).map(({ post }) => post)
    expect(sent).toHaveLength(4)
    const operations = [...taken, ...sent]
    for (const { operationId } of operations) expect(page.ids).toContain(operationId)
    for (const name of Object.keys(components.schemas)) expect(page.ids).toContain(name)
    for (const code of PROBLEM_CODES) expect(page.ids).toContain(code)
    for (const name of Object.keys(components.headers)) expect(html).toContain(`<code>${name}</code>`)
    for (const { summary, parameters } of operations) {
      expect(page.text).toContain(summary)
      for (const { description } of parameters) expect(page.text).toContain(description.replaceAll('`', ''))
    }
  })
})

interface Page {
  title: string
  text: string
  style: string
  tags: string[]
  ids: string[]
  links: string[]
  /** Tags that close nothing, or that nothing closes. */
  unbalanced: string[]
}

function read(html: string): Page {
  const page: Page = { title: '', text: '', style: '', tags: [], ids: [], links: [], unbalanced: [] }
  const open: string[] = []
  const parser = new Parser({
    onopentag(name, { id, href }) {
      page.tags.push(name)
      if (id !== undefined) page.ids.push(id)
      if (href !== undefined) page.links.push(href)
      if (!VOID.has(name)) open.push(name)
    },
    ontext(text) {
      const within = open.at(-1)
      if (within === 'style') page.style += text
      else if (within === 'title') page.title += text
      else page.text += text
    },
    onclosetag(name, isImplied) {
      if (VOID.has(name)) return
      if (isImplied || open.pop() !== name) page.unbalanced.push(name)
    },
  })
  parser.end(html)
  page.unbalanced.push(...open)
  return page
}
