import 'openapi-explorer'
import { text } from './text.js'

/*
 * The API reference: the OpenAPI document of this server with a list of its operations, a search, and a form that sends
 * requests. A key stays in the memory of the page.
 */

interface Explorer extends HTMLElement {
  loadSpec(document: object): Promise<void>
}

/** The part of the document that the page changes before it shows it. */
interface Document {
  paths: Record<string, Record<string, Operation>>
  tags: { name: string }[]
  components: { responses: Record<string, object> }
}

interface Operation {
  description?: string
  security: Record<string, string[]>[]
  responses: Record<string, { $ref?: string }>
}

/** Attributes of the element, and the color token that each gets. */
const COLORS = {
  'bg-color': '--back',
  'text-color': '--text',
  'header-bg-color': '--back',
  'primary-color': '--accent',
  'secondary-color': '--accent',
  'nav-bg-color': '--raised',
  'nav-text-color': '--text',
  'nav-hover-text-color': '--accent',
}

/** How much of a stream is shown. The element waits for the end of an answer. */
const STREAMED_MS = 10_000

const explorer = document.createElement('openapi-explorer') as Explorer
explorer.setAttribute('hide-server-selection', 'true')
explorer.setAttribute('display-nulls', 'true')

function setColors(): void {
  const style = getComputedStyle(document.documentElement)
  for (const [attribute, token] of Object.entries(COLORS))
    explorer.setAttribute(attribute, style.getPropertyValue(token).trim())
}

async function show(): Promise<void> {
  const answer = await fetch('/openapi.json')
  if (!answer.ok) throw new Error(answer.statusText)
  await explorer.loadSpec(shownDocument(JSON.parse(await answer.text(), withoutDetails) as Document))
}

/** Regular expressions are for programs, and the element shows several examples as one. */
function withoutDetails(name: string, value: unknown): unknown {
  if (name === 'pattern' && typeof value === 'string') return undefined
  return name === 'examples' && Array.isArray(value) ? value.slice(0, 1) : value
}

function shownDocument({ paths, tags, components, ...rest }: Document): object {
  const { responses } = components
  const isMerged = (name: string) => name.includes('_or_')
  const shown = (operation: Operation): Operation => {
    const scopes = operation.security.flatMap(({ apiKey = [] }) => apiKey)
    const about = [operation.description ?? [], scopes.length === 0 ? [] : text.docs.scopes(scopes)].flat()
    const schemes = new Set(operation.security.flatMap((each) => Object.keys(each)))
    const answers = Object.entries(operation.responses).map(([status, answer]) => {
      const name = answer.$ref?.split('/').at(-1) ?? ''
      return [status, isMerged(name) ? responses[name] : answer]
    })
    return {
      ...operation,
      description: about.join('\n\n'),
      security: [...schemes].map((scheme) => ({ [scheme]: [] })),
      responses: Object.fromEntries(answers) as Operation['responses'],
    }
  }
  return {
    ...rest,
    // Each operation under /v1/emails does the same as one under /v1/inboxes.
    paths: Object.fromEntries(
      Object.entries(paths)
        .filter(([path]) => !path.startsWith('/v1/emails'))
        .map(([path, methods]) => [path, mapValues(methods, shown)]),
    ),
    tags: tags.filter(({ name }) => name !== 'Emails'),
    components: {
      ...components,
      responses: Object.fromEntries(Object.entries(responses).filter(([name]) => !isMerged(name))),
    },
    // The document names the public URL, which the policy of this page does not let it call.
    servers: [{ url: location.origin }],
  }
}

function mapValues<Value>(
  values: Record<string, Value>,
  map: (value: Value) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}

/** The beginning of a stream as a whole answer. Any other answer is unchanged. */
async function withEnd(answer: Response): Promise<Response> {
  if (answer.body === null || !answer.headers.get('content-type')?.startsWith('text/event-stream'))
    return answer
  const reader = answer.body.getReader()
  const timer = setTimeout(() => void reader.cancel(), STREAMED_MS)
  const parts: Uint8Array<ArrayBuffer>[] = []
  for (let read = await reader.read(); !read.done; read = await reader.read()) parts.push(read.value)
  clearTimeout(timer)
  return new Response(new Blob(parts), { status: answer.status, headers: answer.headers })
}

const send = fetch
window.fetch = async (...request) => withEnd(await send(...request))

document.title = text.docs.title
const overview = document.createElement('div')
overview.slot = 'overview-footer'
for (const line of text.docs.overview) {
  const paragraph = document.createElement('p')
  for (const [words, href] of line) {
    if (href === undefined) paragraph.append(words)
    else paragraph.append(Object.assign(document.createElement('a'), { href, textContent: words }))
  }
  overview.append(paragraph)
}
explorer.append(overview)
setColors()
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', setColors)
// The requests that Mayfly sends to webhooks have no path, and can't be sent from here.
explorer.addEventListener('event', (event) => {
  const { explorerLocation } = (event as CustomEvent<{ explorerLocation?: string }>).detail
  explorer.setAttribute('hide-console', String(/^post-[^/]*$/.test(explorerLocation ?? '')))
})
document.querySelector('#console')?.replaceWith(explorer)
show().catch((error: unknown) => {
  explorer.replaceWith(`${text.docs.failed} ${String(error)}`)
})
