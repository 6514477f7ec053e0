import { createHash } from 'node:crypto'
import type { Type as Class } from '@nestjs/common'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS } from '../http/headers.js'
import { prepareAnswer, type PreparedAnswer } from '../http/prepared-answers.js'
import { PROBLEM_CODES, PROBLEMS } from '../http/problems.js'
import { describeApi } from './document.js'
import { curlCommand, escaped, inline, paragraphs, resolved, schemaText } from './docs-text.js'
import { NDJSON } from '../http/media-types.js'
import { bodyOf, type Document, nameIn, type Operation, type SchemaJson } from './openapi-json.js'

const STYLE = `
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--faint:#888}
body{font:16px/1.55 system-ui,sans-serif;max-width:58rem;margin:0 auto;padding:1rem 1.25rem 4rem}
code,pre{font:.9em/1.5 ui-monospace,monospace}
code{background:var(--soft);border-radius:3px;padding:0 .2em;overflow-wrap:anywhere}
pre{background:var(--soft);border-radius:6px;padding:.75rem 1rem;overflow-x:auto}
.curl{-webkit-user-select:all;user-select:all}
h2{margin-top:3.5rem;border-bottom:1px solid var(--line)}
section{margin-top:2.5rem;border-top:1px solid var(--line)}
section h3{margin-bottom:.2rem}
h4{margin:1.2rem 0 .3rem}
.path{overflow-wrap:anywhere;margin:.2rem 0}
.method{display:inline-block;min-width:4.2em;font-weight:700}
.faint{color:var(--faint)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line)}
td:first-child{white-space:nowrap}
td p{margin:0 0 .3rem}
summary{cursor:pointer}
@media print{details>*{display:block}}
`

/** Allows only the page's own style and the icon of the site. */
export const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

const ABOUT_CURL =
  'To run the `curl` commands, set the key first: `export MAYFLY_KEY=…`. A click selects a whole command. Replace the ids ' +
  'in it with your own.'

/** Shown instead of a path. */
const TO_WEBHOOK = 'to the URL of a webhook'

interface Entry {
  method: string
  /** Null for requests that Mayfly sends to webhooks. */
  path: string | null
  operation: Operation
}

/** The OpenAPI document as JSON and as a page. It is made at the first request, when the public URL is known. */
export class ApiDocument {
  private made: { json: Promise<PreparedAnswer>; page: Promise<PreparedAnswer> } | null = null

  constructor(
    private readonly controllers: readonly Class[],
    private readonly publicUrl: () => string,
  ) {}

  read(): { json: Promise<PreparedAnswer>; page: Promise<PreparedAnswer> } {
    if (this.made === null) {
      const document = describeApi(this.controllers, this.publicUrl())
      this.made = { json: prepareAnswer(JSON.stringify(document)), page: prepareAnswer(docsPage(document)) }
    }
    return this.made
  }
}

function docsPage(document: Document): string {
  const { info, components } = document
  const title = escaped(info.title)
  const entries: Entry[] = [
    ...Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        operation,
      })),
    ),
    ...Object.values(document.webhooks).map(({ post }) => ({ method: 'POST', path: null, operation: post })),
  ]
  const groups = document.tags
    // Its operations are aliases of others.
    .filter(({ name }) => name !== 'Emails')
    .map((tag) => ({ ...tag, entries: entries.filter(({ operation }) => operation.tags.includes(tag.name)) }))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${title} API</h1>
${paragraphs(info.description)}
<p><a href="openapi.json">openapi.json</a> is the same document for programs.</p>
${paragraphs(components.securitySchemes.apiKey.description)}
${paragraphs(components.securitySchemes.inboxToken.description)}
${paragraphs(ABOUT_CURL)}
<nav>
${lines(groups, (group) => contents(group.name, group.entries))}
<p><a href="#errors">Errors</a> · <a href="#headers">Headers</a> · <a href="#schemas">Schemas</a></p>
</nav>
${lines(
  groups,
  (group) => `<h2 id="${anchor(group.name)}">${escaped(group.name)}</h2>
<p>${inline(group.description)}</p>
${lines(group.entries, (entry) => operationPart(entry, document))}`,
)}
<h2 id="errors">Errors</h2>
${errorTable()}
<h2 id="headers">Headers</h2>
<p>The first three are on every answer, the headers of the rate limits on every answer to a valid key.</p>
${table(
  Object.entries(components.headers).map(([name, { description, schema }]) => [
    `<code>${name}</code>`,
    described(description, schema),
  ]),
)}
<h2 id="schemas">Schemas</h2>
${lines(Object.entries(components.schemas), ([name, schema]) => schemaPart(name, schema))}
</body>
</html>
`
}

function contents(tag: string, entries: readonly Entry[]): string {
  return `<p><a href="#${anchor(tag)}">${escaped(tag)}</a></p>
