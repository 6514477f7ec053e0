import { createHash } from 'node:crypto'
import { PROBLEM_CODES, PROBLEMS } from '../http/problems.js'
import { curlCommand } from './curl.js'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS } from '../http/headers.js'
import { escaped, inline, paragraphs } from './markup.js'
import type { Document, Operation, SchemaJson } from './openapi-json.js'
import { nameIn, resolved, schemaText } from './schema-text.js'

/*
 * The document as a page: made of it alone, without scripts, and readable without a network.
 */

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

/** Only the page's own style and the icon of its site. */
export const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256')
  .update(STYLE)
  .digest('base64')}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

interface Entry {
  method: string
  /** Null for requests that Mayfly sends to webhooks. */
  path: string | null
  operation: Operation
}

const ABOUT_CURL =
  'The `curl` commands run in a shell that has the key: `export MAYFLY_KEY=…`. A click selects a whole command. Replace ' +
  'the ids in it with your own.'

/** The page that a browser shows. */
export function docsPage(document: Document): string {
  const { title, description } = document.info
  const taken = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const sent = Object.values(document.webhooks).map(({ post }) => ({
    method: 'POST',
    path: null,
    operation: post,
  }))
  const entries: Entry[] = [...taken, ...sent]
  // The other family's operations are the same ones.
  const groups = document.tags.filter(({ name }) => name !== 'Emails')
  const within = (tag: string) => entries.filter(({ operation }) => operation.tags.includes(tag))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} API</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)} API</h1>
${paragraphs(description)}
<p><a href="openapi.json">openapi.json</a> is this page for programs.</p>
${paragraphs(document.components.securitySchemes.apiKey.description)}
${paragraphs(ABOUT_CURL)}
<nav>
${groups.map(({ name }) => contents(name, within(name))).join('\n')}
<p><a href="#errors">Errors</a> · <a href="#headers">Headers</a> · <a href="#schemas">Schemas</a></p>
</nav>
${groups
  .map(
    ({ name, description }) => `<h2 id="${anchor(name)}">${escaped(name)}</h2>
<p>${inline(description)}</p>
${within(name)
  .map((entry) => operationPart(entry, document))
  .join('\n')}`,
  )
  .join('\n')}
<h2 id="errors">Errors</h2>
${errorTable()}
<h2 id="headers">Headers</h2>
<p>Those of the first three come with every answer, those of the rate limits with every answer to a valid key.</p>
${headerTable(document)}
<h2 id="schemas">Schemas</h2>
${Object.entries(document.components.schemas)
  .map(([name, schema]) => schemaPart(name, schema))
  .join('\n')}
</body>
</html>
`
}

/** In place of a path. */
const TO_WEBHOOK = 'to the URL of a webhook'

function contents(tag: string, entries: readonly Entry[]): string {
  const rows = entries.map(
    ({ method, path, operation }) =>
      `<li><a href="#${operation.operationId}">${escaped(operation.summary)}</a> <span class="faint">${method} ${escaped(path ?? TO_WEBHOOK)}</span></li>`,
  )
  return `<p><a href="#${anchor(tag)}">${escaped(tag)}</a></p>\n<ul>\n${rows.join('\n')}\n</ul>`
}

function operationPart({ method, path, operation }: Entry, document: Document): string {
  const curl = path === null ? '' : escaped(curlCommand(method, path, operation, document))
  const scopes = operation.security.flatMap(({ apiKey }) => apiKey)
  const key =
    path === null
      ? 'Sent by Mayfly.'
      : scopes.length === 0
        ? 'No key is needed.'
        : `Scope ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`
  const body = operation.requestBody?.content['application/json']
  return `<section id="${operation.operationId}">
<h3>${escaped(operation.summary)}</h3>
<p class="path"><span class="method">${method}</span>${path === null ? TO_WEBHOOK : `<code>${escaped(path)}</code>`}</p>
<p class="faint">${inline(key)}</p>
${operation.description === undefined ? '' : paragraphs(operation.description)}
${curl === '' ? '' : `<pre class="curl">${curl}</pre>`}
${operation.parameters.length === 0 ? '' : `<h4>Parameters</h4>\n${parameterTable(operation)}`}
${body === undefined ? '' : `<h4>Body</h4>\n<p class="faint">${schemaText(body.schema)}</p>\n${formPart(resolved(body.schema, document))}`}
<h4>Answers</h4>
${answerTable(operation, document)}
</section>`
}

function parameterTable({ parameters }: Operation): string {
  return table(
    parameters.map(({ name, in: place, required, description, schema }) => [
      `<code>${escaped(name)}</code>`,
      `${place}${required === true && place !== 'path' ? ', required' : ''}`,
      `<p>${inline(description)}</p><p class="faint">${schemaText(schema)}</p>`,
    ]),
  )
}

/** The properties of an object, or the alternatives of a body. */
function formPart(schema: SchemaJson): string {
  return schema.anyOf === undefined ? propertyTable(schema) : `<p>${schemaText({ anyOf: schema.anyOf })}</p>`
}

function propertyTable({ properties = {}, required = [] }: SchemaJson): string {
  return table(
    Object.entries(properties).map(([name, schema]) => [
      `<code>${escaped(name)}</code>`,
      required.includes(name) ? '' : 'optional',
      `<p>${inline(schema.description ?? '')}</p><p class="faint">${schemaText(schema)}</p>`,
    ]),
  )
}

function answerTable({ responses }: Operation, document: Document): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    if ('$ref' in response) {
      const codes = nameIn(response.$ref).split('_or_')
      return [status, codes.map((code) => `<a href="#${code}"><code>${code}</code></a>`).join(', ')]
    }
    const [content] = Object.entries(response.content ?? {})
    const [type, schema] = content === undefined ? ['', {}] : [content[0], content[1].schema]
    const names = Object.keys(response.headers).filter((name) => !EVERYWHERE.has(name))
    const headers = names.map((name) => `<code>${name}</code>: ${inline(headerText(name, document))}`)
    return [
      status,
      `<p>${inline(response.description)}</p><p class="faint">${type === 'application/json' ? schemaText(schema) : escaped(type)}</p>${headers.map((line) => `<p>${line}</p>`).join('')}`,
    ]
  })
  return table(rows)
}

/** Headers that need no word with each operation. */
const EVERYWHERE = new Set<string>([...COMMON_HEADERS, ...RATE_LIMIT_HEADERS])

function headerText(name: string, { components }: Document): string {
  return components.headers[name]?.description ?? ''
}

function headerTable({ components }: Document): string {
  return table(
    Object.entries(components.headers).map(([name, { description, schema }]) => [
      `<code>${name}</code>`,
      `<p>${inline(description)}</p><p class="faint">${schemaText(schema)}</p>`,
    ]),
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
  return `<section id="${name}">
<h3>${name}</h3>
<p>${inline(schema.description ?? '')}</p>
${formPart(schema)}${example(schema)}
</section>`
}

function example({ examples = [] }: SchemaJson): string {
  if (examples.length === 0) return ''
  const blocks = examples.map((each) => `<pre>${escaped(JSON.stringify(each, null, 2))}</pre>`)
  return `<details><summary>Example</summary>${blocks.join('\n')}</details>`
}

function table(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`)
  return `<table>\n${lines.join('\n')}\n</table>`
}

function anchor(name: string): string {
  return `tag-${name.toLowerCase()}`
}
