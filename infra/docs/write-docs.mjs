// Writes the generated parts of the docs, each between its two markers, the types of the TypeScript client, the
// console's list of events, and golden records of new events.
import { readFileSync, writeFileSync } from 'node:fs'
import { CONTROLLERS } from '#apps/api/api.module.js'
import { describeApi } from '#apps/api/openapi/document.js'
import { renderEventBodies } from '#apps/api/events/event-schemas.js'
import { renderProblems } from '#apps/api/openapi/problem-responses.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { renderSettings } from '#libs/runtime/config/settings-table.js'
import { renderEventSchemas } from '#libs/ports/event-log/event-schemas.js'
import { renderViewsForm } from '#infra/docs/views-form.js'
import { renderClientTypes } from '#infra/docs/client-types.js'
import { withNewRecords } from '#infra/docs/golden-records.js'

const BEGIN = '<!-- begin: npm run docs -->'
const END = '<!-- end -->'

write('docs/api.md', renderProblems())
write('docs/events.md', renderEventSchemas())
write('docs/operating.md', renderSettings())
writeFileSync('libs/ports/read-model/views-form.ts', renderViewsForm())
write('docs/webhooks.md', renderEventBodies())
const names = JSON.stringify(WEBHOOK_EVENT_TYPES)
writeFileSync(
  'apps/console/webhook-events.ts',
  `// Written by \`npm run docs\`.\n\nexport const WEBHOOK_EVENTS = ${names} as const\n`,
)
const golden = 'libs/ports/event-log/golden-records.json'
writeFileSync(golden, withNewRecords(readFileSync(golden, 'utf8')))
const document = describeApi(CONTROLLERS, 'http://127.0.0.1')
writeFileSync('clients/typescript/src/openapi.d.ts', await renderClientTypes(document))

function write(path, part) {
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`${path} lacks its markers: ${BEGIN} and ${END}`)
  writeFileSync(path, `${text.slice(0, begin + BEGIN.length)}\n\n${part}\n${text.slice(end)}`)
}