<ul>
${lines(
  entries,
  ({ method, path, operation }) =>
    `<li><a href="#${operation.operationId}">${escaped(operation.summary)}</a> <span class="faint">${method} ${escaped(path ?? TO_WEBHOOK)}</span></li>`,
)}
</ul>`
}

function operationPart({ method, path, operation }: Entry, document: Document): string {
  const { operationId, summary, description, security, parameters } = operation
  const scopes = security.flatMap(({ apiKey = [] }) => apiKey).map((scope) => `\`${scope}\``)
  const tokens = security.flatMap(({ inboxToken = [] }) => inboxToken)
  const token = tokens.map((access) => `, or an inbox token with the access \`${access}\``).join('')
  const key = scopes.length === 0 ? 'No key is required.' : `Scope ${scopes.join(' or ')}${token}.`
  const body = bodyOf(operation)
  return `<section id="${operationId}">
<h3>${escaped(summary)}</h3>
<p class="path"><span class="method">${method}</span>${path === null ? TO_WEBHOOK : `<code>${escaped(path)}</code>`}</p>
<p class="faint">${inline(path === null ? 'Sent by Mayfly.' : key)}</p>
${description === undefined ? '' : paragraphs(description)}
${path === null ? '' : `<pre class="curl">${escaped(curlCommand(method, path, operation, document))}</pre>`}
${parameters.length === 0 ? '' : `<h4>Parameters</h4>\n${parameterTable(operation)}`}
${body === null ? '' : bodyPart(body, document)}
<h4>Answers</h4>
${answerTable(operation, document)}
</section>`
}

function bodyPart({ mediaType, schema }: NonNullable<ReturnType<typeof bodyOf>>, document: Document): string {
  const title = mediaType === NDJSON ? 'Lines of the body' : 'Body'
  return `<h4>${title}</h4>\n<p class="faint">${schemaText(schema)}</p>\n${formPart(resolved(schema, document))}`
}

function parameterTable({ parameters }: Operation): string {
  return table(
    parameters.map(({ name, in: location, required, description, schema }) => [
      `<code>${escaped(name)}</code>`,
      `${location}${required === true && location !== 'path' ? ', required' : ''}`,
      described(description, schema),
    ]),
  )
}

/** The properties of an object, or the alternatives of a body. */
function formPart({ anyOf, properties = {}, required = [] }: SchemaJson): string {
  if (anyOf !== undefined) return `<p>${schemaText({ anyOf })}</p>`
  return table(
    Object.entries(properties).map(([name, schema]) => [
      `<code>${escaped(name)}</code>`,
      required.includes(name) ? '' : 'optional',
      described(schema.description ?? '', schema),
    ]),
  )
}

/** Headers that are not repeated for each operation. */
const EVERYWHERE = new Set<string>([...COMMON_HEADERS, ...RATE_LIMIT_HEADERS])

function answerTable({ responses }: Operation, { components }: Document): string {
  return table(
    Object.entries(responses).map(([status, response]) => {
      if ('$ref' in response) {
        const codes = nameIn(response.$ref).split('_or_')
        return [status, codes.map((code) => `<a href="#${code}"><code>${code}</code></a>`).join(', ')]
      }
      const [[type, { schema }] = ['', { schema: {} }]] = Object.entries(response.content ?? {})
      const headers = Object.keys(response.headers)
        .filter((name) => !EVERYWHERE.has(name))
        .map((name) => `<p><code>${name}</code>: ${inline(components.headers[name]?.description ?? '')}</p>`)
      const form = type === 'application/json' ? schemaText(schema) : escaped(type)
      return [status, `<p>${inline(response.description)}</p><p class="faint">${form}</p>${headers.join('')}`]
    }),
  )
}

function errorTable(): string {
  return table(
    PROBLEM_CODES.map((code) => {
      const { status, title, fix } = PROBLEMS[code]
      return [
        String(status),
        `<a id="${code}" href="problems/${code}"><code>${code}</code></a>`,
        `<p>${escaped(title)}.</p><p class="faint">${inline(fix)}</p>`,
      ]
    }),
  )
}

function schemaPart(name: string, schema: SchemaJson): string {
  const { description = '', examples = [] } = schema
  const blocks = lines(examples, (each) => `<pre>${escaped(JSON.stringify(each, null, 2))}</pre>`)
  return `<section id="${name}">
<h3>${name}</h3>
<p>${inline(description)}</p>
${formPart(schema)}${examples.length === 0 ? '' : `<details><summary>Example</summary>${blocks}</details>`}
</section>`
}

function described(description: string, schema: SchemaJson): string {
  return `<p>${inline(description)}</p><p class="faint">${schemaText(schema)}</p>`
}

function table(rows: readonly (readonly string[])[]): string {
  return `<table>
${lines(rows, (cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)}
</table>`
}

function lines<Item>(items: readonly Item[], line: (item: Item) => string): string {
  return items.map(line).join('\n')
}

function anchor(tag: string): string {
  return `tag-${tag.toLowerCase()}`
}
