import 'openapi-explorer'
import { text } from './text.js'

/*
 * The API reference: the OpenAPI document of this server with a list of its operations, a search, and a form that sends
 * requests. A key stays in the memory of the page.
 */

interface Explorer extends HTMLElement {
  loadSpec(document: object): Promise<void>
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
  const { paths, tags, ...rest } = (await answer.json()) as {
    paths: Record<string, object>
    tags: { name: string }[]
  }
  await explorer.loadSpec({
    ...rest,
    // Each operation under /v1/emails does the same as one under /v1/inboxes.
    paths: Object.fromEntries(Object.entries(paths).filter(([path]) => !path.startsWith('/v1/emails'))),
    tags: tags.filter(({ name }) => name !== 'Emails'),
    // The document names the public URL, which the policy of this page does not let it call.
    servers: [{ url: location.origin }],
  })
}

document.title = text.docs.title
const source = document.createElement('a')
source.href = '/openapi.json'
source.textContent = 'openapi.json'
const footer = document.createElement('p')
footer.slot = 'overview-footer'
footer.append(text.docs.curl, ' ', source, text.docs.source)
explorer.append(footer)
setColors()
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', setColors)
document.querySelector('#console')?.replaceWith(explorer)
show().catch((error: unknown) => {
  explorer.replaceWith(`${text.docs.failed} ${String(error)}`)
})
