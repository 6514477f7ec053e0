// Writes the generated parts of the docs, each between its two markers.
import { readFileSync, writeFileSync } from 'node:fs'
import { renderProblems } from '#apps/api/openapi/problem-responses.js'
import { renderSettings } from '#libs/runtime/config/settings-table.js'
import { renderEventSchemas } from '#libs/ports/event-log/event-schemas.js'

const BEGIN = '<!-- begin: npm run docs -->'
const END = '<!-- end -->'

write('docs/api.md', renderProblems())
write('docs/events.md', renderEventSchemas())
write('docs/operating.md', renderSettings())

function write(path, part) {
  const text = readFileSync(path, 'utf8')
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`${path} lacks its markers: ${BEGIN} and ${END}`)
  writeFileSync(path, `${text.slice(0, begin + BEGIN.length)}\n\n${part}\n${text.slice(end)}`)
}
