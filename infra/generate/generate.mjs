// Writes what follows from the code: the marked parts of the docs, the types of the TypeScript and Python clients, the
// console's lists of events and roles, golden records of new events, the form of the views, and what mail clients
// support. With --check it writes nothing, and exits 1 if a file is not what it would write.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { format, resolveConfig } from 'prettier'
import { CONTROLLERS } from '#apps/api/api.module.js'
import { renderEventBodies } from '#apps/api/events/event-schemas.js'
import { describeApi } from '#apps/api/openapi/document.js'
import { renderProblems } from '#apps/api/openapi/problem-responses.js'
import { renderClientTypes } from '#infra/generate/client-types.js'
import { withNewRecords } from '#infra/generate/golden-records.js'
import { renderMailFeatures } from '#infra/generate/mail-features.js'
import { renderViewsForm } from '#infra/generate/views-form.js'
import { rulesOf, ROLE_NAMES } from '#libs/domain/account/member.js'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { EXAMPLE_MESSAGE, messageJson } from '#libs/mail/json/message-json.js'
import { renderSettings } from '#libs/runtime/config/settings-table.js'
import { renderEventSchemas } from '#libs/ports/event-log/event-schemas.js'

const check = process.argv.slice(2).filter((argument) => argument === '--check')
const document = describeApi(CONTROLLERS, 'http://127.0.0.1')

const message = JSON.stringify(messageJson(EXAMPLE_MESSAGE, '/v1/inboxes'))

await writeParts('docs/api.md', {
  message: `\`\`\`json\n${message}\n\`\`\`\n`,
  problems: renderProblems(),
})
await writeParts('docs/events.md', { schemas: renderEventSchemas() })
await writeParts('docs/operating.md', { settings: renderSettings() })
await writeParts('docs/teams.md', { roles: renderRoles() })
await writeParts('docs/webhooks.md', { events: renderEventBodies() })
const names = JSON.stringify(WEBHOOK_EVENT_TYPES)
await writeFormatted(
  'apps/console/webhook-events.ts',
  `// Written by \`npm run generate\`.\n\nexport const WEBHOOK_EVENTS = ${names} as const\n`,
)
const choices = ROLE_NAMES.map((role) => {
  const { readsMail, isRestrictable } = rulesOf(role)
  return [role, { readsMail, isRestrictable }]
})
await writeFormatted(
  'apps/console/roles.ts',
  `// Written by \`npm run generate\`.

/** What can be chosen for the members of each role. */
export const ROLES = ${JSON.stringify(Object.fromEntries(choices))} as const
`,
)
const golden = 'libs/ports/event-log/golden-records.json'
await writeFormatted(golden, withNewRecords(readFileSync(golden, 'utf8')))
write('libs/ports/read-model/views-form.ts', renderViewsForm())
write('libs/mail/html-check/mail-features.ts', renderMailFeatures())
write('clients/typescript/src/openapi.d.ts', await renderClientTypes(document))
python('generate_types.py', JSON.stringify(document))
python('generate_sync.py')
// The modules of the API keep timers.
process.exit()

/** Replaces parts of a document, each between its two markers. */
async function writeParts(path, parts) {
  let text = readFileSync(path, 'utf8')
  for (const [name, part] of Object.entries(parts)) {
    const begin = `<!-- generated: ${name} -->`
    const start = text.indexOf(begin)
    const end = text.indexOf('<!-- end -->', start)
    if (start < 0 || end < 0) throw new Error(`${path} lacks the markers ${begin} and <!-- end -->`)
    text = `${text.slice(0, start)}${begin}\n\n${part}\n${text.slice(end)}`
  }
  await writeFormatted(path, text)
}

/** What each role may do, as a table. */
function renderRoles() {
  const scopes = (list) => list.map((scope) => `\`${scope}\``).join(', ') || 'nothing'
  const rows = ROLE_NAMES.map((role) => {
    const rules = rulesOf(role)
    const without = rules.readsMail === 'always' ? '' : scopes(rules.scopes)
    const restrictable = rules.isRestrictable ? 'yes' : 'no'
    const all = scopes([...rules.contentScopes, ...rules.scopes])
    return `| \`${role}\` | ${all} | ${rules.readsMail} | ${without} | ${restrictable} |`
  })
  const head =
    '| role | scopes | has `content:read` | scopes without it | can be restricted to environments |'
  return `${head}\n| --- | --- | --- | --- | --- |\n${rows.join('\n')}\n`
}

async function writeFormatted(path, text) {
  write(path, await format(text, { ...(await resolveConfig(path)), filepath: path }))
}

function write(path, text) {
  if (readFileSync(path, 'utf8') === text) return
  if (check.length === 0) writeFileSync(path, text)
  else fail(`${path} is not up to date`)
}

/** Runs a generator of the Python client. */
function python(script, input = '') {
  const options = { input, stdio: ['pipe', 'inherit', 'inherit'] }
  try {
    execFileSync('python3', [`clients/python/codegen/${script}`, ...check], options)
  } catch (error) {
    if (error.status === undefined)
      throw new Error('the types of the Python client need python3', { cause: error })
    fail(`${script} failed`)
  }
}

function fail(reason) {
  process.stderr.write(`${reason}: run npm run generate\n`)
  process.exitCode = 1
}
