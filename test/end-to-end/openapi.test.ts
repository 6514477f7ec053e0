import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import {
  bodyOf,
  type Document,
  nameIn,
  type Operation,
  type SchemaJson,
} from '#apps/api/openapi/openapi-json.js'
import { PROBLEMS } from '#apps/api/http/problems.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { call, createInbox, messagesOf, only, send } from '#test/harness/client.js'
import { Contract, ContractError } from '#test/harness/contract.js'
import { startEndpoint } from '#test/harness/endpoint.js'
import { registeredRoutes, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { richMail } from '#test/harness/rich-mail.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

/** Properties that the server requires in addition to an example. */
const NEEDED: Readonly<Record<string, object>> = {
  '/v1/accounts': { name: 'Example' },
  '/v1/emails/bulk': { count: 2 },
  '/v1/inboxes/bulk': { count: 2 },
  '/v1/invitations': { role: 'developer' },
  '/v1/keys': { name: 'CI', environment: 'ci' },
  '/v1/webhooks': { url: 'https://ci.example/' },
}

const OTHER_FAMILY = '/v1/emails'

describe('the OpenAPI document', () => {
  let mayfly: Mayfly
  let document: Document

  beforeAll(async () => {
    const env = { LOG_LEVEL: 'debug', MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' }
    mayfly = await startMayfly({ isOneProcess: true, env })
    document = (await call<Document>(mayfly, 'GET', '/openapi.json')).body
  })
  afterAll(() => mayfly.dispose())

  const resolve = (schema: SchemaJson = {}): SchemaJson =>
    schema.$ref === undefined ? schema : (document.components.schemas[nameIn(schema.$ref)] ?? {})
  const contentOf = (path: string) => {
    const answer = document.paths[path]?.get?.responses['200']
    return answer !== undefined && 'content' in answer ? answer.content : undefined
  }

  it("has exactly the routes of the server, except the console's own and tiles", () => {
    const routes = registeredRoutes(mayfly).filter(
      (route) => !/^HEAD | \/(console.*)?$|\/tile\/.*$/.test(route),
    )
    expect(routes.length).toBeGreaterThan(20)
    const documented = operationsOf(document).map(({ method, path }) => `${method} ${path}`)
    expect(documented.toSorted()).toEqual(routes.toSorted())
  })

  it('has a unique id for each operation, also under /v1/emails', () => {
    const sent = Object.values(document.webhooks).map(({ post }) => post.operationId)
    const ids = [...operationsOf(document).map(({ operation }) => operation.operationId), ...sent]
    expect(new Set(ids).size).toBe(ids.length)
    for (const name of ['createInbox', 'createEmail', 'listInboxes', 'listEmails'])
      expect(ids).toContain(name)
    for (const { path, operation } of operationsOf(document)) {
      if (path.startsWith(OTHER_FAMILY)) expect(operation.operationId).not.toMatch(/Inbox/)
    }
  })

  it('describes /v1/emails like /v1/inboxes, and marks it as an alias', () => {
    const under = (family: string) => operationsOf(document).filter(({ path }) => path.startsWith(family))
    const said = (family: string) =>
      under(family).map(({ path, method, operation }) => {
        const { operationId: _id, tags: _tags, 'x-alias-of': _alias, ...described } = operation
        const { 'x-code-samples': _samples, ...rest } = described
        return { path: path.slice(family.length), method, ...rest }
      })
    const ids = under('/v1/inboxes').map(({ operation }) => operation.operationId)
    expect(ids.length).toBeGreaterThan(10)
    expect(said('/v1/inboxes')).toEqual(said(OTHER_FAMILY))
    expect(under(OTHER_FAMILY).map(({ operation }) => operation['x-alias-of'])).toEqual(ids)
    const tagged = operationsOf(document).filter(({ operation }) => operation.tags.includes('Emails'))
    expect(tagged).toEqual(under(OTHER_FAMILY))
  })

  it('has named bodies, binary formats and event schemas for generators', () => {
    const bodies = operationsOf(document).flatMap(({ operation }) => bodySchemaOf(operation) ?? [])
    expect(bodies.length).toBeGreaterThan(10)
    for (const body of bodies) expect(body).toEqual({ $ref: expect.any(String) as unknown })
    const { CreateInbox, OpenAccount, RequestReplay } = document.components.schemas
    expect(CreateInbox?.properties?.labels?.$ref).toBe('#/components/schemas/InboxLabels')
    expect(OpenAccount?.properties?.limits?.anyOf?.[0]?.$ref).toBe('#/components/schemas/AccountLimits')
    expect(RequestReplay?.anyOf).toHaveLength(2)
    const binary = { schema: { type: 'string', format: 'binary' } }
    const message = '/v1/inboxes/{id}/messages/{message_id}'
    expect(contentOf(`${message}/raw`)).toEqual({ 'message/rfc822': binary })
    expect(contentOf(`${message}/attachments/{index}`)).toEqual({ '*/*': binary })
    expect(contentOf('/v1/usage/export')).toEqual({ '*/*': binary })
    expect(contentOf('/v1/inboxes/{id}/events')).toEqual({
      'text/event-stream': { schema: { $ref: '#/components/schemas/EventBody' } },
    })
  })

  it('describes each operation, parameter, property and answer', () => {
    for (const { operation } of operationsOf(document)) {
      expect(operation.summary).toMatch(/\S/)
      for (const { description } of operation.parameters) expect(description).toMatch(/\S/)
      const body = resolve(bodySchemaOf(operation))
      for (const { properties = {} } of (body.anyOf ?? [body]).map(resolve)) {
        for (const [name, property] of Object.entries(properties)) {
          expect(`${name}: ${property.description ?? ''}`).toMatch(/: \S/)
        }
      }
    }
    for (const [name, { description }] of Object.entries(document.components.schemas)) {
      // The bundler appends a digit to the second class of a name.
      expect(name).toMatch(/^[A-Za-z]+$/)
      expect(description).toMatch(/\S/)
    }
  })

  it('has no HTML answers except its own pages, so that no browser displays mail', async () => {
    const pages = operationsOf(document).filter(({ operation }) =>
      Object.values(operation.responses).some(
        (answer) => 'content' in answer && Object.keys(answer.content ?? {}).includes('text/html'),
      ),
    )
    expect(pages.map(({ path }) => path).toSorted()).toEqual(['/docs', '/problems/{code}'])

    const inbox = await createInbox(mayfly)
    await send(mayfly, inbox.address, richMail(inbox.address))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const paths = operationsOf(document)
      .filter(({ method, path }) => method === 'GET' && path.includes('/messages'))
      .map(({ path }) => path.replace(/\{inbox\w*\}|\{id\}/, inbox.id).replace(/\{message\w*\}/, id))
      .map((path) => path.replace('{index}', '0'))
    expect(paths.length).toBeGreaterThanOrEqual(10)
    for (const path of paths) {
      for (const accept of ['text/html', '*/*']) {
        const headers = { authorization: `Bearer ${mayfly.apiKey}`, accept }
        const answer = await fetch(mayfly.url + path, { headers })
        await answer.arrayBuffer()
        const type = answer.headers.get('content-type')
        expect({ path, type }).not.toMatchObject({ type: expect.stringMatching(/html|svg|xml/i) as unknown })
        if (accept === '*/*') expect({ path, status: answer.status }).toEqual({ path, status: 200 })
        if (/raw$|attachments/.test(path) && answer.status === 200) {
          expect(answer.headers.get('content-disposition')).toMatch(/^attachment;/)
          expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
        }
      }
    }
  })

  it('has an answer with an example for every problem', () => {
    for (const [code, { status }] of Object.entries(PROBLEMS)) {
      const answer = document.components.responses[code]
      const { schema, examples } = answer?.content?.['application/problem+json'] ?? {}
      expect(schema).toMatchObject({
        $ref: '#/components/schemas/Problem',
        properties: { status: { const: status } },
      })
      expect(examples).toHaveProperty(code)
    }
  })

  it('has no broken references, and examples that match their schemas', () => {
    const ajv = new Ajv2020({ strict: false })
    formats.default(ajv)
    ajv.addSchema(document, 'document')
    const places = [...placesIn(document, '')]
    const references = places.filter(({ part }) => typeof part.$ref === 'string')
    expect(references.length).toBeGreaterThan(100)
    const pointers = new Set(places.map(({ pointer }) => `#${pointer}`))
    for (const { part } of references) expect(pointers).toContain(part.$ref)
    let tried = 0
    for (const { pointer, part } of places) {
      for (const example of examplesOf(part)) {
        const schema = pointer.endsWith('/content/application~1problem+json') ? `${pointer}/schema` : pointer
        const validate = ajv.compile({ $ref: `document#${encodeURI(schema)}` })
        expect({ schema, isValid: validate(example), errors: validate.errors }).toMatchObject({
          isValid: true,
        })
        tried += 1
      }
    }
    expect(tried).toBeGreaterThan(50)
  })

  it('has examples of bodies that the server accepts', async () => {
    let taken = 0
    for (const { method, path, operation } of operationsOf(document)) {
      for (const [name, property] of Object.entries(resolve(bodySchemaOf(operation)).properties ?? {})) {
        if (path.includes('{')) continue
        for (const example of resolve(property).examples ?? []) {
          const body = { ...NEEDED[path], [name]: example }
          const { status } = await call(mayfly, method, path, { body })
          expect({ path, body, status }).toEqual({ path, body, status: 201 })
          taken += 1
        }
      }
    }
    expect(taken).toBeGreaterThan(8)
  })

  it('describes the requests of webhooks, each event by name', async () => {
    expect(Object.keys(document.webhooks)).toEqual([...WEBHOOK_EVENT_TYPES])
    const endpoint = await startEndpoint()
    try {
      const inbox = await createInbox(mayfly)
      const hook = { url: endpoint.url, events: WEBHOOK_EVENT_TYPES }
      const { id } = await registerWebhook(mayfly, '/v1/webhooks', hook)
      await call(mayfly, 'POST', `/v1/webhooks/${id}/secret/rotate`)
      await send(mayfly, inbox.address, richMail(inbox.address))
      const message = only(await messagesOf(mayfly, inbox.id, 1))
      await until('the mail to be delivered', () => endpoint.requests.length === 1)
      await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}/messages/${message.id}`)
      await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
      await until('the ends to be delivered', () => endpoint.requests.length === 3)
    } finally {
      await endpoint.dispose()
    }
    const ajv = new Ajv2020({ strict: false })
    formats.default(ajv)
    ajv.addSchema(document, 'document')
    const delivered = endpoint.requests.map(({ headers, body }) => {
      const { type } = JSON.parse(body) as { type: string }
      const { parameters = [] } = document.webhooks[type]?.post ?? {}
      const at = `document#/webhooks/${type}/post`
      const validate = ajv.compile({ $ref: `${at}/requestBody/content/application~1json/schema` })
      expect({ type, isValid: validate(JSON.parse(body)), errors: validate.errors }).toMatchObject({
        isValid: true,
      })
      expect(parameters).toHaveLength(3)
      parameters.forEach(({ name }, index) => {
        const isHeader = ajv.compile({ $ref: `${at}/parameters/${index}/schema` })
        expect({ name, isRight: isHeader(headers[name]) }).toEqual({ name, isRight: true })
      })
      return type
    })
    expect(delivered.toSorted()).toEqual(['inbox.deleted', 'message.deleted', 'message.received'])
  })

  it('is the contract for all suites: every deviation is detected', async () => {
    await createInbox(mayfly)
    const path = '/v1/inboxes?limit=1'
    const { status, headers, body } = await call<Record<string, unknown>[]>(mayfly, 'GET', path)
    const [inbox] = body
    const contract = new Contract(document)
    const good = { method: 'GET', path, status, headers, body }
    expect(() => contract.check(good)).not.toThrow()
    const without = (name: string) => {
      const others = new Headers(headers)
      others.delete(name)
      return others
    }
    const slips = [
      { ...good, body: [{ ...inbox, message_count: '0' }] },
      { ...good, body: [{ ...inbox, unheard_of: 1 }] },
      { ...good, body: {} },
      { ...good, status: 202 },
      { ...good, path: '/v1/nothing' },
      { ...good, headers: without('x-request-id') },
      { ...good, headers: new Headers([...without('content-type'), ['content-type', 'text/plain']]) },
      { ...good, headers: new Headers([...without('ratelimit'), ['ratelimit', 'plenty']]) },
      {
        ...good,
        status: 404,
        headers: new Headers([...without('content-type'), ['content-type', 'application/problem+json']]),
        body: { code: 'not-found' },
      },
    ]
    for (const slip of slips) expect(() => contract.check(slip)).toThrow(ContractError)
  })
})

interface Entry {
  method: string
  path: string
  operation: Operation
}

function operationsOf({ paths }: Document): Entry[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

function bodySchemaOf(operation: Operation): SchemaJson | undefined {
  return bodyOf(operation)?.schema
}

interface Place {
  /** RFC 6901. */
  pointer: string
  part: Record<string, unknown>
}

function* placesIn(value: unknown, pointer: string): Generator<Place> {
  if (typeof value !== 'object' || value === null) return
  yield { pointer, part: value as Record<string, unknown> }
  for (const [name, member] of Object.entries(value)) {
    if (name === 'examples') continue
    yield* placesIn(member, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
  }
}

/** The examples of a schema, which are a list, or of a body, which are values by name. */
function examplesOf({ examples }: Record<string, unknown>): unknown[] {
  if (Array.isArray(examples)) return examples
  return Object.values((examples ?? {}) as Record<string, { value?: unknown }>).map(({ value }) => value)
}
